package group

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Term is the time during which this worker holds one lease. It begins when the store assigns the
// lease and ends with release, loss, or the end of the shard. The heartbeat loop creates the term.
// The reader that Host.Read runs advances it. Methods may be called concurrently, except those that
// only the reader may call.
type Term struct {
	Lease Held

	stretch  context.Context // the current period of validity
	validity *validity
	*calls

	mu       lock.Mutex[lock.Term]
	reader   atomic.Uint32 // a reader state; Wake reads and writes it without a mutex
	fixed    bool          // at no longer changes; guarded by far
	ended    bool          // Context has ended before stretch did; rare.why is its cause
	draining bool          // the reader must not begin new work
	finished bool          // at is End; children may be set
	returned bool          // the reader has returned
	wanted   bool          // the lease was requested back, and the reader returned for that reason
	lost     bool          // according to the store, the lease is no longer held at this epoch
	stalled  bool          // the reader made no progress and gave up the lease
	left     bool          // the reader was abandoned
	rate     float32       // measured throughput in bytes per second; negative if unknown
	told     float32       // the rate that the store has; negative if unknown
	toldAt   mono.Time

	next    Resumer  // resumes a parked reader; owned by the reader
	reading *awaited // nil until the reader waits for Reading, and while it is parked
	rare    *rare    // nil for most terms

	// far guards at, saved, mark and fixed. It is separate from mu so that At and Saved never wait
	// for mu.
	far   lock.Mutex[lock.Progress]
	at    shard.Position // everything before at was handled
	saved shard.Position // the stored position
	mark  *marked        // nil until a handler has run
}

// marked holds the mark of the running handler. The mark is nil if no handler is running.
type marked struct{ of Mark }

// calls contains the functions of the worker that a term calls.
type calls struct {
	poke func() // triggers a heartbeat
	gone func() // called once, when Run no longer needs to wait for the reader
}

// Held is the lease as it was when the term began. It is the input of the reader.
type Held struct {
	lease.Key
	Range    shard.HashRange
	Position shard.Position // where to resume
	Epoch    uint64
}

// rare holds the fields that only a few terms need at the same time.
type rare struct {
	why      error    // the cause of Context; may be nil
	waits    *awaited // nil until a goroutine waits for Context
	err      error    // the error that the reader returned
	children []shard.Shard
	waiters  []waiter
	// deaths are those of owners at the position where the term began, or those of the last note.
	deaths lease.Deaths
	note   *note // to be stored; nil if there is none
	// numbers returns what to store as [lease.Lease.Numbers]; nil if the reader stores none.
	// stored is what the lease had when the term began, until numbers is set.
	numbers Numbers
	stored  string
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

// awaited is a context that a goroutine waits for.
type awaited struct {
	context.Context
	end context.CancelCauseFunc
}

func await(from context.Context) *awaited {
	ctx, end := context.WithCancelCause(from)
	return &awaited{ctx, end}
}

// A throughput is usually reported together with a position. It is reported without a position if
// the last report is older than ratePause and the class of the load has changed by loadStep, or if
// the last report is older than rateAge and the throughput has changed at all. While the worker
// lives, the stored throughput is therefore that of at most rateAge and a heartbeat ago.
const (
	loadStep  = 2
	ratePause = 45 * time.Second
	rateAge   = 3 * time.Minute
)

type waiter struct {
	at   shard.Position
	done chan error
}

func newTerm(l lease.Lease, v *validity, poke func()) *Term {
	rate, _ := l.Throughput()
	t := &Term{
		Lease:    Held{l.Key, l.Range, l.Position, l.Epoch},
		validity: v, calls: &calls{poke, func() {}}, at: l.Position, saved: l.Position, rate: -1, told: float32(rate), toldAt: mono.Now(),
	}
	if l.Load == 0 {
		t.told = -1
	}
	if d := l.DeathsHere(); d != (lease.Deaths{}) {
		t.rarely().deaths = d
	}
	if l.Numbers != "" {
		t.rarely().stored = l.Numbers
	}
	t.stretch = v.context(t)
	return t
}

// Context returns a context that ends when the worker must stop working on the shard. Its cause is
// [ErrLeaseLost], [ErrStopping], or the cause passed to [Term.GiveUp].
func (t *Term) Context() context.Context { return (*termContext)(t) }

// Validity returns a context that ends when the leases of the worker are no longer valid. Context
// ends no later than Validity.
func (t *Term) Validity() context.Context { return t.stretch }

// Reading returns a context that ends with Context, and also when the lease is requested back. The
// reader should then finish the records that it has begun to handle and return, without new work.
// Only the reader may use this context, and only until it parks.
func (t *Term) Reading() context.Context { return (*reading)(t) }

// Check returns the cause of Context if Context has ended. The reader must call it right before
// handling records, with the current time. Check also detects that the machine was suspended, which
// timers do not.
func (t *Term) Check(now time.Time) error {
	t.validity.check(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cause()
}

// Lost returns [ErrLeaseLost] if the reader's progress no longer counts, and nil otherwise.
// Progress does not count if another session has or may have the lease. It also does not count
// after the reader was abandoned, or has returned before the end of the shard.
func (t *Term) Lost() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost || t.left || t.returned && !t.finished || errors.Is(t.cause(), ErrLeaseLost) {
		return ErrLeaseLost
	}
	return nil
}

// Mark returns the progress of a running handler.
type Mark interface {
	// Mark returns the position before which all records are handled. It is zero if no record was
	// handled since the handler began. The heartbeat loop calls Mark, so Mark must not block. It
	// must not call methods of the term.
	Mark() shard.Position
}

// SetMark sets the mark that heartbeats query for the handler's progress. It first stores the
// current value of the previous mark. A nil m only removes the previous mark.
func (t *Term) SetMark(m Mark) {
	t.far.Lock()
	defer t.far.Unlock()
	t.moveToMark()
	if t.mark == nil {
		t.mark = new(marked)
	}
	t.mark.of = m
}

// moveToMark sets the field at to the handler's mark. The caller holds far.
func (t *Term) moveToMark() {
	if t.mark == nil || t.mark.of == nil || t.fixed {
		return
	}
	if p := t.mark.of.Mark(); p.Compare(t.at) > 0 {
		t.at = p
	}
}

// Advance notes that everything before p is handled. The next heartbeat saves p. Advance ignores
// positions before the current one.
func (t *Term) Advance(p shard.Position) {
	t.far.Lock()
	defer t.far.Unlock()
	if !t.fixed && p.Compare(t.at) > 0 {
		t.at = p
	}
}

// Save calls Advance and waits until the position is durable. It returns [ErrLeaseLost] if the
// lease is lost first, and the cause of ctx or of Context if that ends first.
func (t *Term) Save(ctx context.Context, p shard.Position) error {
	t.Advance(p)
	return t.wait(ctx, p)
}

// AwaitSaved waits until p is durable, like Save. It does not advance, because the reader's mark
// reaches p.
func (t *Term) AwaitSaved(ctx context.Context, p shard.Position) error { return t.wait(ctx, p) }

// Finish notes that the shard has been read and handled to its end. children are the child shards
// that Kinesis returned there. Finish waits until this is durable. It returns the same errors as
// Save.
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

// StoredRate returns the throughput in bytes per second that the store has. It returns 0 if it is
// unknown.
func (t *Term) StoredRate() float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return float64(max(t.told, 0))
}

