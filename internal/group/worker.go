package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/jitter"
	"github.com/weir-go/weir/lease"
)

// worker is the state of one Run. The heartbeat loop owns all fields that are not marked as shared.
type worker struct {
	cfg      Config
	poked    chan struct{}  // shared: triggers a heartbeat
	validity *validity      // shared
	running  sync.WaitGroup // readers, leaderships and deputies
	calls    calls          // passed to its terms

	session string
	first   bool             // no heartbeat of the session has been answered
	beaten  bool             // a heartbeat of the session was sent
	holds   uint64           // fingerprint of the leases in the last orders
	unread  []lease.Progress // leases of the last orders without a term, as releases
	terms   map[lease.Key]*Term
	order   []*Term // the same terms sorted by key; nil if it must be computed again
	follow  lease.Follow
	lead    *leadership  // nil while this worker neither leads nor campaigns
	deputy  *deputy      // nil while the leader lists all streams of this worker
	older   *olderLeader // nil unless a worker of an older version leads

	names  []string       // the streams that this worker reads, sorted; nil means all
	listed *listedStreams // shared
	// unlisted stores when each stream of names was first missing from the leader's list.
	unlisted    map[string]time.Time
	foreign     []lease.Progress // leases of streams that this worker does not read, as releases
	toldForeign map[string]bool  // streams of foreign leases that were logged
	leaderLists lease.Streams    // the last known streams that the leader lists
	said        lease.Streams    // names and listed in stored form; "" if it must be computed again
	saidAt      int64
	differ      bool // the leader reads other streams

	outage     time.Time // when the store stopped answering, zero while it answers
	failures   int
	failed     error // the error of the last failed heartbeat before a stop began
	begun      bool  // the store has answered at least one heartbeat of this Run
	hurryUntil time.Time
	// expected contains the children of shards that this worker finished. Until the stored time,
	// the worker sends heartbeats faster to get them.
	expected map[lease.Key]time.Time

	stopping  time.Time
	fatal     error
	cancelled bool // the stop timeout has passed, and the readers were cancelled
	// unsaved contains shards whose progress was not saved when the session ended during the stop.
	unsaved []lease.Key

	newer bool // the store has a newer format than this version supports

	again bool // begin another session after the stop

	notLeading time.Time // the worker resigned and does not campaign until then
	term       uint64    // the leadership term in the last orders
	awaits     time.Time // until then, a change of leader may assign leases to this worker
	vacant     time.Time // when there was last a live leader; zero while there is one
	resigns    uint64    // the leadership term that heartbeats resign; 0 for none
	unheard    int       // the number of heartbeats that resigned without effect
}

func newWorker(cfg Config) *worker {
	w := &worker{cfg: cfg, poked: make(chan struct{}, 1), validity: newValidity(cfg.Times.Failover), terms: map[lease.Key]*Term{}, listed: &listedStreams{}, expected: map[lease.Key]time.Time{}}
	w.calls = calls{w.poke, w.running.Done}
	w.newSession()
	return w
}

func (w *worker) newSession() {
	w.session, w.first, w.beaten, w.follow = jitter.Name(w.cfg.Worker), true, false, lease.Follow{}
	w.foreign, w.unlisted = nil, nil
	w.holds, w.unread, w.vacant, w.resigns, w.unheard = 0, nil, time.Time{}, 0, 0
	w.hurryUntil = time.Now().Add(2 * w.cfg.Times.Heartbeat)
	clear(w.expected)
}

// poke makes the heartbeat loop send a heartbeat at once. Safe for concurrent use.
func (w *worker) poke() {
	select {
	case w.poked <- struct{}{}:
	default: // a heartbeat is due already
	}
}

func (w *worker) run(ctx context.Context) error {
	defer w.running.Wait()
	defer w.validity.end(ErrLeaseLost) // ends the leadership too

	done, goOn := ctx.Done(), context.WithoutCancel(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-w.poked:
		case <-done:
		}
		select { // one heartbeat handles all pending events
		case <-w.poked:
		default:
		}
		if done != nil && ctx.Err() != nil {
			done, w.again = nil, false
			if w.stopping.IsZero() {
				w.stop(nil)
			}
		}
		switch err := w.findFatal(); {
		case err == nil:
		case w.stopping.IsZero():
			w.stop(err)
		case w.again: // only the session was ending
			w.stop(err)
		default:
			// The error came while Run was already stopping. Keep it.
			w.fatal = err
		}
		next := w.beat(goOn)
		if !w.stopping.IsZero() && w.stopped() {
			w.endLeadership()
			w.endDeputy()
			left := w.leave(goOn)
			if !w.again || w.fatal != nil {
				return errors.Join(cmp.Or(w.fatal, w.neverBegan()), left)
			}
			w.startAgain()
			next = 0
		}
		timer.Reset(next)
	}
}

