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

// Runner handles the keys of a shard in parallel. It exists while the shard has something to
// handle. The loop of the shard adds the records that it read. [Span] determines which records may
// be handled now. Goroutines call the user code. After a key, a goroutine continues with another
// key, and it ends when no key may begin.
//
// The term of the shard calls [Runner.Mark]. A Runner must therefore not call the term while it
// holds its own mutex; see package lock.
type Runner struct {
	Config
	share    memory.Share
	going    sync.WaitGroup  // goroutines that call user code
	stopping context.Context // ends when the runner must begin nothing new
	endsNow  context.CancelFunc
	changed  chan struct{} // receives a value when there is more room and the loop waits for it
	queued   bool          // waits for a slot; guarded by the mutex of the slots

	mu lock.Mutex[lock.Runner] // guards the fields below, and the fields of calls
	dispatch
}

// dispatch is the state of a Runner.
type dispatch struct {
	span   *Span
	paused pauses
	timer  *time.Timer   // fires at the end of the first pause
	all    []*Call       // all calls that were made
	spare  []*Call       // calls that currently serve no key
	behind time.Duration // the lag of the last read
	starts bool          // a new goroutine has a call and has not started yet
	owned  bool          // a call has the shard's own slot
	looks  bool          // the loop waits for changed
	parked bool          // there is no loop; it must be woken when all records are done
	stops  bool          // nothing new begins
	err    error         // the error with which Run must end
}

// Config configures a Runner.
type Config struct {
	Host Host
	Keys int // maximum number of concurrent calls
	// Partitions is the number of partitions of the keys; see [Span]. 0 means none.
	Partitions int
	Records    int // maximum number of records of a call
	Bytes      int // maximum size of a call's data; 0 means no limit
	Limits     Limits
	Slots      *Slots
	Budget     *memory.Budget
	// Done is the position before which all records were done when the runner was made. It is zero
	// if that is unknown.
	Done   shard.Position
	From   *source.Origin // the shard of the records
	Goexit error          // ends Run when user code ends its goroutine
}

// Limits limit how far a Runner may go beyond the oldest record that is not done.
type Limits struct {
	Records int
	Bytes   int
	Age     time.Duration // maximum age of the oldest record; 0 means no limit
}

// room reports whether a span with n new records may have this length, size and age. An empty span
// accepts any number of records.
func (l *Limits) room(length, bytes, n int, age time.Duration) bool {
	return length == n || length <= l.Records && bytes <= l.Bytes && (l.Age == 0 || age < l.Age)
}

// Host calls the user code. The runner's mutex is not held during its methods, except for Begin.
type Host interface {
	// Begin prepares a call for other records, after Delivery has begun with them. Call.Of is nil
	// in the first Begin of a Call. The runner's mutex is held.
	Begin(c *Call, records []source.Record)
	// Step calls the user code with the records that are not done.
	Step(c *Call, now time.Time) Step
	// Fail ends Run with an error.
	Fail(err error)
	// Wake makes the loop continue.
	Wake()
}

// Step is the result of a call of the user code.
type Step struct {
	After time.Time     // the time when the call returned
	Pause time.Duration // pause before the next call
	Over  bool          // all records are done
	Ends  bool          // begin nothing new, and do not repeat the call
	Stop  error         // the error with which Run must end; Ends is then set as well
}

// New returns a Runner.
func New(c Config) *Runner {
	r := &Runner{Config: c, changed: make(chan struct{}, 1)}
	r.span = NewSpan(c.Keys, c.Records)
	r.span.MostBytes, r.span.Partitions = c.Bytes, c.Partitions
	r.stopping, r.endsNow = context.WithCancel(context.Background())
	c.Budget.Open(&r.share)
	return r
}

// Mark returns the position before which all records are done.
func (r *Runner) Mark() shard.Position {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.span.Mark()
}

// DoneBefore returns the position before which all records are done, as far as this runner and its
// predecessors know. It is zero if they know none.
func (r *Runner) DoneBefore() shard.Position {
	if mark := r.Mark(); !mark.IsZero() {
		return mark
	}
	return r.Done
}

// Fits waits until there is room for n records, and takes memory for them. bytes is the size of
// their data and keys. It returns false if the loop must begin nothing more: because ctx ended (the
// lease is requested back), or because the runner stops. The error is the one with which Run must
// end, if there is one, or says that ctx ended during the wait for memory.
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

// Add adds records for which there is room. upTo and known have the same meaning as for [Span.Add].
// Add returns the number of records that are already done.
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

// Pass records that the other records before upTo were dropped. Everything before upTo is done when
// all added records are done.
func (r *Runner) Pass(upTo shard.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.span.Add(nil, 0, upTo, mono.Now(), nil)
}

// Drained waits until all records are done. It returns the same results as Fits.
func (r *Runner) Drained(ctx context.Context) (bool, error) {
	return r.await(ctx, func() bool { return r.span.Len() == 0 })
}

// await waits until ok returns true. ok is called with the mutex held.
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

// Park reports whether all records are done, and whether the runner begins nothing new. If both are
// false, the loop may end: the runner wakes the host when one of them becomes true.
func (r *Runner) Park() (done, stops bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	done = r.span.Len() == 0
	r.parked = !done && !r.stops
	return done, r.stops
}

// End stops the runner from beginning anything new, and waits for running calls. It returns the
// error with which Run must end, if there is one.
func (r *Runner) End() error {
	r.mu.Lock()
	r.stop(nil)
	r.mu.Unlock()
	r.going.Wait()
	return r.err
}

// Close releases the memory. It must be called after End. It returns the records after the mark
// that are done, in the form of [Span.Beyond].
func (r *Runner) Close(mode byte, most int) (beyond string) {
	r.share.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	beyond = r.span.Beyond(mode, most)
	r.span.Close()
	return beyond
}

var errNotAllDone = errors.New("weir: the lease was requested back before all earlier records were done")

// Save calls saved, which waits until the position p after a record of the call is saved. That
// happens only when everything before p is done. The call therefore releases its slot during that
// time.
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

// Look contains the state of a Runner for status and supervision.
type Look struct {
	Keys    int // number of keys with records that are not done
	Calls   int // number of running calls
	Records int // number of records from the oldest one that is not done
	Status      // of the call that runs longest, with the failure of the oldest record
}

// Look returns the state of the runner.
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
