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

// Term is one stretch of holding one lease: from the orders that gave it to its release, loss or
// end. The beat loop makes it; the reader that Config.Read runs for it moves it forward. Its
// methods may be called concurrently, but for those of the reader.
type Term struct {
	Lease Held

	stretch context.Context // of trust
	trust   *trust
	*calls

	mu       lock.Mutex[lock.Term]
	reader   atomic.Uint32 // runs, parked or over; Wake takes no mutex
	fixed    bool          // at no longer changes; guarded by far
	ended    bool          // Context has ended, before trust; why is its cause
	draining bool          // nothing new is to be begun
	finished bool          // at is End; children may be set
	returned bool          // the reader has returned
	wanted   bool          // the reader returned because the lease was wanted back
	lost     bool          // the store says that the lease is not ours any more, at this epoch
	stalled  bool          // the reader gave the lease up
	left     bool          // the reader gave the lease up and was abandoned
	load     lease.Load    // the load of the shard
	told     lease.Load    // load as the store has it
	toldAt   mono.Time

	next    Resumer  // where a parked reader continues; owned by the reader
	reading *awaited // nil until the reader waits with Reading, and while it is parked
	rare    *rare    // nil for most

	// far guards at, saved, mark and fixed. It is separate from mu so that At and Saved never wait
	// for mu.
	far   lock.Mutex[lock.Progress]
	at    shard.Position // done by the handler
	saved shard.Position // in the store
	mark  *marked        // nil before a handler was at work
}

// marked holds the mark of the handler at work, nil while no handler works.
type marked struct{ of Mark }

// calls are functions that a term calls.
type calls struct {
	poke func() // makes the beat loop beat at once
	gone func() // is called once, when Run need not wait for the reader any more
}

// Held is what a reader has to know of the lease that it holds, as of the start of the term.
type Held struct {
	lease.Key
	Range    shard.HashRange
	Position shard.Position // where to resume
	Epoch    uint64
	Load     lease.Load
}

// rare is what few terms have at a time.
type rare struct {
	why      error    // the cause with which Context has ended; may be nil
	waits    *awaited // nil until something waits with Context
	err      error    // that the reader returned
	children []shard.Shard
	waiters  []waiter
	deaths   lease.Deaths // of owners at the position where the term began, or as it noted
	note     *note        // what is to be noted of that, nil for nothing
}

// rarely returns what is rare, to be changed. It is called with the lock held.
func (t *Term) rarely() *rare {
	if t.rare == nil {
		t.rare = new(rare)
	}
	return t.rare
}

// seldom is rarely, to be looked at.
func (t *Term) seldom() rare {
	if t.rare == nil {
		return rare{}
	}
	return *t.rare
}

// awaited is a context that somebody waits with.
type awaited struct {
	context.Context
	end context.CancelCauseFunc
}

func await(from context.Context) *awaited {
	ctx, end := context.WithCancelCause(from)
	return &awaited{ctx, end}
}

// A load that is not reported by the way, with a position, is worth a write of its own when it
// differs by this many classes and was not reported for that long.
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

// Context ends when the worker must not go on with the shard; its cause is [ErrLeaseLost] or
// [ErrStopping].
func (t *Term) Context() context.Context { return (*termContext)(t) }

// Trust ends with the worker's trust in its leases, all at once. Context ends then too, and may end
// before.
func (t *Term) Trust() context.Context { return t.stretch }

// Reading ends with Context, and already when the lease is wanted back: the reader should then
// finish what it has begun to handle, begin nothing new, and return. It is for the reader only, and
// for as long as that does not park.
func (t *Term) Reading() context.Context { return (*reading)(t) }

// Check fails with [ErrLeaseLost] or [ErrStopping] when the term is over. Call it right before
// handling, with the time: it also notices a machine that was suspended, which timers do not.
func (t *Term) Check(now time.Time) error {
	t.trust.check(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause()
}

// Lost is [ErrLeaseLost] when what the reader notes does not count any more: the lease is somebody
// else's, or may be by now, or the reader has returned or was abandoned. Else it is nil.
func (t *Term) Lost() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost || t.left || t.returned && !t.finished || errors.Is(t.cause(), ErrLeaseLost) {
		return ErrLeaseLost
	}
	return nil
}