// neverBegan returns an error if the store never answered a heartbeat and at least one failed. It
// returns nil otherwise.
func (w *worker) neverBegan() error {
	if w.begun || w.failed == nil {
		return nil
	}
	return fmt.Errorf("weir: application %s: stopped before the store had answered: %w", w.cfg.App, w.failed)
}

// findFatal returns the first error with which a reader, the leadership or the deputy must end Run.
func (w *worker) findFatal() error {
	if w.fatal != nil {
		return w.fatal
	}
	for _, t := range w.sorted() {
		if err := t.state().err; err != nil {
			return err
		}
	}
	if w.lead != nil {
		if err := w.lead.failed(); err != nil {
			return err
		}
	}
	if w.deputy != nil {
		return w.deputy.failed()
	}
	return nil
}

// beat sends one heartbeat to the store and acts on the answer. It returns the time until the
// next one.
func (w *worker) beat(ctx context.Context) time.Duration {
	report, sent := w.report()
	began := time.Now()
	w.beaten = true
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Times.Failover/2)
	orders, err := w.cfg.Store.Heartbeat(ctx, w.cfg.App, report)
	cancel()
	switch {
	case errors.Is(err, lease.ErrSessionOver):
		w.cfg.Log.Warn("the store has ended this worker's session, because no heartbeat arrived in time or the session's row was deleted; this worker starts a new session",
			"err", err)
		w.endSession()
		return 0
	case err != nil:
		return w.beatFailed(err)
	}
	if w.first {
		w.cfg.Host.SessionBegan(w.session)
	}
	w.first, w.begun = false, true
	if !w.outage.IsZero() {
		w.cfg.Log.Info("the store answers again", "after", time.Since(w.outage).Round(time.Millisecond))
		w.outage, w.failures = time.Time{}, 0
		if w.lead != nil {
			w.lead.excuse() // the leadership could not reach the store during the outage
		}
	}
	if !w.validity.extend(began) {
		return 0 // the answer took longer than leases stay valid; try again
	}
	w.cfg.Host.BeatAnswered(began)
	w.take(orders, sent, time.Since(began))
	wait := w.followLeader(orders, report, began)
	w.deputize(orders.Leader, time.Now())
	w.compareStreams(orders.Leader)
	w.watchOlder(orders.Leader, time.Now())
	if w.lead != nil && (report.Leaving || slices.ContainsFunc(report.Progress, changesTerms)) {
		w.lead.look()
	}
	return w.pause(wait)
}

// changesTerms reports whether progress requires an action of the leader.
func changesTerms(p lease.Progress) bool { return p.Release || p.Position.IsEnd() }

// take acts on orders. took is the duration of the heartbeat. take copies the few values that it
// needs. The orders contain every held lease and should not stay in memory.
func (w *worker) take(o lease.Orders, sent map[*Term]lease.Progress, took time.Duration) {
	if byKey := func(a, b lease.Lease) int { return a.Key.Compare(b.Key) }; !slices.IsSortedFunc(o.Held, byKey) {
		// Sort the leases of a store that violates the contract. Otherwise they would look lost.
		slices.SortFunc(o.Held, byKey)
	}
	w.holds = lease.Fingerprint(o.Held)
	w.settle(o.Held, sent, took)
	w.startTerms(o.Held)
	w.unread, w.foreign = nil, nil
	for _, l := range o.Held {
		switch {
		case w.terms[l.Key] != nil:
		case !w.reads(l.Stream):
			w.giveBack(l)
		default:
			w.unread = append(w.unread, lease.Progress{Key: l.Key, Epoch: l.Epoch, Release: true})
		}
	}
}

