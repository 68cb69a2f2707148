package sim

import "time"

// This file counts second tries of reads. weir sends a read a second time if the first try gets no
// answer. It may do so for one in twenty answered reads, plus ten at the start. The second tries of
// a life are counted from its calls. Normally a call that hangs excuses its shard only for the time
// until the second try succeeds. It excuses the shard for the whole time of the call if no second
// try was left, or if the second try hangs too.

// silentWithin is the maximum duration of a read whose first try gets no answer. It is the longest
// tolerated silence, plus the time of an answer.
const silentWithin = 5 * time.Second

// tries counts the second tries of a life.
type tries struct {
	answers int
	second  int
	last    map[tryKey]*call
}

type tryKey struct{ op, about string }

// repeatable reports whether weir sends a call of this operation a second time.
func repeatable(op string) bool { return op == "GetRecords" || op == "GetShardIterator" }

// arrives notes a call. It reports whether the call is a second try.
func (t *tries) arrives(c *call, now int64) (second bool) {
	key := tryKey{c.op, c.about}
	if last := t.last[key]; last != nil && last.gone.Load() && !last.over && now-last.sent < int64(silentWithin) {
		second = true
		t.second++
	}
	if t.last == nil {
		t.last = map[tryKey]*call{}
	}
	t.last[key] = c
	return second
}

// left reports whether weir can certainly make a second try for each of the given number of calls.
func (t *tries) left(calls int) bool { return 20*(t.second+calls) <= 200+t.answers }

// hangs notes that a call to Kinesis is answered late or not at all.
func (w *world) hangs(c *call, second bool) {
	l, d := c.life, callWithin+retryMax
	if repeatable(c.op) && !second {
		reads := 1
		for _, other := range l.parked {
			if repeatable(other.op) {
				reads++
			}
		}
		if l.tries.left(reads) {
			d = silentWithin
		}
	}
	w.keepsFromReading(l, c.about, d)
}
