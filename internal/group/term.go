package group

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Term is one period of holding one lease, from the orders that assigned it to its release, loss or
// end. The beat loop makes it. The reader that Config.Read runs for it moves it forward. Its
// methods may be called concurrently, except those that are for the reader.
type Term struct {
	Lease Held

	stretch context.Context // the present period of trust
	trust   *trust
	*calls

	mu       lock.Mutex[lock.Term]
	reader   atomic.Uint32 // running, parked or over; Wake takes no mutex
	fixed    bool          // at no longer changes; guarded by far
	ended    bool          // Context has ended, before trust; why is its cause
	draining bool          // the reader must begin nothing new
	finished bool          // at is End; children may be set
	returned bool          // the reader has returned
	wanted   bool          // the reader returned because the lease was requested back
	lost     bool          // according to the store the lease is no longer ours at this epoch
	stalled  bool          // the reader gave the lease up
	left     bool          // the reader gave the lease up and was abandoned
	load     lease.Load
	told     lease.Load // load as stored
	toldAt   mono.Time

	next    Resumer  // where a parked reader continues; owned by the reader
	reading *awaited // nil until the reader waits with Reading, and while it is parked
	rare    *rare    // nil for most terms

	// far guards at, saved, mark and fixed. It is separate from mu so that At and Saved never wait
	// for mu.
	far   lock.Mutex[lock.Progress]
	at    shard.Position // everything before it was handled
	saved shard.Position // stored
	mark  *marked        // nil until a handler has run
}

// marked holds the mark of the running handler, nil if none is running.
type marked struct{ of Mark }

// calls are the functions that a term calls.
type calls struct {
	poke func() // triggers a heartbeat
	gone func() // called once, when Run need not wait for the reader any more
}

// Held is the reader's input: the lease as of the start of the term.
type Held struct {
	lease.Key
	Range    shard.HashRange
	Position shard.Position // where to resume
	Epoch    uint64
	Load     lease.Load
}

// rare holds fields that few terms need at a time.
type rare struct {
	why      error    // the cause with which Context ended; may be nil
	waits    *awaited // nil until a goroutine waits with Context
	err      error    // returned by the reader
	children []shard.Shard
	waiters  []waiter
	// deaths of owners at the position where the term began, or as noted by the reader
	deaths lease.Deaths
	note   *note // to be stored, nil for nothing
}

// rarely returns the rare fields for writing. The caller holds the lock.
func (t *Term) rarely() *rare {
	if t.rare == nil {
		t.rare = new(rare)
	}
	return t.rare
}

// seldom returns the rare fields for reading.
func (t *Term) seldom() rare {
	if t.rare == nil {
		return rare{}
	}
	return *t.rare
}

// awaited is a context that a goroutine waits with.
type awaited struct {
	context.Context
	end context.CancelCauseFunc
}

func await(from context.Context) *awaited {
	ctx, end := context.WithCancelCause(from)
	return &awaited{ctx, end}
}

// A load is usually reported along with a position. It gets its own write if it differs by this
// many classes and was not reported for this long.
const (
	loadStep  = 2
	loadPause = 30 * time.Second
)

type waiter struct {
	at   shard.Position
	done chan error
}

func newTerm(l lease.Lease, tr *trust, poke func()) *Term {
	t := &Term{
		Lease: Held{l.Key, l.Range, l.Position, l.Epoch, l.Load},
		trust: tr, calls: &calls{poke, func() {}}, at: l.Position, saved: l.Position, told: l.Load, toldAt: mono.Now(),
	}
	if d := l.DeathsHere(); d != (lease.Deaths{}) {
		t.rarely().deaths = d
	}
	t.stretch = tr.context(t)
	return t
}

// Context ends when the worker must stop working on the shard. Its cause is [ErrLeaseLost] or
// [ErrStopping].
func (t *Term) Context() context.Context { return (*termContext)(t) }

// Trust ends when the worker loses its trust in all of its leases at once. Context ends at that
// time too, and may end earlier.
func (t *Term) Trust() context.Context { return t.stretch }

// Reading ends with Context, and also when the lease is requested back. The reader should then
// finish the records that it has begun to handle, begin nothing new, and return. Only the reader
// may use it, until it parks.
func (t *Term) Reading() context.Context { return (*reading)(t) }

// Check returns [ErrLeaseLost] or [ErrStopping] if the term is over. Call it right before handling,
// with the present time. It also notices that a machine was suspended, which timers do not.
func (t *Term) Check(now time.Time) error {
	t.trust.check(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause()
}

// Lost returns [ErrLeaseLost] if the reader's progress no longer counts: the lease belongs to
// another session, or may by now, or the reader has returned or was abandoned. Otherwise it returns
// nil.
func (t *Term) Lost() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost || t.left || t.returned && !t.finished || errors.Is(t.cause(), ErrLeaseLost) {
		return ErrLeaseLost
	}
	return nil
}

