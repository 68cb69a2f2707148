package sim

import (
	"slices"
	"time"

	"github.com/weir-go/weir/internal/proof/sim/model"
)

// The faults of calls to Kinesis.
var (
	ofEach         = []Fault{Throttled, ServerError, ServiceSlow, Silent}
	ofRecords      = append(slices.Clone(ofEach), BrokenBody, BrokenAnswer, Expired, EmptyPage, ShortPage, NoChildren)
	ofIterator     = append(slices.Clone(ofEach), AtForAfter)
	ofSubscription = append(slices.Clone(ofEach), InUse, AtForAfter)
	ofService      = append(slices.Clone(ofEach), BrokenBody)
)

// admitRead decides the fate of a call to Kinesis.
func (w *world) admitRead(c *call, asked *model.Call) {
	l, d := c.life, w.dice(c, "")
	second := repeatable(asked.Op) && l.tries.arrives(c, w.now())
	there := d.often(2*time.Millisecond, 60*time.Millisecond)
	if l.paused > w.now() { // even if all pauses end earlier
		there += time.Duration(l.paused - w.now())
		w.keepsFromReading(l, c.about, min(there, callWithin)+retryMax)
	}
	if l.unread > w.now() {
		w.keepsFromReading(l, c.about, callWithin+retryMax)
		if d.chance(.5) {
			w.after(there, func() { w.answer(c, reply{err: errConnection}) })
		}
		return
	}
	kinds := ofService
	var whim model.Whim
	switch asked.Op {
	case "GetRecords":
		kinds = ofRecords
	case "GetShardIterator":
		kinds = ofIterator
	case "SubscribeToShard":
		kinds = ofSubscription
	}
	f := w.pick(c, &d, kinds...)
	w.note(l, c.op, c.about, c.n, string(f))
	switch f {
	case "", EmptyPage, ShortPage, NoChildren, AtForAfter:
	case ServiceSlow, Silent:
		w.hangs(c, second)
	default:
		w.keepsFromReading(l, c.about, retryMax)
	}
	back := d.often(0, 40*time.Millisecond)
	fails := func(status int, code string) {
		w.serves(c, there, back, func() httpAnswer { return httpAnswer{Answer: model.Fail(status, code, "sim"), date: w.date()} })
	}
	before, after := w.crashes(c)
	if before {
		w.after(there, func() { w.crash(l, string(CrashWaits)) })
		return
	}
	var broken, garbled bool
	switch f {
	case Throttled:
		code := "ProvisionedThroughputExceededException"
		if asked.Op != "GetRecords" && asked.Op != "GetShardIterator" {
			code = "LimitExceededException"
		}
		fails(400, code)
		return
	case ServerError:
		if d.chance(.5) {
			fails(500, "InternalFailure")
		} else {
			w.after(there, func() { w.answer(c, reply{err: errConnection}) })
		}
		return
	case InUse:
		fails(400, "ResourceInUseException")
		return
	case Expired:
		fails(400, "ExpiredIteratorException")
		return
	case Silent:
		return
	case ServiceSlow:
		there += d.span(time.Second, 18*time.Second)
	case BrokenBody:
		broken = true
	case BrokenAnswer:
		garbled = true
	case EmptyPage:
		whim.Empty = true
	case ShortPage:
		whim.Most = 1 + d.below(3)
	case NoChildren:
		whim.NoKids = true
	case AtForAfter:
		whim.FromStart = true
	}
	if d := w.dice(c, "other"); asked.Op != "GetRecords" && asked.Op != "SubscribeToShard" {
		garbled = w.also(c, &d, Garbled)
		if asked.Op == "ListShards" && w.also(c, &d, InPages) {
			whim.Few = 1 + d.below(4)
		}
		if garbled {
			w.keepsFromReading(l, c.about, retryMax)
		}
	}
	serve := func() (a httpAnswer) {
		asked := c.body.(*model.Call) // a copy, so that the outer variable stays on the stack
		if asked.Tip() && !broken {
			l.pins[asked.Stream] = w.now()
		}
		a.broken, a.date = broken, w.date()
		if asked.Op == "SubscribeToShard" {
			a.sub, a.Answer = w.service.Subscribe(*asked, whim, w.clock())
		} else {
			a.Answer = w.service.Do(*asked, whim, w.clock())
		}
		if garbled {
			a.Reached, a.Body = 0, a.Body[:len(a.Body)*2/3]
		}
		return a
	}
	if after {
		w.after(there, func() { serve(); w.crash(l, string(CrashWaits)) })
		return
	}
	w.serves(c, there, back, serve)
}

// serves schedules the execution and the answer of a call to Kinesis. If the answer comes soon,
// both happen at once.
func (w *world) serves(c *call, there, back time.Duration, serve func() httpAnswer) {
	if back < 10*time.Millisecond {
		w.after(there, func() { w.answer(c, reply{value: serve()}) })
		return
	}
	var a httpAnswer
	w.unseen(there, func() { a = serve() })
	w.after(there+back, func() { w.answer(c, reply{value: a}) })
}
