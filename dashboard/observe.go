package dashboard

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/lease"
)

// Limits of the state that the page keeps between reads.
const (
	mostApps   = 1000             // maximum number of applications kept
	forgetApp  = 10 * time.Minute // time after the last request for an application
	lookBound  = 10 * time.Second // time limit for a read of the store
	lagBound   = 10 * time.Second // time limit for a query of lags
	listEvery  = 30 * time.Second // interval for listing the applications, and the shards of a stream
	mostStarts = 100_000          // maximum number of shards whose creation time is kept
)

// observer reads the store for all open pages. Pages share its reads.
type observer struct {
	store lease.Store
	opts  Options

	mu   sync.Mutex
	apps map[string]*watched

	listing chan struct{} // held while the applications are listed
	listed  time.Time
	names   []string
	failed  time.Time // since when they cannot be listed, zero if they can
	fell    time.Time // when the last attempt to list them ended, if it failed
	err     error     // of that attempt
}

// watched is an application that a page shows.
type watched struct {
	turn chan struct{} // held during a read; guards the following fields
	used time.Time     // time of the last request; observer.mu guards it
	took time.Duration // of the last read
	fell time.Time     // when the last read ended, if the store failed
	// letters is the number of dead letters that the page of dead letters found, "" if it was not
	// opened yet. observer.mu guards it.
	letters string

	seen    sighting
	watch   observe.Watch
	streams map[string]*listing
}

// sighting is the result of one read of an application. It does not change.
type sighting struct {
	view   lease.View
	at     time.Time // when the store last answered; zero if never
	err    error     // of the last read, nil if it succeeded
	failed time.Time // time of the first of the reads that failed since
	past   past      // history of the shards
	beats  map[string]beat
	// judged contains the states of the shards, the worst first.
	judged  []health.Named
	facts   health.Facts // for the verdict
	group   observe.Group
	lags    map[lease.Key]Lag // as of lagsAt
	lagsAt  time.Time
	lagErr  error                   // why lags are missing, nil if none is
	blind   time.Time               // since when no lag can be queried, zero if some can
	asked   map[lease.Key]bool      // shards whose lag was queried
	opened  map[lease.Key]time.Time // creation times of shards, as far as their positions show them
	gone    map[lease.Key]time.Time // when they were first seen finished
	streams map[string]listing
	told    eventLog
	views   *kept
}

// beat contains what the reads have shown about the heartbeats of a session.
type beat struct {
	count uint64
	first time.Time // when this count was first seen
	last  time.Time // when this count was last seen
	moved bool      // the count has changed, and the gap between the two reads was short
}

func newObserver(store lease.Store, o Options) *observer {
	return &observer{store: store, opts: o, apps: map[string]*watched{}, listing: make(chan struct{}, 1)}
}

// failedSince returns since when the applications cannot be listed.
func (o *observer) failedSince() time.Time {
	o.listing <- struct{}{}
	defer func() { <-o.listing }()
	return o.failed
}

// list returns the applications of the store. The list is at most half a minute old. If the store
// fails, list returns an error and the applications of the store's last answer.
func (o *observer) list(ctx context.Context) ([]string, error) {
	admin, can := o.store.(lease.Admin)
	if !can {
		return nil, errCannotList
	}
	asked := time.Now()
	select {
	case o.listing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-o.listing }()
	if o.fell.After(asked) {
		return o.names, o.err
	}
	if o.names != nil && time.Since(o.listed) < listEvery {
		return o.names, nil
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, lookBound)
	defer cancel()
	names, err := admin.Apps(ctx)
	if err != nil {
		if o.failed.IsZero() {
			o.failed = began
		}
		o.fell, o.err = time.Now(), err
		return o.names, err
	}
	o.failed, o.fell, o.err = time.Time{}, time.Time{}, nil
	if names = operate.Apps(names); names == nil {
		names = []string{}
	}
	o.names, o.listed = names, time.Now()
	return names, nil
}

