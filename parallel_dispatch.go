package weir

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/lanes"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/lease"
)

// dispatcher has the keys of a shard be handled side by side, with Options.Parallel. It is there
// while the shard has something to handle. The loop adds what was read, lanes.Span says what may be
// handled now, and the handler is called by goroutines that go on with another key when they are
// done with one, and end when none may begin.
//
// The term asks it for its mark, so it never calls the term with its mutex held; see package lock.
type dispatcher struct {
	l        *shardLoop
	share    memory.Share
	going    sync.WaitGroup  // goroutines that call the handler
	stopping context.Context // ends when nothing new is to be begun
	endsNow  context.CancelFunc
	changed  chan struct{} // sent to when there is more room and the loop waits for it
	waits    bool          // for a place; with the lock of those

	mu      lock.Mutex[lock.Runner]
	span    *lanes.Span
	paused  pauses
	timer   *time.Timer    // until the first pause is over
	all     []*keyDelivery // that were made
	spare   []*keyDelivery // … and are used again
	batches []Batch        // that were not used yet, for the handler
	records []Record       // … with room for more
	made    int            // batches, the last time
	behind  time.Duration
	starts  bool  // a goroutine is to begin with what it was given
	owned   bool  // a call has the shard's own place
	looks   bool  // the loop waits for changed
	parked  bool  // … or there is no loop, which is woken when all is done
	stops   bool  // nothing new is begun
	err     error // that ends Run
}

// keyDelivery is a delivery of records of one key. It is used again for other records when these
// are done: what the handler may keep, the batch and its records, is not a part of it.
type keyDelivery struct {
	handover
	of *dispatcher
	keyCall
}

// keyCall is what a keyDelivery is at.
type keyCall struct {
	// The call has one of the worker's places, or the one that the shard has beside them for its
	// oldest record; neither when it rests, see rest.
	place, own bool

	// With the lock of the dispatcher.
	use     uint64      // of the delivery
	lane    *lanes.Lane // nil when it is over
	noted   int         // of its records that are done
	works   bool        // a call is going on
	began   mono.Time   // … since then
	resting int         // goroutines of the handler that wait until older records are done
	state   ShardState
	since   mono.Time // of state
	attempt int
	err     error // of the last call, nil if that did not fail
	failing mono.Time
	at      lease.Failing // at what it fails, if it does
	due     mono.Time     // when its pause is over
}

// newDispatcher makes one for a shard that has something to handle.
func (l *shardLoop) newDispatcher() *dispatcher {
	l.needHandler()
	o := &l.in.opts
	s := &dispatcher{l: l, span: lanes.New(o.Parallel.Keys, o.Batch), changed: make(chan struct{}, 1)}
	s.span.MostBytes = o.BatchBytes
	s.stopping, s.endsNow = context.WithCancel(context.Background())
	l.in.budget.Open(&s.share)
	l.mu.Lock()
	l.dispatcher = s
	l.mu.Unlock()
	l.term.SetMark(s)
	return s
}

// dispatcherNow is the dispatcher, nil if there is none, for other goroutines than the loop's.
func (l *shardLoop) dispatcherNow() *dispatcher {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dispatcher
}

// Mark is the position before which everything is done: it is the term's [group.Mark].
func (s *dispatcher) Mark() Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.span.Mark()
}

// add adds records that were read, when there is room for them. upTo is as for [lanes.Span.Add]. It
// fails when the term is over or the lease is wanted back, and when the handler ends Run.
func (s *dispatcher) add(run []source.Record, behind time.Duration, upTo Position) error {
	bytes := delivery.Mark(run, s.l.handles.from)
	for i := range run {
		bytes += len(run[i].Key)
	}
	err := s.await(func() bool { return s.roomFor(len(run), bytes) })
	if err == nil {
		err = s.share.Keep(s.l.term.Reading(), bytes)
	}
	if err != nil {
		return err
	}
	known := s.l.known() // asks the term
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = behind
	before := s.span.Bytes()
	if skipped := s.span.Add(run, bytes, upTo, mono.Now(), known); skipped > 0 {
		s.l.in.counted.recordsSkipped.Add(uint64(skipped))
		s.share.Give(before + bytes - s.span.Bytes())
	}
	s.begin()
	return nil
}

// roomFor reports whether so many records more may be there. It is called with the lock held.
func (s *dispatcher) roomFor(n, bytes int) bool {
	_, _, since := s.span.Oldest()
	return s.l.in.opts.Parallel.roomFor(s.span.Len()+n, s.span.Bytes()+bytes, n, mono.Since(since))
}

