package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/window"
)

// payloadTime contains the data about results of windows by a time in the payload. Which records
// are late depends only on earlier records, back to the last point at which all windows ended
// early; see [payloadTime.late].
type payloadTime struct {
	lateness, ahead, maxAge time.Duration
	// strays reports whether user code receives late records and records without a time.
	strays bool
	told   map[judge.ID]window.Why // strays passed to user code
	counts map[string]strayCounts  // counts in results, by shard and end
	cuts   map[string]map[int]bool // places at which all windows ended early, by shard; true if that is certain
	// reached contains, by shard, the number of records before the farthest results.
	reached map[string]int
}

// strayCounts contains the counts of strays in results.
type strayCounts struct{ late, noTime int }

// makePayload selects windows by a time in the payload for half of the seeds, with a random
// lateness.
func (v *windows) makePayload() {
	d := roll(v.w.seed, "payload")
	// A checkpoint may move into windows that have ended.
	if !d.chance(.5) || v.w.crosses.has(featResetting) {
		return
	}
	v.payload = &payloadTime{
		lateness: d.often(0, 20*time.Second), ahead: d.span(500*time.Millisecond, 5*time.Second), maxAge: d.span(10*time.Second, time.Minute), strays: d.chance(.5),
		told: map[judge.ID]window.Why{}, counts: map[string]strayCounts{}, cuts: map[string]map[int]bool{},
		reached: map[string]int{},
	}
}

// timeOf returns the time in the payload of a record. It is mostly a little earlier than the
// arrival, sometimes much earlier, and rarely impossible.
func (v *windows) timeOf(id judge.ID, arrived time.Time) (at time.Time, timed bool) {
	p := v.payload
	d := roll(v.w.seed, "time "+id.String())
	switch n := d.below(100); {
	case n < 2:
		return time.Time{}, false
	case n < 4:
		return arrived.Add(p.ahead + d.span(time.Millisecond, time.Hour)), false
	case n < 10:
		return arrived.Add(d.span(0, p.ahead)), true
	case n < 80:
		return arrived.Add(-d.span(0, p.lateness/2+time.Second)), true
	}
	return arrived.Add(-d.span(0, 2*(p.lateness+v.size))), true
}

// configure makes the windows of a worker use the times in payloads, if the seed selected that.
func (v *windows) configure(l *life, c *window.Config[[]judge.ID]) {
	p := v.payload
	if p == nil {
		return
	}
	c.Lateness, c.Ahead, c.MaxAge = p.lateness, p.ahead, p.maxAge
	c.Time = func(r weir.Record) (time.Time, error) {
		id, ok := idOf(r.Data)
		if !ok {
			return time.Time{}, fmt.Errorf("sim: a record that nobody put: %.60q", r.Data)
		}
		at, _ := v.timeOf(id, r.ArrivalTime())
		return at, nil
	}
	if p.strays {
		c.Stray = l.stray
	}
}

// strayCall reports a record that belongs to no window.
type strayCall struct {
	id  judge.ID
	key lease.Key
	why window.Why
}

// stray handles strays. It is the window.Config.Stray of every worker.
func (l *life) stray(ctx context.Context, s window.Stray) error {
	id, _ := idOf(s.Record.Data)
	key := lease.Key{Stream: s.Record.Stream(), Shard: s.Record.Shard()}
	r := l.w.gate.wait(&call{life: l, op: "stray", about: about(key.Stream, key.Shard), ctx: ctx, body: strayCall{id, key, s.Why}})
	if r.err != nil {
		return r.err
	}
	return r.value.(verdict).end()
}

// admitStray decides the fate of a call about a stray.
func (w *world) admitStray(c *call, s strayCall) {
	l, d := c.life, w.dice(c, "")
	l.hindered.handles[c.about] = w.now()
	f := w.pick(c, &d, HandlerFails, HandlerPanics, CrashInHandler)
	w.note(l, c.op, c.about, c.n, s.id.String()+" "+s.why.String()+" "+string(f))
	if wrong := w.windows.strayed(s); wrong != "" {
		w.breaks("%s: %s", l.who, wrong)
		return
	}
	w.after(d.often(0, 5*time.Millisecond), func() {
		switch {
		case f == CrashInHandler:
			w.crash(l, string(f))
		case f != "":
			w.answer(c, reply{value: verdict{kind: f}})
		default:
			switch held := w.books.last[s.key]; {
			case l.dead.Load(), c.gone.Load():
			case held.Owner == l.session:
				b := &judge.Batch{Worker: l.who, Shard: w.nameOfLease(&held), Epoch: held.Epoch, IDs: []judge.ID{s.id}}
				w.judge.Noted(b, 1, w.wall())
			default:
				// The next owner repeats this call, unless the previous owner moves the sink past
				// the record afterwards.
				l.strays[c.about] = append(l.strays[c.about], s.id)
			}
			w.answer(c, reply{value: verdict{}})
		}
	})
}

// strayed notes that a record was reported as a stray.
func (v *windows) strayed(s strayCall) string {
	if _, known := v.places[s.id]; !known {
		return fmt.Sprintf("%s is told as %s, and nobody put it", s.id, s.why)
	}
	if v.w.loosely() {
		v.payload.told[s.id] = s.why
		return ""
	}
	if before, told := v.payload.told[s.id]; told && before != s.why {
		return fmt.Sprintf("%s is told as %s, and was as %s before", s.id, s.why, before)
	}
	if of := v.of[s.id]; of != "" {
		return fmt.Sprintf("%s is told as %s, and is in the result %s", s.id, s.why, of)
	}
	v.payload.told[s.id] = s.why
	return ""
}