// Mark is how far a handler has got that is at work.
type Mark interface {
	// Mark is the position before which everything is done, zero when nothing is since the handler
	// began. It is called by the beat loop and must not block, nor call the term.
	Mark() shard.Position
}

// SetMark has each beat ask m how far the handler has got; nil ends that, and keeps what m says
// now.
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

// Advance notes that everything before p is done. The next beat saves it. Positions that go back
// are ignored.
func (t *Term) Advance(p shard.Position) {
	t.far.Lock()
	defer t.far.Unlock()
	if !t.fixed && p.Compare(t.at) > 0 {
		t.at = p
	}
}

// Save is Advance, and returns when the position is durable. It fails with [ErrLeaseLost] if the
// lease is lost before that, or with ctx's error.
func (t *Term) Save(ctx context.Context, p shard.Position) error {
	t.Advance(p)
	return t.wait(ctx, p)
}

// AwaitSaved is Save for a reader whose mark gets there: it does not advance.
func (t *Term) AwaitSaved(ctx context.Context, p shard.Position) error { return t.wait(ctx, p) }

// Finish notes that the shard has been read and handled to its end, with the children that the
// service named there. It returns when that is durable, or fails as Save does.
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

// SetLoad notes what the shard brings, as an average over about a minute. It is cheap, and does not
// make the beat loop beat.
func (t *Term) SetLoad(l lease.Load) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.load = l
}

// GiveUp says that this worker cannot make progress with the shard: when the reader returns, the
// lease goes back, if possible to another worker. What was not begun to be handled is left; the
// reader has to return soon. With a cause Context ends too.
func (t *Term) GiveUp(cause error) {
	t.mu.Lock()
	t.stalled = true
	t.mu.Unlock()
	if cause != nil {
		t.cancel(cause)
	}
	t.drain()
}

// GiveBack has the lease go back when the reader has returned, to whomever the plan gives it to.
func (t *Term) GiveBack() { t.drain() }

// Fail has Run end with an error, although the reader has not returned it yet: other calls of the
// user's code may take their time, or never return.
func (t *Term) Fail(err error) {
	t.mu.Lock()
	if r := t.rarely(); r.err == nil {
		r.err = err
	}
	t.mu.Unlock()
	t.poke()
	t.drain()
}

// Abandon gives the lease up although the reader has not returned: its handler ignores that Context
// has ended. Run does not wait for it any more, and nothing that it still does counts; what it
// writes elsewhere only the epoch can fence.
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

// At returns the position up to which the handler is done. It never waits for mu.
func (t *Term) At() shard.Position {
	t.far.Lock()
	defer t.far.Unlock()
	t.moveToMark()
	return t.at
}

// Saved returns the position that the store has. It never waits for mu.
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

// What follows is for the beat loop.

// drain asks the reader to return. One that has returned already, because trust ran out, has
// nothing left to finish: its lease goes back with the next beat. Nobody else would give it back,
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
		t.rare.waits.end(cause)
	}
	t.mu.Unlock()
	t.ends()
}

// over notes that the reader has returned, or is not waited for any more, whatever comes first.
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

// progress is what the next beat says of the lease, false when there is nothing to say.
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
	// still say it is ours.
	p.Release = t.returned && !t.finished && (t.wanted || t.stalled || t.seldom().err != nil)
	p.Stalled = p.Release && t.stalled
	p.Deaths = t.noting()
	said := p.Release || !p.Position.IsZero() || p.Deaths != ""
	if t.load != t.told && (said || t.tellLoad(mono.Now())) {
		p.Load, said = t.load, true
	}
	return p, said
}

// tellLoad reports whether the load is worth a report of its own. An idle shard of which nothing
// was said is not: it counts as idle anyway.
func (t *Term) tellLoad(now mono.Time) bool {
	step := max(t.load, t.told) - min(t.load, t.told)
	return t.load != 0 && step >= loadStep && now.Sub(t.toldAt) >= loadPause
}

// settle takes in that a beat carried p for this term and that the store then said that the lease
// is held (or not) at the term's epoch. It reports whether the term is over and can be dropped, and
// whether p's position is saved now.
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
	// Given back, or finished: by this report, or by one before, if the reader had not returned by
	// then.
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

// lose is settle for a session that is over as a whole.
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
