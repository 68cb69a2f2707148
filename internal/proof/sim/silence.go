package sim

import "time"

// A read that is not answered is made a second time, for one in twenty that are answered and ten
// at first. How many a life has made is counted here from what arrives, so that a shard is excused
// for as long as a call may hang only where none was left, or the second hangs too.

// silentWithin is how long a read may take whose first try is not answered: the longest that
// silence is borne, and an answer.
const silentWithin = 5 * time.Second

// tries are a life's.
type tries struct {
	answers int
	second  int
	last    map[tryKey]*call
}

type tryKey struct{ op, about string }

// repeatable reports whether a call is one of those that are made a second time.
func repeatable(op string) bool { return op == "GetRecords" || op == "GetShardIterator" }

// notes a call that arrives, and reports whether it is a second try.
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

// left reports whether there is certainly a second try for each of so many calls.
func (t *tries) left(calls int) bool { return 20*(t.second+calls) <= 200+t.answers }

// hangs notes that a call to Kinesis is answered late, or not at all.
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