// check describes what is wrong with the results of windows that ended together. The checks that
// need all results of a shard are in [payloadTime.tallied].
func (p *payloadTime) check(v *windows, of string, r *window.Results[[]judge.ID]) string {
	all := v.shards[of]
	var counts strayCounts
	for i := range r.Windows {
		w := &r.Windows[i]
		for _, id := range w.State {
			a := all[v.places[id]]
			start := v.windowOf(a)
			if !w.Start.Equal(start) || !w.End.Equal(start.Add(v.size)) || a.timed == (w.Why == window.NoTime) {
				return fmt.Sprintf("%s of %v, which arrived at %v, is in the result %s (%s) from %v to %v", id, a.of, a.at, w.ID, w.Why, w.Start, w.End)
			}
			if why, told := p.told[id]; told {
				return fmt.Sprintf("%s is in the result %s, and was told as %s", id, w.ID, why)
			}
		}
		switch w.Why {
		case window.Late:
			counts.late += w.Records
		case window.NoTime:
			counts.noTime += w.Records
		}
	}
	said := strayCounts{r.Late, r.NoTime}
	if !p.strays && said != counts {
		return fmt.Sprintf("results up to %s say that %v are late and without a time, and have %v", r.UpTo, said, counts)
	}
	p.reached[of] = max(p.reached[of], v.upTo(of, r.UpTo))
	if r.From == r.UpTo { // the shard has ended, and all its windows have had results before
		return ""
	}
	where := of + " " + r.UpTo.String()
	if before, known := p.counts[where]; known && before != said {
		return fmt.Sprintf("results up to %s of %s say that %v are late and without a time, and said %v before", r.UpTo, of, said, before)
	}
	p.counts[where] = said
	early := slices.ContainsFunc(r.Windows, func(w window.Result[[]judge.ID]) bool { return w.Why == window.Full || w.Why == window.Aged })
	if p.cuts[of] == nil {
		p.cuts[of] = map[int]bool{}
	}
	if n := v.upTo(of, r.UpTo); early {
		p.cuts[of][n] = true
	} else if len(r.Windows) == 0 && !p.cuts[of][n] {
		// The results do not show whether all windows ended there.
		p.cuts[of][n] = false
	}
	return ""
}

// upTo returns the number of a shard's records before a position.
func (v *windows) upTo(of string, p weir.Position) int {
	n, _ := slices.BinarySearchFunc(v.shards[of], p, func(a arrived, p weir.Position) int {
		if p.Kind() != shard.Sequence {
			return 1
		}
		switch order := shard.CompareSequence(a.number, p.SequenceNumber()); {
		case order < 0, order == 0 && a.index < p.Done():
			return -1
		}
		return 1
	})
	return n
}

// tallied checks all results of a shard together. Each record must be in a result, or must have
// been reported as a stray. A record must be reported as late if and only if it is late. The counts
// must match.
func (p *payloadTime) tallied(v *windows, of string) string {
	var counts, said strayCounts
	for i, a := range v.shards[of] {
		why, told := p.told[a.id]
		if made, known := v.made[v.of[a.id]]; known {
			why = made.why
		} else if !told {
			return fmt.Sprintf("%s of %s is in no result, and was not told", a.id, of)
		}
		switch {
		case !a.timed && why != window.NoTime, a.timed && why == window.NoTime:
			return fmt.Sprintf("%s of %s, of %v, arrived at %v, and counts as %s", a.id, of, a.of, a.at, why)
		case !a.timed:
			counts.noTime++
			continue
		}
		certain, perhaps := p.late(v, of, i)
		if why == window.Late {
			counts.late++
		}
		if why == window.Late && !perhaps || why != window.Late && certain {
			return fmt.Sprintf("%s of %s, of %v, counts as %s", a.id, of, a.of, why)
		}
	}
	for where, c := range p.counts {
		if len(where) > len(of) && where[:len(of)+1] == of+" " {
			said.late, said.noTime = said.late+c.late, said.noTime+c.noTime
		}
	}
	if said != counts {
		return fmt.Sprintf("the results of %s say that %v records are late and without a time, and %v are", of, said, counts)
	}
	return ""
}

// late reports whether the i-th record of a shard is late. It is late if two things are true.
// First, an earlier record has a time at least Lateness after the end of the i-th record's window.
// Second, the windows did not all end early between these two records. certain is true if the
// record is late for sure. perhaps is true if it may be late.
func (p *payloadTime) late(v *windows, of string, i int) (certain, perhaps bool) {
	all := v.shards[of]
	past := v.begins(all[i].of).Add(v.size + p.lateness)
	certain = true
	for j := i; j > 0; j-- {
		if sure, cut := p.cuts[of][j]; cut && sure {
			return false, false
		} else if cut {
			certain = false
		}
		if before := all[j-1]; before.timed && !before.of.Before(past) {
			return certain, true
		}
	}
	return false, false
}

// talliedPayload calls [payloadTime.tallied] for every shard.
func (w *world) talliedPayload() {
	v := w.windows
	for _, of := range slices.Sorted(maps.Keys(v.shards)) {
		if wrong := v.payload.tallied(v, of); wrong != "" {
			w.breaks("%s", wrong)
			return
		}
	}
}

// straysTold returns the number of records that are in no result because they were passed to user
// code.
func (w *world) straysTold() int {
	if w.windows == nil || w.windows.payload == nil {
		return 0
	}
	return len(w.windows.payload.told)
}
