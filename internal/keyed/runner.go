package keyed

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// Runner has the keys of a shard handled in parallel. It exists while the shard has something to
// handle. The loop of the shard adds what was read, [Span] says which records may be handled now,
// and goroutines call the user's code. Each continues with another key when it is done with one,
// and ends when none may begin.
//
// The term of the shard asks for [Runner.Mark], so a Runner never calls the term with its mutex
// held; see package lock.
type Runner struct {
	Config
	share    memory.Share
	going    sync.WaitGroup  // goroutines that call the user's code
	stopping context.Context // ends when nothing new is to be begun
	endsNow  context.CancelFunc
	changed  chan struct{} // sent to when there is more room and the loop waits for it
	queued   bool          // the runner waits for a slot; guarded by the mutex of the slots

	mu lock.Mutex[lock.Runner] // guards the fields below, and those of calls
	dispatch
}

// dispatch is the state of a Runner.
type dispatch struct {
	span   *Span
	paused pauses
	timer  *time.Timer   // until the first pause is over
	all    []*Call       // that were made
	spare  []*Call       // those of them that serve no key now
	behind time.Duration // how far the last read was behind the tip
	starts bool          // a goroutine is to begin with what it was given
	owned  bool          // a call has the shard's own slot
	looks  bool          // the loop waits for changed
	parked bool          // there is no loop; it is woken when all is done
	stops  bool          // nothing new is begun
	err    error         // Run ends with it
}

// Config configures a Runner.
type Config struct {
	Host    Host
	Keys    int // calls at a time
	Records int // of a call
	Bytes   int // of the data of a call; 0 is no bound
	Limits  Limits
	Slots   *Slots
	Budget  *memory.Budget
	From    *source.Origin // where the records come from
	Goexit  error          // ends Run when the user's code ends its goroutine
}

// Limits bound how far a Runner goes beyond the oldest record that is not done.
type Limits struct {
	Records int
	Bytes   int
	Age     time.Duration // of the oldest record; 0 is no bound
}

// room reports whether a span may become so long, by n records more. If there is nothing else, any
// number is allowed.
func (l *Limits) room(length, bytes, n int, age time.Duration) bool {
	return length == n || length <= l.Records && bytes <= l.Bytes && (l.Age == 0 || age < l.Age)
}

// Host calls the user's code. Its methods are called without the runner's mutex, except Begin.
type Host interface {
	// Begin prepares a call for other records: Delivery has begun with them. Call.Of is nil when it
	// is the first time. Begin is called with the runner's mutex held.
	Begin(c *Call, records []source.Record)
	// Step calls the user's code with what is not done.
	Step(c *Call, now time.Time) Step
	// Fail ends Run with an error.
	Fail(err error)
	// Wake makes the loop continue.
	Wake()
}

// Step is the result of a call of the user's code.
type Step struct {
	After time.Time     // when it returned
	Pause time.Duration // before the next call
	Over  bool          // all records are done
	Ends  bool          // nothing new is to be begun, and the call is not repeated
	Stop  error         // Run ends with it; Ends is set then
}

// New makes a Runner.
func New(c Config) *Runner {
	r := &Runner{Config: c, changed: make(chan struct{}, 1)}
	r.span = NewSpan(c.Keys, c.Records)
	r.span.MostBytes = c.Bytes
	r.stopping, r.endsNow = context.WithCancel(context.Background())
	c.Budget.Open(&r.share)
	return r
}

// Mark returns the position before which everything is done.
func (r *Runner) Mark() shard.Position {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.span.Mark()
}

// Fits waits until there is room for n records, whose data and keys have that size. It returns
// false when nothing more is to be begun: the lease is wanted back, which ends ctx, or Run ends,
// with the error if there is one.
func (r *Runner) Fits(ctx context.Context, n, bytes int) (bool, error) {
	goOn, err := r.await(ctx, func() bool {
		_, _, since := r.span.Oldest()
		return r.Limits.room(r.span.Len()+n, r.span.Bytes()+bytes, n, mono.Since(since))
	})
	if goOn {
		err = r.share.Keep(ctx, bytes)
	}
	return goOn && err == nil, err
}