// report returns the next report, and the part of it that belongs to each term.
func (w *worker) report() (lease.Report, map[*Term]lease.Progress) {
	w.refresh()
	r := lease.Report{
		Streams: w.streams(),
		Session: w.session, Name: w.cfg.Worker, First: w.first, Leaving: !w.stopping.IsZero(),
		Weight: w.cfg.Weight, MaxLeases: w.cfg.MaxLeases, Holds: w.holds, Times: w.cfg.Times,
		Others: true, Resigns: w.resigns,
	}
	r.Troubles = w.cfg.Host.Troubles()
	var sent map[*Term]lease.Progress // most heartbeats have no entry for any term
	for _, t := range w.sorted() {
		p, some := t.progress()
		if some {
			if sent == nil {
				sent = map[*Term]lease.Progress{}
			}
			r.Progress = append(r.Progress, p)
			sent[t] = p
		}
	}
	r.Progress = append(r.Progress, w.foreign...)
	if !w.stopping.IsZero() {
		// Leases that arrived after the stop began go back unread.
		r.Progress = append(r.Progress, w.unread...)
	}
	slices.SortFunc(r.Progress, func(a, b lease.Progress) int { return a.Key.Compare(b.Key) })
	return r, sent
}

// settle compares the terms with the orders. It finds saved positions, leases that are requested
// back, lost leases, and terms that are over.
func (w *worker) settle(held []lease.Lease, sent map[*Term]lease.Progress, took time.Duration) {
	type changed struct {
		*Term
		lease *lease.Lease // nil if the worker does not hold it
	}
	var some []changed // the terms that have changed, usually few of thousands
	for _, t := range w.sorted() {
		for len(held) > 0 && held[0].Key.Compare(t.Lease.Key) < 0 {
			held = held[1:]
		}
		ours := len(held) > 0 && held[0].Key == t.Lease.Key && held[0].Epoch == t.Lease.Epoch
		_, said := sent[t]
		switch {
		case ours && (said || held[0].Heir != "" || t.state().returned):
			some = append(some, changed{t, &held[0]})
		case !ours:
			some = append(some, changed{t, nil})
		}
	}
	for _, c := range some {
		t, l, ours := c.Term, c.lease, c.lease != nil
		over, saved := t.settle(sent[t], ours)
		if saved {
			w.cfg.Host.CheckpointSaved(t, sent[t].Position, took)
		}
		if p := sent[t]; p.Position.IsEnd() && !ours {
			w.expect(p)
		}
		now := t.state()
		switch {
		case over:
			w.drop(t)
		case ours && l.Heir != "":
			t.drain()
		case ours && now.returned && !now.finished && !now.wanted && !now.stalled && now.err == nil:
			// The lease expired, but this worker still holds the lease. Unless the session ends or
			// the worker no longer reads the stream, a new term continues where the handler
			// stopped.
			w.drop(t)
			if w.stopping.IsZero() && w.reads(l.Stream) {
				l := *l
				l.Position = t.At()
				w.startTerm(l)
			}
		}
		if now.lost {
			w.hurryUntil = time.Now().Add(2 * w.cfg.Times.Heartbeat)
		}
	}
}

// expect makes the worker send heartbeats faster until it holds the children of a shard that it has
// finished. The plan assigns them to this worker. The fast heartbeats end after a while, because a
// child may have another parent that another worker finishes first.
func (w *worker) expect(p lease.Progress) {
	for _, c := range p.Children {
		w.expected[lease.Key{Stream: p.Stream, Shard: c.ID}] = time.Now().Add(w.cfg.Times.Heartbeat * 3 / 2)
	}
}

// hurries reports whether the worker expects a change that needs frequent heartbeats.
func (w *worker) hurries(now time.Time) bool {
	maps.DeleteFunc(w.expected, func(_ lease.Key, until time.Time) bool { return !now.Before(until) })
	return len(w.expected) > 0 || now.Before(w.hurryUntil)
}

func (w *worker) drop(t *Term) {
	delete(w.terms, t.Lease.Key)
	w.order = nil
	now := t.state()
	if now.err != nil && w.fatal == nil {
		// The reader returned after findFatal checked for errors, and before the report that
		// released its lease.
		w.fatal = now.err
		w.poke()
	}
	w.cfg.Host.LeaseEnded(t, w.whyEnded(now))
}