// Mark is the progress of a running handler.
type Mark interface {
	// Mark returns the position before which all records are done. It is zero if none is since the
	// handler began. The beat loop calls it, so it must not block, and it must not call the term.
	Mark() shard.Position
}

// SetMark makes each heartbeat query m for the handler's progress. nil ends that and keeps the
// present value of the previous mark.
func (t *Term) SetMark(m Mark) {
	t.far.Lock()
	defer t.far.Unlock()
	t.moveToMark()
	if t.mark == nil {
		t.mark = new(marked)
	}
	t.mark.of = m
}

// moveToMark moves at to the handler's mark. The caller holds far.
func (t *Term) moveToMark() {
	if t.mark == nil || t.mark.of == nil || t.fixed {
		return
	}
	if p := t.mark.of.Mark(); p.Compare(t.at) > 0 {
		t.at = p
	}
}

// Advance records that everything before p is done. The next heartbeat saves it. Earlier positions
// are ignored.
func (t *Term) Advance(p shard.Position) {
	t.far.Lock()
	defer t.far.Unlock()
	if !t.fixed && p.Compare(t.at) > 0 {
		t.at = p
	}
}

// Save is like Advance, and returns when the position is durable. It returns [ErrLeaseLost] if the
// lease is lost before that, or ctx's error.
func (t *Term) Save(ctx context.Context, p shard.Position) error {
	t.Advance(p)
	return t.wait(ctx, p)
}

// AwaitSaved is like Save for a reader whose mark reaches p: it does not advance.
func (t *Term) AwaitSaved(ctx context.Context, p shard.Position) error { return t.wait(ctx, p) }

// Finish records that the shard has been read and handled to its end, with the children that the
// service named there. It returns when that is durable. Its errors are those of Save.
func (t *Term) Finish(ctx context.Context, children []shard.Shard) error {
	t.mu.Lock()
	if !t.left {
		t.finished, t.rarely().children = true, children
		t.far.Lock()
		t.at, t.fixed = shard.End, true
		t.far.Unlock()
	}
	t.mu.Unlock()
	return t.wait(ctx, shard.End)
}

func (t *Term) wait(ctx context.Context, p shard.Position) error {
	w := waiter{p, make(chan error, 1)}
	t.mu.Lock()
	if t.lost {
		t.mu.Unlock()
		return ErrLeaseLost
	}
	if p.Compare(t.Saved()) <= 0 {
		t.mu.Unlock()
		return nil
	}
	r := t.rarely()
	r.waiters = append(r.waiters, w)
	t.mu.Unlock()
	t.poke()
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.Context().Done():
		select { // the answer may have come first
		case err := <-w.done:
			return err
		default:
			return context.Cause(t.Context())
		}
	}
}

// SetLoad sets the throughput of the shard, as an average over about a minute. It is cheap and does
// not trigger a heartbeat.
func (t *Term) SetLoad(l lease.Load) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.load = l
}

// GiveUp records that this worker cannot make progress with the shard. When the reader returns, the
// lease goes back, if possible to another worker. The reader must return soon and begin nothing
// new. With a cause Context ends too.
func (t *Term) GiveUp(cause error) {
	t.mu.Lock()
	t.stalled = true
	t.mu.Unlock()
	if cause != nil {
		t.cancel(cause)
	}
	t.drain()
}

// GiveBack releases the lease when the reader has returned. The plan decides which worker gets it.
func (t *Term) GiveBack() { t.drain() }

// Fail ends Run with an error before the reader has returned it: other calls of the user's code may
// take a long time or never return.
func (t *Term) Fail(err error) {
	t.mu.Lock()
	if r := t.rarely(); r.err == nil {
		r.err = err
	}
	t.mu.Unlock()
	t.poke()
	t.drain()
}

// Abandon releases the lease although the reader has not returned, because its handler ignores the
// end of Context. Run no longer waits for the reader, and its later progress does not count. Only
// the epoch can fence its later writes to other systems.
func (t *Term) Abandon() {
	t.mu.Lock()
	t.stalled, t.left = true, true
	t.far.Lock()
	t.moveToMark()
	t.fixed = true
	t.far.Unlock()
	t.mu.Unlock()
	t.over(nil)
}

// At returns the position up to which records were handled. It never waits for mu.
func (t *Term) At() shard.Position {
	t.far.Lock()
	defer t.far.Unlock()
	t.moveToMark()
	return t.at
}

// Saved returns the stored position. It never waits for mu.
func (t *Term) Saved() shard.Position {
	t.far.Lock()
	defer t.far.Unlock()
	return t.saved
}

// unsaved reports whether the term still counts and its handler may be ahead of the store.
func (t *Term) unsaved() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.far.Lock()
	defer t.far.Unlock()
	t.moveToMark()
	return !t.lost && t.at.Compare(t.saved) > 0
}

// The following methods are for the beat loop.