// Add adds records for which there is room. upTo and known are as for [Span.Add]. It returns how
// many of the records are done already.
func (r *Runner) Add(run []source.Record, bytes int, behind time.Duration, upTo shard.Position, known *Known) (skipped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.behind = behind
	before := r.span.Bytes()
	if skipped = r.span.Add(run, bytes, upTo, mono.Now(), known); skipped > 0 {
		r.share.Give(before + bytes - r.span.Bytes())
	}
	r.begin()
	return skipped
}

// Pass notes that everything before a position is done when all records before it are, because the
// other records there were dropped.
func (r *Runner) Pass(upTo shard.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.span.Add(nil, 0, upTo, mono.Now(), nil)
}

// Drained waits until all records are done. It returns as Fits does.
func (r *Runner) Drained(ctx context.Context) (bool, error) {
	return r.await(ctx, func() bool { return r.span.Len() == 0 })
}

// await waits until ok, which is called with the mutex held, returns true.
func (r *Runner) await(ctx context.Context, ok func() bool) (bool, error) {
	for {
		r.mu.Lock()
		there, stops, err := ok(), r.stops, r.err
		r.looks = !there && !stops
		r.mu.Unlock()
		if err != nil || stops {
			return false, err
		}
		if there {
			return true, nil
		}
		select {
		case <-r.changed:
		case <-r.stopping.Done():
		case <-ctx.Done():
			return false, nil
		}
	}
}

// Park reports whether all is done, and whether nothing more is to be begun. If neither is true the
// loop may end: the host is woken when one of them is.
func (r *Runner) Park() (done, stops bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	done = r.span.Len() == 0
	r.parked = !done && !r.stops
	return done, r.stops
}

// End begins nothing new and waits for the running calls. It returns the error with which
// Run ends, if there is one.
func (r *Runner) End() error {
	r.mu.Lock()
	r.stop(nil)
	r.mu.Unlock()
	r.going.Wait()
	return r.err
}

// Close gives the memory back, after End. It returns which records beyond the mark are done, as
// [Span.Beyond] does.
func (r *Runner) Close(mode byte, most int) (beyond string) {
	r.share.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	beyond = r.span.Beyond(mode, most)
	r.span.Close()
	return beyond
}

var errNotAllDone = errors.New("weir: the lease is wanted back before all is done that lies before the record")

// Save calls saved, which waits until the position after a record of a call is saved. That is after
// everything before it is done, so the call gives its slot to others meanwhile.
func (r *Runner) Save(ctx context.Context, c *Call, use uint64, p shard.Position, saved func(context.Context, shard.Position) error) error {
	defer r.rest(c, use)()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.stopping, func() {
		if r.Mark().Compare(p) < 0 {
			cancel(errNotAllDone)
		}
	})()
	return saved(ctx, p)
}

// Look is how a Runner stands, for status and supervision.
type Look struct {
	Keys    int // keys that have records that are not done
	Calls   int // running calls
	Records int // from the oldest that is not done on
	Status      // of the call that has been running for longest, with the failure of the oldest record
}

// Look returns how the runner stands.
func (r *Runner) Look() (k Look) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k.Keys, k.Calls = r.span.Lanes()
	k.Records = r.span.Len()
	_, lane, _ := r.span.Oldest()
	if lane == nil {
		return k
	}
	if lane.call != nil {
		k.Status = lane.call.Status
	}
	var longest *Call
	for _, c := range r.all {
		if c.works && (longest == nil || c.began < longest.began) {
			longest = c
		}
	}
	if longest != nil {
		k.State, k.Since = longest.State, longest.Since
	}
	return k
}