// SetRate sets the throughput of the shard in bytes per second, averaged over about a minute. It is
// cheap and does not trigger a heartbeat.
func (t *Term) SetRate(bytesPerSecond float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rate = float32(math.Floor(bytesPerSecond))
}

// GiveUp notes that this worker cannot make progress with the shard. The reader must begin no new
// work and return soon. Then the lease goes back, if possible to another worker. If cause is not
// nil, Context ends with it.
func (t *Term) GiveUp(cause error) {
	t.mu.Lock()
	t.stalled = true
	t.mu.Unlock()
	if cause != nil {
		t.cancel(cause)
	}
	t.drain()
}

// GiveBack releases the lease once the reader has returned. The leader decides which worker gets
// it.
func (t *Term) GiveBack() { t.drain() }

// Fail ends Run with err before the reader returns, because other calls of user code may take a
// long time or never return.
func (t *Term) Fail(err error) {
	t.mu.Lock()
	if r := t.rarely(); r.err == nil {
		r.err = err
	}
	t.mu.Unlock()
	t.poke()
	t.drain()
}

// At returns the position before which all records were handled. It never waits for mu.
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

// unsaved reports whether the lease is not lost and its handled records may be ahead of the store.
func (t *Term) unsaved() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.far.Lock()
	defer t.far.Unlock()
	t.moveToMark()
	return !t.lost && t.at.Compare(t.saved) > 0
}

// drain requests that the reader return. If the reader already returned because the lease expired,
// it has nothing left to finish, and drain makes the next heartbeat release the lease. If drain did
// not do this, a handoff of the lease would wait for its timeout.
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
		// If the validity is ending right now, its cause may not have reached this context yet.
		t.rare.waits.end(t.cause())
	}
	t.mu.Unlock()
	t.ends()
}

// over notes that the reader has returned, or that Run no longer waits for it.
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
	t.validity.forget(t)
	t.poke()
	t.gone()
}

// progress returns the lease's entry for the next heartbeat. It returns false if there is nothing
// to report.
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
		if n := t.seldom().numbers; n != nil {
			p.Numbers = n.Numbers(at)
		}
	}
	// A reader that returned because the lease expired has not released the lease. According to the
	// store, this worker may still hold it.
	p.Release = t.returned && !t.finished && (t.wanted || t.stalled || t.seldom().err != nil)
	p.Stalled = p.Release && t.stalled
	p.Deaths = t.noting()
	said := p.Release || !p.Position.IsZero() || p.Deaths != ""
	if t.rate >= 0 && t.rate != t.told && (said || t.tellRate(mono.Now())) {
		p.Rate, p.Load = lease.Measured(float64(t.rate))
		said = true
	}
	return p, said
}

// settle evaluates the answer to a heartbeat that reported p for this term. held is set if the
// session holds the lease at the term's epoch. over is set if the term is over and can be dropped.
// saved is set if the position of p is now stored.
func (t *Term) settle(p lease.Progress, held bool) (over, saved bool) {
	t.mu.Lock()
	before := t.Saved()
	if held && p.Load != 0 {
		t.told, t.toldAt = float32(p.Rate), mono.Now()
	}
	now := before
	if held && p.Position.Compare(now) > 0 {
		now = p.Position
	}
	// If gone is true, this worker released or finished the lease, with this report or an earlier
	// one. It was an earlier report if the reader finished the shard but returned only later.
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

// answer ends the calls that wait for a position up to saved. If the lease is lost, it ends all
// waiting calls. The caller holds the lock.
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

// lose calls settle after the session has ended with all of its leases.
func (t *Term) lose() {
	t.settle(lease.Progress{}, false)
}