// drain asks the reader to return. If it has returned already because trust ran out, it has nothing
// left to finish, and its lease goes back with the next heartbeat. Nothing else would give it back,
// and a hand-off would wait for its timeout.
func (t *Term) drain() {
	t.mu.Lock()
	t.draining = true
	late := t.returned && !t.finished && !t.lost && !t.wanted
	if late {
		t.wanted = true
	}
	t.mu.Unlock()
	if late {
		t.poke()
	}
	t.ends()
}

// cancel ends Context.
func (t *Term) cancel(cause error) {
	t.mu.Lock()
	if !t.ended && t.stretch.Err() == nil {
		t.ended = true
		if cause != nil {
			t.rarely().why = cause
		}
	}
	if t.rare != nil && t.rare.waits != nil {
		// If trust is ending at this moment, its cause may not have arrived there yet.
		t.rare.waits.end(t.cause())
	}
	t.mu.Unlock()
	t.ends()
}

// over records that the reader has returned, or that Run stopped waiting for it.
func (t *Term) over(err error) {
	t.mu.Lock()
	if t.returned {
		t.mu.Unlock()
		return
	}
	t.returned, t.wanted = true, t.draining && t.cause() == nil
	if err != nil {
		t.rarely().err = err
	}
	t.mu.Unlock()
	t.cancel(nil)
	t.trust.forget(t)
	t.poke()
	t.gone()
}

// progress returns the lease's entry for the next heartbeat, or false if there is nothing to
// report.
func (t *Term) progress() (lease.Progress, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := lease.Progress{Key: t.Lease.Key, Epoch: t.Lease.Epoch}
	if t.lost {
		p.Release = t.returned // acknowledges a revocation, if there was one
		return p, p.Release
	}
	if at, saved := t.At(), t.Saved(); at.Compare(saved) > 0 {
		p.Position, p.Children = at, t.seldom().children
	}
	// A reader that returned because trust ran out has not given the lease back: the store may
	// still assign it to this worker.
	p.Release = t.returned && !t.finished && (t.wanted || t.stalled || t.seldom().err != nil)
	p.Stalled = p.Release && t.stalled
	p.Deaths = t.noting()
	said := p.Release || !p.Position.IsZero() || p.Deaths != ""
	if t.load != t.told && (said || t.tellLoad(mono.Now())) {
		p.Load, said = t.load, true
	}
	return p, said
}

// tellLoad reports whether the load needs its own report. The load of an idle shard does not if
// none was reported before: the shard counts as idle anyway.
func (t *Term) tellLoad(now mono.Time) bool {
	step := max(t.load, t.told) - min(t.load, t.told)
	return t.load != 0 && step >= loadStep && now.Sub(t.toldAt) >= loadPause
}

// settle evaluates the answer to a heartbeat that carried p for this term. held says whether the
// session holds the lease at the term's epoch. settle reports whether the term is over and can be
// dropped, and whether p's position is now saved.
func (t *Term) settle(p lease.Progress, held bool) (over, saved bool) {
	t.mu.Lock()
	before := t.Saved()
	if held && p.Load != 0 {
		t.told, t.toldAt = p.Load, mono.Now()
	}
	now := before
	if held && p.Position.Compare(now) > 0 {
		now = p.Position
	}
	// The lease was released or finished, with this report or, if the reader had not returned by
	// then, with an earlier one.
	gone := !held && (p.Position.IsEnd() || p.Release || (t.finished && now.IsEnd()))
	if gone && !p.Position.IsZero() && p.Position.Compare(now) > 0 {
		now = p.Position
	}
	if saved = now != before; saved {
		t.far.Lock()
		t.saved = now
		t.far.Unlock()
	}
	if !held && !gone {
		t.lost = true
	}
	lost := t.lost
	t.answer(now, lost || gone)
	t.noted(p.Deaths, held, lost || gone)
	returned := t.returned
	t.mu.Unlock()
	if lost {
		t.cancel(ErrLeaseLost)
	}
	return gone && returned, saved
}

// answer ends the calls that wait for a position up to saved, or all if the lease is lost. The
// caller holds the lock.
func (t *Term) answer(saved shard.Position, lost bool) {
	if len(t.seldom().waiters) == 0 {
		return
	}
	kept := t.rare.waiters[:0]
	for _, w := range t.rare.waiters {
		switch {
		case w.at.Compare(saved) <= 0:
			w.done <- nil
		case lost:
			w.done <- ErrLeaseLost
		default:
			kept = append(kept, w)
		}
	}
	t.rare.waiters = kept
}

// lose calls settle for a session that is over as a whole.
func (t *Term) lose() {
	t.settle(lease.Progress{}, false)
}

type termState struct {
	returned, wanted, lost, finished, stalled bool
	err                                       error
}

func (t *Term) state() termState {
	t.mu.Lock()
	defer t.mu.Unlock()
	return termState{t.returned, t.wanted, t.lost, t.finished, t.stalled, t.seldom().err}
}