func (w *worker) whyEnded(t termState) event.EndReason {
	switch {
	case t.lost:
		return event.EndLost
	case t.finished:
		return event.EndFinished
	case !w.stopping.IsZero():
		return event.EndStopped
	case t.stalled:
		return event.EndStalled
	case t.wanted:
		return event.EndHandedOff
	default:
		return event.EndLost
	}
}

// startTerms begins a term for each held lease without a term. If the reader of the last term has
// not returned yet, the lease waits for it.
func (w *worker) startTerms(held []lease.Lease) {
	if !w.stopping.IsZero() {
		return
	}
	for _, l := range held {
		if w.terms[l.Key] != nil || l.Finished() || !w.reads(l.Stream) {
			continue
		}
		w.startTerm(l)
	}
}

func (w *worker) startTerm(l lease.Lease) {
	t := newTerm(l, w.validity, w.poke)
	if l.Heir != "" {
		t.drain()
	}
	w.terms[l.Key], w.order = t, nil
	delete(w.expected, l.Key)
	w.cfg.Host.LeaseTaken(t)
	w.running.Add(1)
	t.calls = &w.calls
	go t.run(func() error { return w.cfg.Host.Read(t) })
}

// endSession handles the end of the session. The worker holds no lease after that.
func (w *worker) endSession() {
	w.validity.end(ErrLeaseLost)
	w.endLeadership()
	w.endDeputy()
	if !w.stopping.IsZero() {
		w.unsaved = append(w.unsaved, w.notSaved()...)
	}
	for _, t := range w.sorted() {
		t.lose()
	}
	w.newSession()
}

func (w *worker) beatFailed(err error) time.Duration {
	if errors.Is(err, lease.ErrFormat) {
		w.newer = true
	}
	if (errors.Is(err, lease.ErrSetup) && w.first || w.newer) && w.stopping.IsZero() {
		// This is not an outage. The store answers, but it is not set up or has a newer format. Run
		// ends with this error.
		w.stop(fmt.Errorf("weir: application %s: %w", w.cfg.App, err))
		return 0
	}
	w.follow.Missed()
	if w.stopping.IsZero() {
		w.failed = err
	}
	now := time.Now()
	if w.outage.IsZero() {
		w.outage = now
		w.cfg.Log.Warn("the store does not answer; reading continues while the leases are valid, and then stops until the store answers",
			"err", err)
	}
	w.failures++
	w.cfg.Host.CallFailed(event.OpHeartbeat, err, w.outage)
	return early(retryAfter(w.cfg.Times.Heartbeat, w.failures, w.validity.context(nil).Err() == nil))
}

// retryAfter returns the time until the next heartbeat after a number of failures. While the leases
// are valid, that time is at most half of the heartbeat interval, so an outage of half the failover
// time does not make them expire. Otherwise it is at most the interval.
func retryAfter(beat time.Duration, failures int, leasesValid bool) time.Duration {
	most := beat
	if leasesValid {
		most = beat / 2
	}
	return min(beat/8<<min(failures, 3), most)
}

// pause returns the time until the next heartbeat, at most wait.
func (w *worker) pause(wait time.Duration) time.Duration {
	next, now := early(w.cfg.Times.Heartbeat), time.Now()
	switch {
	case w.hurries(now):
		next /= 10
	case now.Before(w.awaits):
		next /= 3 // not faster, because all workers do this at the same time
	}
	return min(next, wait)
}

// early returns d reduced by up to a tenth, so that workers that started together do not stay in
// sync.
func early(d time.Duration) time.Duration { return d - jitter.N(d/10+1) }

// sorted returns the terms sorted by key. The heartbeat loop visits all terms several times per
// heartbeat. In this order, which is that of their creation, this takes half as long as in that of
// the map, because the memory of consecutive terms is adjacent.
func (w *worker) sorted() []*Term {
	if w.order == nil && len(w.terms) > 0 {
		w.order = slices.AppendSeq(make([]*Term, 0, len(w.terms)), maps.Values(w.terms))
		sortTerms(w.order)
	}
	return w.order
}

// sortTerms sorts terms by shard, so that operations on many terms have a fixed order.
func sortTerms(all []*Term) {
	slices.SortFunc(all, func(a, b *Term) int { return a.Lease.Key.Compare(b.Lease.Key) })
}
