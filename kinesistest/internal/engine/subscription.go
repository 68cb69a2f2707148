package engine

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// An event has at most so much, unless a single record is larger.
const (
	maxEventRecords = 10_000
	maxEventBytes   = 1 << 20
)

// hold is what a consumer has with a shard: at most one subscription at a time,
// and budgets that outlive it.
type hold struct {
	sub          *Subscription // nil if there is none
	last         time.Time     // when the last one began
	calls, bytes bucket
}

// refuses reports whether it is too early for another subscription. With strict
// it does not matter whether the last one has ended.
func (h *hold) refuses(now time.Time, strict bool) bool {
	return (h.sub != nil || strict && !h.last.IsZero()) && now.Sub(h.last) < takeoverAfter
}

// Subscription is a consumer's subscription to a shard. The engine's lock guards
// it. Whoever made it calls [Engine.Next] in a loop, and [Engine.Unsubscribe].
type Subscription struct {
	stream    *stream
	consumer  *consumer
	shard     *shard
	hold      *hold
	index     uint64 // of the next record
	began     time.Time
	sent      time.Time // when the last event was, at first when it began
	resume    time.Time // until then the budget has no room
	taken     bool      // by another call
	unlimited bool

	woken chan struct{} // has one element when somebody should look
	ended chan struct{} // closed by Unsubscribe
}

// Woken tells that something happened that Next should look at. It may do so in
// vain.
func (sub *Subscription) Woken() <-chan struct{} { return sub.woken }

func (sub *Subscription) wake() {
	select {
	case sub.woken <- struct{}{}:
	default:
	}
}

// wake has all subscriptions to the shard look at it.
func (sh *shard) wake() {
	for _, sub := range sh.subs {
		sub.wake()
	}
}

// wake has all subscriptions to the stream look at it.
func (s *stream) wake() {
	for _, sh := range s.shards {
		sh.wake()
	}
}

// wake has all subscriptions of the consumer look at it.
func (c *consumer) wake() {
	for _, h := range c.holds {
		if h.sub != nil {
			h.sub.wake()
		}
	}
}