// look returns what is known about an application. It reads the application again unless the last
// read is fresh; see [watched.fresh]. It returns an error only if ctx ends. An error of the store
// is part of the result.
func (o *observer) look(ctx context.Context, app string, fresh time.Duration) (sighting, error) {
	w, asked := o.watch(app), time.Now()
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return sighting{}, ctx.Err()
	}
	defer func() { <-w.turn }()
	now := time.Now()
	// If the store hangs, the requests that wait for one read do not wait for another.
	if w.fresh(now, fresh) || w.seen.err != nil && w.fell.After(asked) {
		return w.seen, nil
	}
	defer func() { w.took = time.Since(now) }()
	bounded, cancel := context.WithTimeout(ctx, lookBound)
	view, err := o.store.View(bounded, app, "")
	cancel()
	if ctx.Err() != nil {
		return sighting{}, ctx.Err() // the client has disconnected
	}
	if err != nil {
		if w.seen.err == nil && !w.seen.at.IsZero() {
			w.seen.told = w.seen.told.with([]event{outage(err, w.seen.at, now)})
		}
		if w.seen.err == nil {
			w.seen.failed = now
		}
		w.seen.err, w.seen.views, w.fell = err, &kept{}, time.Now()
		return w.seen, nil
	}
	next := sighting{
		view: view, at: time.Now(), beats: map[string]beat{}, lags: w.seen.lags,
		lagsAt: w.seen.lagsAt, lagErr: w.seen.lagErr, blind: w.seen.blind, asked: w.seen.asked,
	}
	for _, worker := range view.Workers {
		next.beats[worker.Session] = w.seen.beats[worker.Session].see(worker, next.at)
	}
	next.opened, next.gone = remember(w.seen, view, next.at)
	o.askPast(ctx, app, w, &next)
	o.askLags(ctx, &next)
	o.askStreams(ctx, w, &next)
	w.watch.Add(next.look())
	_, next.judged = w.watch.Judge(next.at)
	next.facts = w.watch.Facts(app, next.at)
	next.group = w.watch.Group()
	next.told, next.views = w.seen.tell(next), &kept{}
	w.seen = next
	return next, nil
}

// fresh reports whether the last read is recent enough. The more leases, the older it may be.
func (w *watched) fresh(now time.Time, least time.Duration) bool {
	return w.seen.err == nil && now.Sub(w.seen.at) < max(least, time.Duration(len(w.seen.view.Leases))*5*time.Millisecond)
}

// atHand reports whether look would answer at once: the last read is fresh, or reads are fast.
func (o *observer) atHand(app string, fresh time.Duration) bool {
	w := o.watch(app)
	select {
	case w.turn <- struct{}{}:
	default:
		return false // a read is in progress
	}
	defer func() { <-w.turn }()
	return w.fresh(time.Now(), fresh) || !w.seen.at.IsZero() && w.took < slowLook
}

// last returns the last read of an application without a new one. It returns the zero value if
// there was no read yet, or if a read is in progress.
func (o *observer) last(app string) sighting {
	w := o.watch(app)
	select {
	case w.turn <- struct{}{}:
	default:
		return sighting{}
	}
	defer func() { <-w.turn }()
	return w.seen
}

// listAtHand reports whether list would answer at once.
func (o *observer) listAtHand() (names []string, atHand bool) {
	select {
	case o.listing <- struct{}{}:
	default:
		return nil, false
	}
	defer func() { <-o.listing }()
	return o.names, o.names != nil && time.Since(o.listed) < listEvery
}

// tell returns the log of events, extended by the events between this read and the next one.
func (s sighting) tell(next sighting) eventLog {
	if s.at.IsZero() {
		told := eventLog{since: next.at, history: next.past.oldest()}
		return told.with(next.past.events(next.at))
	}
	happened := changes(s, next)
	if s.err != nil {
		happened = append([]event{outage(nil, s.at, next.at)}, happened...)
	}
	return s.told.with(happened)
}

func (o *observer) watch(app string) *watched {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	w := o.apps[app]
	if w == nil {
		for name, other := range o.apps {
			if now.Sub(other.used) > forgetApp || len(o.apps) >= mostApps {
				delete(o.apps, name)
			}
		}
		w = &watched{turn: make(chan struct{}, 1), streams: map[string]*listing{}}
		o.apps[app] = w
	}
	w.used = now
	return w
}

