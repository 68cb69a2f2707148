package weir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/jitter"
	"github.com/weir-go/weir/internal/keyed"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
)

// shardLoop takes one held lease from source to checkpoint: read a page, deliver it to the handler
// until that succeeds, note how far that is, and so on until the shard ends or the term does.
//
// Of thousands most idle, so there is little in it.
type shardLoop struct {
	in     *run
	term   *group.Term
	source pages

	mu      lock.Mutex[lock.Shard]
	state   ShardState // of handling; empty when there is nothing to handle
	since   mono.Time
	rate    supervise.Rate  // of what is handled
	failure *handlerFailure // nil while the handler's last call was no failure
	handles *handling       // nil before the first record; set by the loop's goroutine
	runner  *keyed.Runner   // nil if no keys are handled in parallel
	failing *failing        // nil before the user's code failed; of its caller's goroutine
	refusal *refusal        // nil before a position was refused; set by the goroutine that reads
	notes
}

// refusal describes a position that the service refuses.
type refusal struct {
	// Only the goroutine that reads uses the first two.
	since mono.Time // when it was refused first; zero before
	told  bool      // a log line said that it needs a reset
	stays bool      // PositionExpired was called for it; guarded by the loop's mutex
}

// handlerFailure describes a handler's failure for the shard's status.
type handlerFailure struct {
	err     error
	attempt int
	since   mono.Time // the first failure in a row
	at      lease.Failing
}

// Resume is run.
func (l *shardLoop) Resume() error { return l.run() }

// run returns nil when the term is over or the shard has ended, and the handler's [Stop]. It parks
// while there is nothing to handle.
func (l *shardLoop) run() (err error) {
	parks := false
	defer func() {
		if !parks {
			l.stopReading()
			l.close(err)
			l.in.end(l)
		}
	}()
	if !l.begun && !l.in.await(l) {
		return nil
	}
	l.begun = true
	for {
		if l.in.shards != nil && l.handles == nil {
			if on, err := l.open(); !on {
				return err
			}
		}
		err := l.read()
		if parks = errors.Is(err, source.ErrEmpty); parks {
			if parks, err = l.leaveRunner(); parks {
				return l.term.Park(l)
			}
		}
		if r := l.runner; r != nil {
			err = cmp.Or(l.endRunner(r), err)
		}
		pull := (*pullEnded)(nil)
		if !errors.As(err, &pull) {
			return ended(err)
		}
		if err := l.pullAgain(pull); err != nil {
			return ended(err)
		}
	}
}

// read takes page after page until there is nothing to handle, the shard has ended, or the term is
// over.
func (l *shardLoop) read() error {
	for {
		if err := l.handles.returned(); err != nil {
			return err
		}
		if l.gatheredIsDue() {
			if err := l.flush(time.Time{}); err != nil {
				return err
			}
		}
		page, err := l.nextPage()
		switch {
		case err == nil:
			l.streamIsThere()
			if over, err := l.take(page, time.Time{}); over || err != nil {
				return err
			}
			continue
		case errors.Is(err, source.ErrEmpty), errors.Is(err, errDue):
			if called, failed := l.callIdle(); called || failed != nil || errors.Is(err, errDue) {
				if failed != nil {
					return failed
				}
				continue
			}
			return err
		case l.term.Reading().Err() != nil:
			return l.last()
		}
		if err := l.flush(time.Time{}); err != nil {
			return err
		}
		switch {
		case errors.Is(err, streams.ErrNoShard):
			return l.shardIsGone(err)
		default: // the stream is gone; it may come back, or the application be stopped
			if !l.awaitStream(err) {
				return nil
			}
		}
	}
}

// last handles what has come since the last read at the tip, when the lease is wanted back:
// otherwise that would have to wait for the next owner. It has one try and almost a beat's time for
// the read.
func (l *shardLoop) last() error {
	if l.in.opts.Parallel.on() { // running calls would have to end first
		return nil
	}
	beat := l.in.opts.BeatInterval
	ctx, cancel := context.WithTimeout(l.term.Context(), beat-jitter.Of(l.term.Lease.Shard, beat/16+1))
	page, err := l.source.Last(ctx)
	cancel()
	until := time.Now().Add(beat)
	if err != nil {
		return l.flush(until)
	}
	over, err := l.take(page, until)
	if over || err != nil {
		return err
	}
	return l.flush(until) // of a page without records
}