// roomFor reports whether a span may become so long, by n records more. Whatever comes is taken
// when there is nothing else.
func (p *Parallel) roomFor(length, bytes, n int, age time.Duration) bool {
	return length == n || length <= p.Span && bytes <= p.SpanBytes && (p.SpanAge == 0 || age < p.SpanAge)
}

// await waits until there is what ok, called with the lock held, reports.
func (s *dispatcher) await(ok func() bool) error {
	for {
		s.mu.Lock()
		there, stops, err := ok(), s.stops, s.err
		s.looks = !there && !stops
		s.mu.Unlock()
		switch {
		case err != nil:
			return err
		case stops:
			return errForHeir
		case there:
			return nil
		}
		select {
		case <-s.changed:
		case <-s.stopping.Done():
		case <-s.l.term.Reading().Done():
			return errForHeir
		}
	}
}

// end begins nothing new, waits for the calls that are going on, and has the term keep how far
// everything is done. It returns the error with which the handler ends Run.
func (s *dispatcher) end() error {
	s.mu.Lock()
	s.stop(nil)
	s.mu.Unlock()
	s.going.Wait()
	l := s.l
	l.term.SetMark(nil)
	s.share.Close()
	note := lease.Deaths{At: l.term.At(), Since: l.term.Lease.Epoch}
	s.mu.Lock()
	note.Beyond = s.span.Beyond(l.mode(), note.RoomBeyond())
	s.span.Close()
	s.mu.Unlock()
	l.noteBeyond(note)
	l.mu.Lock()
	l.dispatcher = nil
	l.mu.Unlock()
	return s.err
}

// What follows is called with the lock held, but for those who say so.

// stop has nothing new be begun. With an error it ends Run.
func (s *dispatcher) stop(err error) {
	if !s.stops {
		s.stops = true
		s.endsNow()
		if s.timer != nil {
			s.timer.Stop()
		}
	}
	if s.err == nil {
		s.err = err
	}
}

// pump begins what may be begun. It is called without the lock.
func (s *dispatcher) pump() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
}

// begin has a goroutine call the handler with what may be begun, which has another one do the same
// when it runs. Until then those that are at work may come to all there is: where the handler is
// quick, few are made.
func (s *dispatcher) begin() {
	if s.stops || s.starts {
		return
	}
	b := s.mayBegin(false)
	if b == nil {
		return
	}
	b.runs(mono.Now())
	s.starts = true
	s.going.Add(1)
	go s.work(b)
}

// started notes that a goroutine that was made runs. It is called without the lock.
func (s *dispatcher) started() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts = false
	s.begin()
}

// mayBegin is what a call may begin with, nil if there is nothing. has says that the call has a
// place, which it keeps if that is needed.
func (s *dispatcher) mayBegin(has bool) *keyDelivery {
	lane, oldest := s.span.MayBegin()
	own := oldest && !s.owned
	if lane == nil || !own && !has && !s.l.in.places.take(s) {
		return nil
	}
	s.span.Begin(lane)
	b, paused := lane.Of.(*keyDelivery)
	if !paused {
		b = s.delivery(lane)
	}
	b.place, b.own = !own, own
	s.owned = s.owned || own
	return b
}

// delivery is a delivery of the records of a lane.
func (s *dispatcher) delivery(lane *lanes.Lane) *keyDelivery {
	last := len(s.spare) - 1
	if last < 0 {
		b := s.newKeyDelivery()
		s.all, s.spare, last = append(s.all, b), append(s.spare, b), 0
	}
	b := s.spare[last]
	s.spare = s.spare[:last]
	b.begin(lane, s.behind)
	b.batch, b.first = s.handed(lane.Records)
	return b
}

// newKeyDelivery returns a delivery that is reused for the shard's batches, one after the other.
func (s *dispatcher) newKeyDelivery() *keyDelivery {
	l := s.l
	b := &keyDelivery{of: s}
	b.loop, b.From, b.key, b.ctx = l, l.handles.from, b, handlerContext{l.term.Context(), l.in.values}
	return b
}

// begin makes b the delivery of the records of a lane. Only the fields that newKeyDelivery sets
// stay, because a handler that kept an old batch may read them at any time. Nothing else may
// prepare b for other records.
func (b *keyDelivery) begin(lane *lanes.Lane, behind time.Duration) {
	use := b.Begin(delivery.Batch{Behind: behind}, delivery.Marked(lane.Records))
	b.calling, b.keyCall = calling{}, keyCall{lane: lane, use: use}
	lane.Of = b
}