// askLags queries the lags of the shards. The more shards, the longer the interval between queries.
func (o *observer) askLags(ctx context.Context, s *sighting) {
	if o.opts.Lags == nil {
		return
	}
	due := s.at.Sub(s.lagsAt) >= max(5*time.Second, time.Duration(len(s.view.Leases))*50*time.Millisecond)
	var open, unknown []lease.Lease // unfinished leases, and leases whose lag was never queried
	for _, l := range s.view.Leases {
		if l.Finished() {
			continue
		}
		open = append(open, l)
		if !s.asked[l.Key] {
			unknown = append(unknown, l)
		}
	}
	switch {
	case due:
	case len(unknown) > 0: // after a split, for example: query only the new leases
		o.askMore(ctx, s, unknown)
		return
	default:
		return
	}
	bounded, cancel := context.WithTimeout(ctx, lagBound)
	defer cancel()
	s.lags, s.lagErr = o.opts.Lags(bounded, open)
	s.lagsAt, s.asked = time.Now(), map[lease.Key]bool{}
	switch {
	case s.lagErr == nil || len(s.lags) > 0:
		s.blind = time.Time{}
	case s.blind.IsZero():
		s.blind = s.lagsAt
	}
	for _, l := range open {
		s.asked[l.Key] = true
	}
}

// askMore queries the lags of leases that have no lag yet, and keeps the other lags.
func (o *observer) askMore(ctx context.Context, s *sighting, leases []lease.Lease) {
	bounded, cancel := context.WithTimeout(ctx, lagBound)
	defer cancel()
	more, err := o.opts.Lags(bounded, leases)
	s.lagErr = cmp.Or(err, s.lagErr)
	// Other goroutines may be reading the old maps.
	s.lags, s.asked = maps.Clone(s.lags), maps.Clone(s.asked)
	maps.Copy(s.lags, more)
	for _, l := range leases {
		s.asked[l.Key] = true
	}
}

// look returns the input for the evaluation of the application's health.
func (s *sighting) look() observe.Look {
	l := observe.Look{At: s.at, View: s.view, Lags: map[lease.Key]observe.Lag{}, Retention: map[string]time.Duration{}}
	for key, lag := range s.lags {
		l.Lags[key] = observe.Lag(lag)
	}
	for name, of := range s.streams {
		if of.retention > 0 {
			l.Retention[name] = of.retention
		}
	}
	return l
}

// see returns b, updated by a read of the worker w at the time now.
func (b beat) see(w lease.Worker, now time.Time) beat {
	switch {
	case b.first.IsZero():
		return beat{count: w.Heartbeats, first: now, last: now}
	case b.count != w.Heartbeats:
		// After a long gap between two reads, the session may have stopped in the meantime. A
		// changed count proves only that the session was alive at some time in the gap.
		return beat{count: w.Heartbeats, first: now, last: now, moved: now.Sub(b.last) <= w.Times.Or(lease.DefaultTimes).Failover}
	}
	b.last = now
	return b
}

// life is the state of a worker, as its heartbeats show it.
type life int

const (
	lifeUnknown life = iota // the observation was too short
	lifeBeats
	lifeLeaving
	lifeSilent
	lifeEnded
	lifeNotKnown // the store does not answer
)

func (l life) String() string {
	return [...]string{
		"no heartbeat seen yet", "alive", "leaves", "silent", "ended", "not known now",
	}[l]
}

// lifeOf returns the state of a worker. The worker is silent only if two reads, at least the
// failover time apart, saw the same count.
func lifeOf(w lease.Worker, b beat) life {
	switch {
	case w.Ended:
		return lifeEnded
	case b.last.Sub(b.first) >= w.Times.Or(lease.DefaultTimes).Failover:
		return lifeSilent
	case w.Leaving:
		return lifeLeaving
	case b.moved:
		return lifeBeats
	}
	return lifeUnknown
}

// remember returns when the shards were opened, and when they were first seen finished. Any
// position in a shard shows its opening time, but a finished shard has no position any more. So
// remember keeps the times from earlier reads.
func remember(old sighting, v lease.View, now time.Time) (opened, gone map[lease.Key]time.Time) {
	opened, gone = map[lease.Key]time.Time{}, map[lease.Key]time.Time{}
	before := maps.Clone(old.opened)
	for _, l := range v.Leases {
		if len(opened) >= mostStarts {
			break
		}
		if at, _, ok := timesOf(l.Position.SequenceNumber()); ok {
			opened[l.Key] = at
		} else if at, known := before[l.Key]; known {
			opened[l.Key] = at
		}
		if !l.Finished() {
			continue
		}
		if at, known := old.gone[l.Key]; known {
			gone[l.Key] = at
		} else if !old.at.IsZero() {
			gone[l.Key] = now
		}
	}
	return opened, gone
}