// errForHeir ends a term whose lease is wanted back before all batches of a page were begun: the
// next owner reads them again. It wraps what a middleware of handlers may look for.
var errForHeir = fmt.Errorf("weir: the rest of the page is left to the next owner: %w", ErrHandedOff)

// take delivers a page in batches and notes the progress. It reports whether the shard has ended.
// When the lease is wanted back, and it is later than until, it begins no other batch than the
// first: a page can be of so many that they would outlast the time for a hand-off or a stop.
func (l *shardLoop) take(page source.Page, until time.Time) (over bool, err error) {
	if l.in.opts.Parallel.on() && l.trial() == nil {
		return l.takeKeys(page)
	}
	defer l.rest()
	defer page.Release()
	l.tellRead(&page)
	end, some := l.noteArrival(&page)
	if h := l.handles; h != nil && page.Behind == 0 && !page.Tip.IsZero() {
		h.idle.tip = page.Tip
	}
	unpack := l.unpacker()
	defer unpack.Release()
	defer l.tellFiltered(unpack.Filter)
	own := unpack.Unpacks(&page) // of memory that it uses again
	if !l.in.opts.ReuseBuffers {
		page.Keep()
	}
	begun, gathers := false, l.gathers()
	for run, isLast := range unpack.Runs(&page, l.size()) {
		if begun && l.wantedBack(until) {
			return false, errForHeir
		}
		begun = true
		if !l.in.opts.ReuseBuffers {
			unpack.Filter.Detach(run)
		}
		if gathers {
			err = l.gather(run, &page, own, isLast, until)
		} else {
			err = l.deliver(l.handover(run, own, delivery.Batch{Behind: page.Behind, End: page.End && isLast}, until))
		}
		if err != nil {
			return false, err
		}
	}
	l.tellUnpacked(unpack)
	if some { // also past what was dropped
		l.passed(end)
	}
	if page.End {
		l.enter(ShardEnding, 0, nil)
		return true, l.term.Finish(l.term.Context(), page.Children)
	}
	l.noteHandled(0, time.Now())
	return false, nil
}

// wantedBack reports whether the lease is to go to another worker, and it is not before until.
func (l *shardLoop) wantedBack(until time.Time) bool {
	return l.term.Reading().Err() != nil && !time.Now().Before(until)
}

// ended keeps of an error that ended a term only what ends Run.
func ended(err error) error {
	if err == nil {
		return nil
	}
	var stop *stopError
	if errors.As(err, &stop) {
		return stop
	}
	return nil
}

// deliver hands a delivery to the handler until all of it is done. It fails with the cause when the
// term is over, when the lease is wanted back between two attempts, and with the handler's Stop.
func (l *shardLoop) deliver(d *handover) error {
	if !d.pulled {
		l.term.SetMark(d)
		defer d.close()
		defer l.term.SetMark(nil)
	}
	for {
		if err := l.alone(d); err != nil {
			return err
		}
		_, pause, over, err := l.step(d, time.Now())
		if over || err != nil {
			return err
		}
		if pause > 0 {
			if err := retry.Wait(l.term.Reading(), pause); err != nil {
				return err
			}
		}
	}
}

