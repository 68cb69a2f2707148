package engine

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// The size limits of an event. A single larger record is still sent.
const (
	maxEventRecords = 10_000
	maxEventBytes   = 1 << 20
)

// hold is the state of one pair of consumer and shard. It contains the current subscription, if
// any, and the limits, which outlive a subscription.
type hold struct {
	sub          *Subscription // nil if there is no subscription
	last         time.Time     // when the last subscription began
	calls, bytes bucket
}

// refuses reports whether it is too early for another subscription. If strict is true, a
// subscription blocks the next one even after it has ended.
func (h *hold) refuses(now time.Time, strict bool) bool {
	return (h.sub != nil || strict && !h.last.IsZero()) && now.Sub(h.last) < takeoverAfter
}

// Subscription is the subscription of a consumer to a shard. The engine's lock guards it. The code
// that created it calls [Engine.Next] in a loop, and finally [Engine.Unsubscribe].
type Subscription struct {
	stream    *stream
	consumer  *consumer
	shard     *shard
	hold      *hold
	index     uint64 // index of the next record
	began     time.Time
	sent      time.Time // time of the last event, or of the beginning of the subscription
	resume    time.Time // the byte limit has no room before this time
	taken     bool      // another call has taken over
	unlimited bool

	woken chan struct{} // contains an element if Next should be called
	ended chan struct{} // closed by Unsubscribe
}

// Woken returns a channel that signals when Next should be called again. The signal may be
// spurious.
func (sub *Subscription) Woken() <-chan struct{} { return sub.woken }

func (sub *Subscription) wake() {
	select {
	case sub.woken <- struct{}{}:
	default:
	}
}

// wake wakes all subscriptions to the shard.
func (sh *shard) wake() {
	for _, sub := range sh.subs {
		sub.wake()
	}
}

// wake wakes all subscriptions to the stream.
func (s *stream) wake() {
	for _, sh := range s.shards {
		sh.wake()
	}
}

// wake wakes all subscriptions of the consumer.
func (c *consumer) wake() {
	for _, h := range c.holds {
		if h.sub != nil {
			h.sub.wake()
		}
	}
}

// subscribe creates a subscription that begins with the record at index. It takes over an existing
// subscription. The caller holds e.mu.
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

// Unsubscribe ends a subscription. It does nothing if the subscription is nil or has ended.
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

// Step describes what the caller of Next has to do.
type Step struct {
	Event *Event // send this event, if not nil
	End   bool   // end the stream, after the event if there is one
	Err   error  // if not nil, end the stream with this *Error as an exception
	// Wait is set if no other field is. It is the time until the next call of Next, unless Woken
	// signals earlier.
	Wait time.Duration
}

// Event is one event of a subscription. Its data does not change.
type Event struct {
	records      []record
	bytes        int64
	behind       int64 // milliseconds behind the tip of the shard
	continuation string
	end          bool    // the shard has ended
	children     []child // child shards of a shard that has ended
}

// Next returns the next step of a subscription. The caller must send a returned event, because the
// subscription moves past it.
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

// isOver reports whether a subscription has ended. It returns the exception to send, if any. If the
// consumer was deregistered or the stream deleted, that reason takes precedence. The caller holds
// e.mu.
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

// affords reports whether the byte limit has room for an event. If not, it sets resume to the time
// at which the limit will have room.
func (sub *Subscription) affords(now time.Time, bytes int64) bool {
	b := &sub.hold.bytes
	if sub.unlimited || bytes == 0 || b.has(now, fanOutBytesPerSecond, float64(bytes)) {
		return true
	}
	sub.resume = now.Add(b.until(now, fanOutBytesPerSecond, float64(bytes)))
	return false
}

// send converts a page to an event and moves the subscription past it.
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

// Write writes the payload of the event to out.
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

// SubscriptionInfo describes a live subscription.
type SubscriptionInfo struct {
	Consumer, Shard string
	Began           time.Time
}

// Subscriptions returns the live subscriptions to the shards of a stream, sorted by consumer and
// shard.
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
