package dashboard

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
)

// Limits of the state between reads.
const (
	mostApps   = 1000             // applications kept
	forgetApp  = 10 * time.Minute // after the last request for one
	lookBound  = 10 * time.Second // for one read of the store
	lagBound   = 10 * time.Second // for a query of lags
	listEvery  = 30 * time.Second // applications, and the shards of a stream
	mostStarts = 100_000          // shards with known creation time
)

// observer reads the store for all open pages, at most as often as useful.
type observer struct {
	store lease.Store
	opts  Options

	mu   sync.Mutex
	apps map[string]*watched

	listing chan struct{} // held while listing applications
	listed  time.Time
	names   []string
}

// watched is an application that is shown.
type watched struct {
	turn chan struct{} // held while reading; it guards the following fields
	used time.Time     // guarded by observer.mu

	seen    sighting
	watch   observe.Watch
	streams map[string]*listing
}

// sighting is the result of one read of an application. It is immutable.
type sighting struct {
	view  lease.View
	at    time.Time // when the store last answered; zero if never
	err   error     // of the last read, nil if it succeeded
	past  past      // history of the shards
	beats map[string]beat
	// the state of the application and its shards, the worst first
	whole   health.Application
	judged  []health.Named
	lags    map[lease.Key]Lag // as of lagsAt
	lagsAt  time.Time
	lagErr  error                   // why lags are missing, nil if none is
	asked   map[lease.Key]bool      // shards whose lag was queried
	opened  map[lease.Key]time.Time // creation times of shards, as far as their positions show them
	gone    map[lease.Key]time.Time // when they were first seen finished
	streams map[string]listing
	told    eventLog
}

// beat contains the observations of a session's heartbeats.
type beat struct {
	count uint64
	first time.Time // when that count was first seen
	last  time.Time // and last
	moved bool      // it changed, without a long gap between two reads
}

func newObserver(store lease.Store, o Options) *observer {
	return &observer{store: store, opts: o, apps: map[string]*watched{}, listing: make(chan struct{}, 1)}
}

// list returns the applications of the store, at most half a minute old.
func (o *observer) list(ctx context.Context) ([]string, error) {
	admin, can := o.store.(lease.Admin)
	if !can {
		return nil, errCannotList
	}
	select {
	case o.listing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-o.listing }()
	if o.names != nil && time.Since(o.listed) < listEvery {
		return o.names, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookBound)
	defer cancel()
	names, err := admin.Apps(ctx)
	if err != nil {
		return nil, err
	}
	if names == nil {
		names = []string{}
	}
	o.names, o.listed = names, time.Now()
	return names, nil
}

// look returns the known data of an application, and reads again if it is older than fresh. It
// returns an error only if ctx ends; the result contains an error of the store.
func (o *observer) look(ctx context.Context, app string, fresh time.Duration) (sighting, error) {
	w := o.watch(app)
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return sighting{}, ctx.Err()
	}
	defer func() { <-w.turn }()
	now := time.Now()
	if w.seen.err == nil && now.Sub(w.seen.at) < max(fresh, time.Duration(len(w.seen.view.Leases))*5*time.Millisecond) {
		return w.seen, nil
	}
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
		w.seen.err = err
		return w.seen, nil
	}
	next := sighting{view: view, at: time.Now(), beats: map[string]beat{}, lags: w.seen.lags, lagsAt: w.seen.lagsAt, lagErr: w.seen.lagErr, asked: w.seen.asked}
	for _, worker := range view.Workers {
		next.beats[worker.Session] = w.seen.beats[worker.Session].see(worker, next.at)
	}
	next.opened, next.gone = remember(w.seen, view, next.at)
	o.askPast(ctx, app, w, &next)
	o.askLags(ctx, &next)
	o.askStreams(ctx, w, &next)
	w.watch.Add(next.look())
	next.whole, next.judged = w.watch.Judge(next.at)
	next.told = w.seen.tell(next)
	w.seen = next
	return next, nil
}

// tell returns the log of events up to the next read.
func (s sighting) tell(next sighting) eventLog {
	if s.at.IsZero() {
		return eventLog{since: next.at}
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

// askLags queries the lags of shards, less often for more shards.
func (o *observer) askLags(ctx context.Context, s *sighting) {
	if o.opts.Lags == nil {
		return
	}
	due := s.at.Sub(s.lagsAt) >= max(5*time.Second, time.Duration(len(s.view.Leases))*50*time.Millisecond)
	var open, unknown []lease.Lease // unfinished ones, and those without an earlier query
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
	case len(unknown) > 0: // after a split, for example: keep the lags of the others
		o.askMore(ctx, s, unknown)
		return
	default:
		return
	}
	bounded, cancel := context.WithTimeout(ctx, lagBound)
	defer cancel()
	s.lags, s.lagErr = o.opts.Lags(bounded, open)
	s.lagsAt, s.asked = time.Now(), map[lease.Key]bool{}
	for _, l := range open {
		s.asked[l.Key] = true
	}
}

// askMore queries new leases.
func (o *observer) askMore(ctx context.Context, s *sighting, leases []lease.Lease) {
	bounded, cancel := context.WithTimeout(ctx, lagBound)
	defer cancel()
	more, err := o.opts.Lags(bounded, leases)
	s.lagErr = cmp.Or(err, s.lagErr)
	// Other goroutines may be reading the maps.
	s.lags, s.asked = maps.Clone(s.lags), maps.Clone(s.asked)
	maps.Copy(s.lags, more)
	for _, l := range leases {
		s.asked[l.Key] = true
	}
}

// look returns the input for the evaluation.
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

// see returns the observations of a session after a read at now.
func (b beat) see(w lease.Worker, now time.Time) beat {
	switch {
	case b.first.IsZero():
		return beat{count: w.Beat, first: now, last: now}
	case b.count != w.Beat:
		// A long gap between two reads only proves that it was alive at some time in between.
		return beat{count: w.Beat, first: now, last: now, moved: now.Sub(b.last) <= w.Times.Or(lease.DefaultTimes).Failover}
	}
	b.last = now
	return b
}

// life is the state of a worker, as far as its heartbeats show.
type life int

const (
	lifeUnknown life = iota // the observation is too short
	lifeBeats
	lifeLeaving
	lifeSilent
	lifeEnded
)

func (l life) String() string {
	return [...]string{"no heartbeat seen yet", "beats", "leaves", "silent", "ended"}[l]
}

// lifeOf evaluates a worker. It is silent only if its count did not change for the failover time,
// between two reads.
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

// remember keeps when shards were opened, which any position in them shows, and when they were
// first seen finished, which removes the position.
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
