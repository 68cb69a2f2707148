package sim

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/weir-go/weir/internal/proof/sim/model"
)

// events is the body of an answer to SubscribeToShard. A read waits at the gate for the next event
// if there is no data.
type events struct {
	l      *life
	about  string
	ctx    context.Context
	cancel context.CancelFunc
	got    bytes.Reader
	err    error

	sub *model.Subscription // only the driver uses it
}

func newEvents(l *life, about string, ctx context.Context, first []byte, sub *model.Subscription) *events {
	e := &events{l: l, about: about, sub: sub}
	e.ctx, e.cancel = context.WithCancel(ctx)
	e.got.Reset(first)
	return e
}

// Read returns data of the event stream, and waits for an event if there is none.
func (e *events) Read(b []byte) (int, error) {
	for e.got.Len() == 0 {
		if e.err != nil {
			return 0, e.err
		}
		r := e.l.w.gate.wait(&call{life: e.l, op: "event", about: e.about, ctx: e.ctx, body: e})
		if r.err != nil {
			return 0, r.err
		}
		m := r.value.(sent)
		e.got.Reset(m.bytes)
		e.err = m.then
	}
	return e.got.Read(b)
}

// Close ends the subscription.
func (e *events) Close() error {
	e.cancel()
	return nil
}

// sent is data on a connection, with its fault if it has one.
type sent struct {
	bytes   []byte
	then    error
	reached uint64 // sequence number of the last complete record; 0 if there is none
}

const (
	quietEvent = 3 * time.Second // interval at which the service sends something
	quietLook  = 250 * time.Millisecond
)

// admitEvent decides the next event of a subscription, and its time.
func (w *world) admitEvent(c *call, e *events) {
	l, d := c.life, w.dice(c, "")
	if l.unread > w.now() {
		w.keepsFromReading(l, c.about, silence)
		if d.chance(.5) {
			w.after(time.Millisecond, func() { w.answer(c, reply{err: errConnection}) })
		}
		return
	}
	f := w.pick(c, &d, EventTwice, EventCut, EventSilent, EventEnds, EventError, EventSlow)
	w.note(l, c.op, c.about, c.n, string(f))
	switch f {
	case EventSilent:
		w.keepsFromReading(l, c.about, silence)
		return
	case EventSlow:
		w.keepsFromReading(l, c.about, silence)
	case EventCut, EventError:
		w.keepsFromReading(l, c.about, 2*retryMax)
	}
	there := d.often(20*time.Millisecond, 300*time.Millisecond)
	if l.paused > w.now() {
		there += time.Duration(l.paused - w.now())
	}
	if f == EventSlow {
		there += d.span(time.Second, 25*time.Second)
	}
	before, after := w.crashes(c)
	if before {
		w.after(there, func() { w.crash(l, string(CrashWaits)) })
		return
	}
	var again func()
	until := w.now() + int64(there+quietEvent)
	again = func() {
		now := w.clock()
		if c.gone.Load() {
			return
		}
		if l.unread > w.now() { // the event does not arrive
			w.keepsFromReading(l, c.about, silence)
			return
		}
		if f == "" && w.now() < until && e.sub.Quiet(now) {
			w.after(quietLook, again)
			return
		}
		got := w.event(e, f, now)
		if after {
			w.crash(l, string(CrashWaits))
			return
		}
		w.answer(c, reply{value: got})
	}
	w.after(there, again)
}

func (w *world) event(e *events, f Fault, now time.Time) sent {
	switch f {
	case EventEnds:
		return sent{then: io.EOF}
	case EventError:
		return sent{bytes: model.Trouble(), then: io.EOF}
	case EventTwice:
		if b := e.sub.Again(); b != nil {
			return sent{bytes: b}
		}
	}
	b := e.sub.Next(model.Whim{}, now)
	switch {
	case b == nil:
		return sent{then: io.EOF}
	case f == EventCut:
		return sent{bytes: b[:len(b)*2/3], then: errConnection}
	}
	return sent{bytes: b, reached: e.sub.Reached()}
}

// silence is how long a subscribed shard may be silent because of its connection. It covers the
// detection of the silence and the time until another subscription is allowed.
const silence = 60 * time.Second
