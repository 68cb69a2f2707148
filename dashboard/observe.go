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

// Bounds of what is remembered between looks.
const (
	mostApps   = 1000             // applications that are remembered
	forgetApp  = 10 * time.Minute // after nobody has asked for one
	lookBound  = 10 * time.Second // of one look at the store
	lagBound   = 10 * time.Second // of asking for lags
	listEvery  = 30 * time.Second // applications, and the shards of a stream
	mostStarts = 100_000          // shards whose beginning is remembered
)

// observer looks at the store for all who have a page open, at most as often as is worth it.
type observer struct {
	store lease.Store
	opts  Options

	mu   sync.Mutex
	apps map[string]*watched

	listing chan struct{} // whoever holds it lists applications
	listed  time.Time
	names   []string
}

// watched is an application that somebody looks at.
type watched struct {
	turn chan struct{} // whoever holds it looks; it guards what follows
	used time.Time     // guarded by observer.mu

	seen    sighting
	watch   observe.Watch
	streams map[string]*listing
}

// sighting is what was seen of an application. It does not change once it was returned.
type sighting struct {
	view  lease.View
	at    time.Time // when the store last answered; zero if it never did
	err   error     // of the last look, nil when it succeeded
	past  past      // how the shards stood before
	beats map[string]beat
	// how the application and its shards stand, the worst first
	whole   health.Application
	judged  []health.Named
	lags    map[lease.Key]Lag // as of lagsAt
	lagsAt  time.Time
	lagErr  error                   // why not of all of them, nil if of all
	asked   map[lease.Key]bool      // whose lag was asked for
	opened  map[lease.Key]time.Time // when shards were opened, as far as their positions told
	gone    map[lease.Key]time.Time // since when they were seen finished
	streams map[string]listing
	told    eventLog
}

// beat is what was seen of the beats of a session.
type beat struct {
	count uint64
	first time.Time // when that count was first seen
	last  time.Time // and last
	moved bool      // it was seen to move, with no long gap between two looks
}

func newObserver(store lease.Store, o Options) *observer {
	return &observer{store: store, opts: o, apps: map[string]*watched{}, listing: make(chan struct{}, 1)}
}

// list returns the applications of the store, as of half a minute ago at most.
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

// look returns what is known of an application, and looks again if that is old. It fails only when
// ctx ends; that the store does not answer is in what it returns.
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
		return sighting{}, ctx.Err() // whoever asked has gone
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

// tell is the log of what happened up to a look that comes after this one.
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

// askLags asks how far shards are behind, the less often the more there are.
func (o *observer) askLags(ctx context.Context, s *sighting) {
	if o.opts.Lags == nil {
		return
	}
	due := s.at.Sub(s.lagsAt) >= max(5*time.Second, time.Duration(len(s.view.Leases))*50*time.Millisecond)
	var open, unknown []lease.Lease // unfinished ones, and of these what nobody was asked about yet
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
	case len(unknown) > 0: // as after a split: what is known of the others stays
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

// askMore asks about leases that are new.
func (o *observer) askMore(ctx context.Context, s *sighting, leases []lease.Lease) {
	bounded, cancel := context.WithTimeout(ctx, lagBound)
	defer cancel()
	more, err := o.opts.Lags(bounded, leases)
	s.lagErr = cmp.Or(err, s.lagErr)
	// others may be reading the maps
	s.lags, s.asked = maps.Clone(s.lags), maps.Clone(s.asked)
	maps.Copy(s.lags, more)
	for _, l := range leases {
		s.asked[l.Key] = true
	}
}

// look is what the judgement is made from.
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

// see is what is known of a session's beats after a look at now.
func (b beat) see(w lease.Worker, now time.Time) beat {
	switch {
	case b.first.IsZero():
		return beat{count: w.Beat, first: now, last: now}
	case b.count != w.Beat:
		// a long gap between two looks proves only that it lived at some time in between
		return beat{count: w.Beat, first: now, last: now, moved: now.Sub(b.last) <= w.Times.Or(lease.DefaultTimes).Failover}
	}
	b.last = now
	return b
}

// life is whether a worker lives, as far as its beats show.
type life int

const (
	lifeUnknown life = iota // it was not looked at for long enough
	lifeBeats
	lifeLeaving
	lifeSilent
	lifeEnded
)

func (l life) String() string {
	return [...]string{"not seen to beat yet", "beats", "leaves", "silent", "ended"}[l]
}

// lifeOf judges a worker. Only a count that stood still for the failover time, between two looks,
// says that it is silent.
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

// remember keeps when shards were opened, which any position in them tells, and when they were seen
// to be finished, which takes the position away.
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