// step calls the handler with the records of a delivery that are not done, or puts the letters of
// given-up records. began is the current time and after the time at the end, so that a caller that
// continues at once need not read the clock again. over means that the delivery is finished;
// otherwise there is a pause before the next step. It fails as deliver does.
func (l *shardLoop) step(d *handover, began time.Time) (after time.Time, pause time.Duration, over bool, err error) {
	if err := l.term.Check(began); err != nil {
		return began, 0, false, err
	}
	if d.dying != nil {
		pause, err = l.putLetters(d)
		return time.Now(), pause, false, err
	}
	b := d.next()
	if b == nil {
		l.tried(d, nil)
		l.handled(d, 0, began)
		return began, 0, true, nil
	}
	records := len(b.Records)
	l.tellBegins(d, records)
	gives := l.in.brake.Policy.On
	var worked time.Time
	if gives {
		worked = l.in.brake.LastWorked()
	}
	blame, err := d.where(d.call(b))
	after = time.Now()
	took := after.Sub(began)
	l.tried(d, err)
	next, cause := failure.Advance, error(nil)
	if err != nil {
		cause = context.Cause(l.term.Context())
		next = failure.Decide(failure.Result{Outcome: outcome(err), Blame: blame, Done: d.PartDone(), Pulled: d.pulled, Over: cause != nil}, gives)
	}
	switch next {
	case failure.Advance:
		if err != nil { // after all was done, so there is nothing to do again
			d.NoteFailure(err, false, after)
			l.handlerFailed(d, failedWhenDone, err, 0)
		} else if gives && records > 0 {
			l.in.brake.Works(began)
		}
		if over = d.Advance(); over {
			l.handled(d, took, after)
		}
		return after, 0, over, nil
	case failure.PassOn:
		l.passedOn(d, took, after)
		return after, 0, true, nil
	case failure.Leave:
		return after, 0, false, err
	case failure.Stop:
		l.in.Stopping()
		return after, 0, false, ended(err)
	case failure.Abort:
		l.cutShort(began, cause)
		return after, 0, false, cause
	case failure.LeaveOut:
		l.leaveOut(d, err, blame.Untried)
		return after, 0, false, nil
	case failure.Deny:
		return after, l.afterDenial(d, err), false, nil
	default:
		d.NoteFailure(err, blame.Named, time.Now())
		return after, l.afterFailure(d, err, blame, worked), false, nil
	}
}

// outcome is how a call of the user's code ended that returned err.
func outcome(err error) failure.Outcome {
	switch {
	case err == nil:
		return failure.Succeeded
	case errors.Is(err, errPulled):
		return failure.AsksForNext
	case errors.Is(err, errForHeir):
		return failure.WantedBack
	case ended(err) != nil:
		return failure.StopsRun
	}
	return failure.Failed
}

// handled notes that all of a delivery is done by now.
func (l *shardLoop) handled(d *handover, took time.Duration, now time.Time) {
	if d.key == nil {
		l.handles.idle.again()
	}
	if d.Idle {
		l.noteHandled(0, now)
		return
	}
	records, bytes := d.Size()
	if d.key != nil { // its span knows how far all is done
		d.complete()
	} else if at := d.Finish(); records > 0 {
		l.advance(at)
	}
	records -= d.Gone
	l.noteHandled(bytes, now)
	l.in.counted.batchesHandled.Add(1)
	l.in.counted.recordsHandled.Add(uint64(records))
	l.in.counted.bytesHandled.Add(uint64(bytes))
	emit(l.in, l.in.opts.Events.BatchHandled, BatchHandled{
		Stream: d.From.Stream, Shard: d.From.Shard, Records: records, Bytes: bytes, Behind: d.Behind, Took: took, Attempts: d.Calls,
	})
}

// passedOn notes that the pulling function has a batch and notes its progress. Records that are
// done when it asks for more count as handled.
func (l *shardLoop) passedOn(d *handover, took time.Duration, now time.Time) {
	if records, bytes := d.Size(); records == d.Done() {
		l.handled(d, took, now)
	} else {
		l.noteHandled(bytes, now)
	}
	if l.in.opts.ReuseBuffers {
		d.close()
	}
}

// call calls the handler.
func call(ctx context.Context, h Handler, b *Batch) error {
	return contained("the handler", func() error { return h.Handle(ctx, b) })
}

// panicked is a panic as an error. It is called where the panic was recovered.
func panicked(who string, p any) error { return &PanicError{who, p, string(debug.Stack())} }

// contained turns a panic of the user's code into an error, so that it is retried like one and
// cannot take the process down.
func contained(who string, f func() error) (err error) {
	lock.Free(who)
	defer func() {
		if p := recover(); p != nil {
			err = panicked(who, p)
		}
	}()
	return f()
}