// handed is a batch and copies of records for a handler that may keep them, in memory of which some
// is made at a time.
func (s *dispatcher) handed(read []source.Record) (*Batch, []Record) {
	if len(s.batches) == 0 {
		s.made = min(max(2*s.made, 8), 128)
		s.batches = make([]Batch, s.made)
	}
	b := &s.batches[0]
	s.batches = s.batches[1:]
	if cap(s.records)-len(s.records) < len(read) {
		s.records = make([]Record, 0, max(len(read), 2*s.made))
	}
	from := len(s.records)
	s.records = append(s.records, whole(read)...)
	return b, s.records[from:len(s.records):len(s.records)]
}

// runs notes that a call begins.
func (b *keyDelivery) runs(now mono.Time) {
	b.works, b.began = true, now
	b.state, b.since = ShardHandling, now
}

// work calls the handler until nothing may be begun. It is called without the lock.
func (s *dispatcher) work(b *keyDelivery) {
	defer s.going.Done()
	defer func() {
		if b != nil { // the handler has ended the goroutine
			s.settle(b, time.Now(), 0, false, Stop(errGoexit))
		}
	}()
	s.started()
	for now := time.Now(); b != nil; {
		after, pause, over, err := s.l.step(&b.handover, now)
		b, now = s.settle(b, after, pause, over, err), after
	}
}

// settle takes in what a step came to by now, and returns what to go on with. It is called without
// the lock.
func (s *dispatcher) settle(b *keyDelivery, now time.Time, pause time.Duration, over bool, err error) (next *keyDelivery) {
	done := b.Done()

	s.mu.Lock()
	if b.resting > 0 {
		b.resting = 0
		s.span.Work()
	}
	place := b.place
	b.works = false
	s.done(b, done)
	ends := err != nil || s.stops && !over
	switch {
	case ends:
		s.span.Pause(b.lane) // for good
		b.lane = nil
		if err != nil {
			s.stop(ended(err))
		}
	case over:
		s.span.Return(b.lane)
		b.lane = nil
	case pause == 0:
		b.runs(mono.Of(now))
		next, place = b, false // it keeps the one that it has
	default:
		s.span.Pause(b.lane)
		b.state, b.since = ShardRetrying, mono.Now()
		b.due = b.since.Add(pause)
		heap.Push(&s.paused, b)
		s.wakeAt()
	}
	if next == nil && b.own {
		b.own, s.owned = false, false
	}
	if over && err == nil {
		s.spare = append(s.spare, b)
	}
	if next == nil && !s.stops {
		if next = s.mayBegin(place && !s.l.in.places.contended()); next != nil {
			next.runs(mono.Of(now))
			place = place && !next.place
		}
		s.begin()
	}
	s.tellChange()
	wakes := s.parked && (s.stops || s.span.Len() == 0)
	s.parked = s.parked && !wakes
	s.mu.Unlock()

	if ends {
		b.close()
	}
	if place {
		s.l.in.places.give()
	}
	if stop := ended(err); stop != nil {
		s.l.term.Fail(stop)
	}
	if wakes {
		s.l.term.Wake()
	}
	return next
}

// rest has others begin while a call waits until what is older is done: else calls that wait could
// have all places that the older ones need. It returns what is to follow. It is called without the
// lock.
func (s *dispatcher) rest(b *keyDelivery, use uint64) (goOn func()) {
	gives := false
	s.mu.Lock()
	if b.use != use || b.lane == nil || b.state != ShardHandling {
		s.mu.Unlock()
		return func() {}
	}
	if b.resting++; b.resting == 1 {
		s.span.Rest()
		s.owned = s.owned && !b.own
		gives, b.place, b.own = b.place, false, false
		s.begin()
	}
	s.mu.Unlock()
	if gives {
		s.l.in.places.give()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if b.use != use || b.resting == 0 { // the call is over
			return
		}
		if b.resting--; b.resting == 0 {
			s.span.Work()
		}
	}
}

// noteDone notes that so many records of a delivery are done, if it is still used for them. It is
// called without the lock.
func (s *dispatcher) noteDone(b *keyDelivery, use uint64, done int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.use == use && b.lane != nil {
		s.done(b, done)
		s.begin() // another record is the oldest
		s.tellChange()
	}
}

func (s *dispatcher) done(b *keyDelivery, done int) {
	if n := done - b.noted; n > 0 {
		before := s.span.Bytes()
		s.span.Done(b.lane, n)
		b.noted = done
		if n := before - s.span.Bytes(); n > 0 {
			s.share.Give(n)
		}
	}
}

// tellChange has the loop look again whether there is room.
func (s *dispatcher) tellChange() {
	if s.looks {
		s.looks = false
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
}
