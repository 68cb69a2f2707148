package sim

import (
	"slices"
	"time"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/internal/proof/sim/model"
)

var ofPut = []Fault{
	PutThrottled, PutRefused, PutUnclear, PutBlank, PutDenied, PutFails, PutShort, PutSilent, PutSlow,
}

// admitPut decides the fate of a call of PutRecords.
func (w *world) admitPut(c *call, asked *model.Call) {
	l, d := c.life, w.dice(c, "")
	there := d.often(2*time.Millisecond, 60*time.Millisecond)
	if d.chance(.05) { // some round trips are long
		there = d.span(60*time.Millisecond, 400*time.Millisecond)
	}
	back := d.often(0, 40*time.Millisecond)
	if l.unread > w.now() {
		if d.chance(.5) {
			w.after(there, func() { w.answer(c, reply{err: errConnection}) })
		}
		return
	}
	f := w.pick(c, &d, ofPut...)
	w.note(l, c.op, c.about, len(asked.Puts), string(f))
	left := 0
	switch f {
	case PutSlow:
		there += d.span(100*time.Millisecond, 8*time.Second)
	case PutShort:
		left = 1 + d.below(len(asked.Puts))
	}
	part := w.dice(c, "part")
	whims := make([]model.PutWhim, len(asked.Puts))
	for i := range whims {
		whims[i] = whimOf(f, &part)
	}
	effect := func() httpAnswer {
		one := func(i int) model.PutWhim { return whims[i] }
		a, stored := w.service.PutRecords(*asked, one, left, w.clock())
		w.stores(l, stored)
		return httpAnswer{Answer: a, date: w.date()}
	}
	fails := func() reply {
		if d.chance(.5) {
			return reply{err: errConnection}
		}
		a := model.Fail(500, "InternalFailure", "sim")
		return reply{value: httpAnswer{Answer: a, date: w.date()}}
	}
	switch f {
	case PutThrottled:
		w.serves(c, there, back, func() httpAnswer {
			a := model.Fail(400, "ProvisionedThroughputExceededException", "sim")
			return httpAnswer{Answer: a, date: w.date()}
		})
	case PutFails:
		r := fails()
		if d.chance(.5) {
			w.after(there, func() { w.answer(c, r) })
			return
		}
		w.after(there, func() { effect(); w.answer(c, r) })
	case PutSilent:
		if d.chance(.6) {
			w.after(there+d.span(0, 15*time.Second), func() { effect() })
		}
	default:
		w.serves(c, there, back, effect)
	}
}

// whimOf decides about one record of a call with a fault.
func whimOf(f Fault, d *dice) (how model.PutWhim) {
	if !d.chance(.4) {
		return how
	}
	switch f {
	case PutRefused:
		how.Code = "ProvisionedThroughputExceededException"
	case PutUnclear:
		how.Code, how.Kept = "InternalFailure", d.chance(.5)
	case PutBlank:
		how.Blank = true
	case PutDenied:
		how.Code = "KMSDisabledException"
	}
	return how
}

// stores notes what a call of PutRecords has stored.
func (w *world) stores(l *life, stored []model.Stored) {
	p := w.producing
	for _, one := range stored {
		number := model.Number(one.Record.Seq)
		c := container{number: number, at: w.now()}
		whole, packed := true, aggregate.Marked(one.Record.Data) // the KCL drops a container with a record that the shard does not own
		for _, u := range one.Users {
			whole = whole && u.Owned
		}
		for i, u := range one.Users {
			id, ok := idOf(u.Data)
			is, known := p.made[id]
			if !ok || !known || is != (madeRecord{u.Key, u.Explicit, string(u.Data), is.tag}) {
				w.breaks("%s puts a record that it was not given: %s, %.60q", l.who, u.Key, u.Data)
				return
			}
			p.judge.Stored(id, judge.Place{Shard: one.Shard.ID, Number: number, Index: i}, whole)
			key := u.Key
			if !u.Owned { // keys have an order only in the shards that own them
				key += "@" + one.Shard.Name
			}
			w.written[key]++
			copyID := judge.ID{Key: key, N: w.written[key]}
			p.copies[copyOf{number, id}] = copyID
			c.ids = append(c.ids, copyID)
			p.strays[copyID] = p.own && !u.Owned && packed
		}
		w.noteContainer(one.Shard, c, one.Record.Arrival, one.Record.Arrival)
		if p.drops {
			w.exemptRepeats(one.Shard, one.Record.Data, c.ids)
		}
		w.note(l, "put", one.Shard.Name, len(c.ids), c.ids[0].String()+" "+number)
		w.duties.late = w.now()
	}
}

// exemptRepeats notes which records of a container need not be handled, because the stream has an
// earlier record with the same number. The judge of producers checks that handlers get one copy of
// each confirmed record.
func (w *world) exemptRepeats(sh *model.Shard, data []byte, ids []judge.ID) {
	var a aggregate.Aggregate
	if packed, _ := a.Parse(data); !packed {
		return
	}
	for i := range a.Len() {
		n := a.Record(i).Number()
		if n.IsZero() || w.producing.strays[ids[i]] {
			continue
		}
		before := w.producing.seen[n]
		if len(before) > 0 {
			w.judge.Exempt(ids[i])
		}
		if slices.ContainsFunc(before, func(of *model.Shard) bool { return descends(sh, of) }) {
			id, _ := idOf(a.Record(i).Data())
			w.producing.judge.Repeat(id)
		}
		w.producing.seen[n] = append(before, sh)
	}
}

// descends reports whether a shard is another one, or descends from it.
func descends(sh, from *model.Shard) bool {
	return sh == from || slices.ContainsFunc(sh.Parents, func(p *model.Shard) bool { return descends(p, from) })
}

// isOfProducer reports whether a scheduled fault concerns producers.
func isOfProducer(f Fault) bool {
	return slices.Contains([]Fault{ProducerCrashes, ProducerCloses, ProducerCutOff}, f)
}

// befallsProducer carries out a scheduled fault of a producer.
func (w *world) befallsProducer(f Fault, id string) {
	d := roll(w.seed, id)
	var living []*making
	for _, m := range w.producing.makers {
		if m.now != nil && !m.now.stopping {
			living = append(living, m.now)
		}
	}
	if len(living) == 0 || !w.strikes(f, id) {
		return
	}
	m := living[d.below(len(living))]
	w.note(m.life, "FAULT", "", 0, id)
	switch f {
	case ProducerCrashes:
		w.crashProducer(m)
	case ProducerCloses:
		w.closeProducer(m, d.often(0, 20*time.Second))
	case ProducerCutOff:
		m.unread = w.now() + int64(d.often(time.Second, 40*time.Second))
	}
}