// subscribe makes a subscription that begins with a record, and takes over the
// one that is there. e.mu is held.
func (c *call) subscribe(s *stream, con *consumer, sh *shard, h *hold, index uint64) *Subscription {
	if old := h.sub; old != nil {
		old.taken = true
		old.wake()
	}
	sub := &Subscription{
		stream: s, consumer: con, shard: sh, hold: h, index: index, began: c.now, sent: c.now, unlimited: c.unlimited,
		woken: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	h.sub, h.last = sub, c.now
	sh.subs = append(sh.subs, sub)
	return sub
}

// Unsubscribe ends a subscription, which may be nil or have ended.
func (e *Engine) Unsubscribe(sub *Subscription) {
	if sub == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if sub.hold.sub == sub {
		sub.hold.sub = nil
	}
	if i := slices.Index(sub.shard.subs, sub); i >= 0 {
		sub.shard.subs = slices.Delete(sub.shard.subs, i, i+1)
		close(sub.ended)
	}
}

// Step is what is to happen with a subscription.
type Step struct {
	Event *Event // to be sent, if not nil
	End   bool   // the stream ends, after the event if there is one
	Err   error  // with this *Error as an exception, if not nil
	// without any of these: until there may be something, unless Woken tells so before
	Wait time.Duration
}

// Event is one event of a subscription. What it refers to never changes.
type Event struct {
	records      []record
	bytes        int64
	behind       int64 // milliseconds behind the tip
	continuation string
	end          bool    // of the shard
	children     []child // then
}

// Next works out what a subscription does now. An event that it returns counts
// as sent.
func (e *Engine) Next(now time.Time, sub *Subscription) Step {
	e.mu.Lock()
	defer e.mu.Unlock()
	if over, err := e.isOver(now, sub); over {
		return Step{End: true, Err: err}
	}
	sh := sub.shard
	var p page
	if now.Before(sub.resume) {
		p = sh.read(now, sub.index, 0, 0)
	} else if p = sh.read(now, sub.index, maxEventRecords, maxEventBytes); !sub.affords(now, p.bytes) {
		p = sh.read(now, sub.index, 0, 0)
	}
	sub.index = p.next
	idle := sub.sent.Add(e.cfg.IdleEvents)
	if len(p.records) > 0 || p.end || !now.Before(idle) {
		ev := sub.send(now, p, e.cfg.EndOnEmptyPage)
		return Step{Event: ev, End: ev.end}
	}
	look := earliest(idle, sub.began.Add(e.cfg.SubscriptionLife))
	if now.Before(sub.resume) {
		look = earliest(look, sub.resume)
	}
	if steps := sub.stream.steps; len(steps) > 0 {
		look = earliest(look, steps[0].at)
	}
	return Step{Wait: look.Sub(now)}
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// isOver reports whether a subscription has ended, and with which exception if
// with any. Whoever deregisters a consumer or deletes a stream ends it whatever
// else happens to it. e.mu is held.
func (e *Engine) isOver(now time.Time, sub *Subscription) (bool, error) {
	s, con, sh := sub.stream, sub.consumer, sub.shard
	switch {
	case e.bySerial[s.serial] != s || !e.settle(s, now):
		return true, notFound("Stream %s under account %s not found: it was deleted.", s.name, e.cfg.Account)
	case s.consumers[con.name] != con || con.status != active:
		return true, notFound("Consumer %s of stream %s under account %s not found: it was deregistered.", con.name, s.name, e.cfg.Account)
	case sub.taken && e.cfg.TakeoverEndsCleanly:
		return true, nil
	case sub.taken:
		return true, inUse("Another call of SubscribeToShard took over the subscription of consumer %s to shard %s in stream %s under account %s.", con.name, sh.id, s.name, e.cfg.Account)
	case now.Sub(sub.began) >= e.cfg.SubscriptionLife:
		return true, nil
	case e.shard(s, sh.number, now) != sh:
		return true, notFound("Shard %s in stream %s under account %s does not exist any more: its records left the retention period.", sh.id, s.name, e.cfg.Account)
	}
	return false, nil
}

// affords reports whether the budget has room for an event. If not, resume is
// when it will.
func (sub *Subscription) affords(now time.Time, bytes int64) bool {
	b := &sub.hold.bytes
	if sub.unlimited || bytes == 0 || b.has(now, fanOutBytesPerSecond, float64(bytes)) {
		return true
	}
	sub.resume = now.Add(b.until(now, fanOutBytesPerSecond, float64(bytes)))
	return false
}

// send makes an event of a page.
func (sub *Subscription) send(now time.Time, p page, endOnEmptyPage bool) *Event {
	ev := &Event{records: p.records, bytes: p.bytes, behind: p.behind, end: p.end}
	n := len(p.records)
	if n > 0 && endOnEmptyPage {
		ev.end = false
	}
	switch {
	case ev.end:
		ev.children = sub.shard.children
	case n > 0:
		ev.continuation = p.records[n-1].sequence
	default:
		ev.continuation = sub.shard.between(p.next, now)
	}
	if !sub.unlimited && p.bytes > 0 {
		sub.hold.bytes.useRead(now, fanOutBytesPerSecond, float64(p.bytes))
	}
	sub.sent = now
	return ev
}

// Write writes the payload of the event.
func (ev *Event) Write(out *codec.Encoder) {
	growFor(out, ev.bytes, len(ev.records))
	out.Map()
	out.Key("Records")
	writeRecords(out, ev.records)
	if ev.end {
		out.Key("MillisBehindLatest").Int(ev.behind)
		out.Key("ChildShards")
		writeChildren(out, ev.children)
	} else {
		out.Key("ContinuationSequenceNumber").Text(ev.continuation)
		out.Key("MillisBehindLatest").Int(ev.behind)
	}
	out.End()
}

// SubscriptionInfo tells of a subscription that has not ended.
type SubscriptionInfo struct {
	Consumer, Shard string
	Began           time.Time
}

// Subscriptions are those to the shards of a stream, by consumer and shard.
func (e *Engine) Subscriptions(now time.Time, name string) (found []SubscriptionInfo, err error) {
	err = e.view(now, name, func(_ *call, s *stream) error {
		for _, con := range slices.SortedFunc(maps.Values(s.consumers), func(a, b *consumer) int { return strings.Compare(a.name, b.name) }) {
			for _, number := range slices.Sorted(maps.Keys(con.holds)) {
				if sub := con.holds[number].sub; sub != nil {
					found = append(found, SubscriptionInfo{con.name, shardID(number), sub.began})
				}
			}
		}
		return nil
	})
	return found, err
}
