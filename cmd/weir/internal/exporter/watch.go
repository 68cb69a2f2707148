package exporter

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/shardlag"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// watcher reads applications until it is stopped. Only one goroutine reads. mu guards its results.
type watcher struct {
	store   stores.Shown
	kinesis *kinesis.Client // nil if Kinesis is not to be queried
	opts    *options
	told    cli.Terminal

	mu         sync.Mutex
	apps       map[string]*watchedApp
	listed     error     // why applications could not be listed; nil if they could
	discovered time.Time // when applications were last listed; belongs to the reading goroutine, like denied
	denied     bool      // the log already says that lags are unknown
}

// watchedApp contains the observations of an application. watcher.mu guards all fields except name.
type watchedApp struct {
	name      string
	err       error     // of the last look at the store
	failed    time.Time // when the first of the looks began that failed since
	looked    time.Time // when the store last answered
	past      bool      // the history was read, or there is none
	recalled  time.Time // when the history was last read
	watch     observe.Watch
	read      time.Time // when the shards were last read
	lags      map[lease.Key]observe.Lag
	unread    int   // shards whose lag could not be determined in the last read
	lagErr    error // the reason for unread
	reads     int   // reads so far
	retention map[string]time.Duration
	moved     map[lease.Key]moved
}

// moved is the position of a checkpoint, and when the exporter first saw the checkpoint there.
type moved struct {
	to shard.Position
	at time.Time
}

// readsPerSecond limits the reads of all shards together.
const readsPerSecond = 20

// readEvery returns the interval between reads of n shards. It is at least the interval between
// reads of the store. All shards together use at most readsPerSecond. A shard allows five reads per
// second, and the exporter uses at most the given share of them. To get the lag of a shard, the
// exporter reads the shard up to twice.
func readEvery(n int, every time.Duration, share float64) time.Duration {
	return max(every, time.Duration(n)*time.Second/readsPerSecond, time.Duration(2/(5*share)*float64(time.Second)))
}

func (w *watcher) run(ctx context.Context) {
	ticker := time.NewTicker(w.opts.every)
	defer ticker.Stop()
	for {
		w.look(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// look reads each application once.
func (w *watcher) look(ctx context.Context) {
	w.discover(ctx)
	w.mu.Lock()
	apps := make([]*watchedApp, 0, len(w.apps))
	for _, a := range w.apps {
		apps = append(apps, a)
	}
	w.mu.Unlock()
	slices.SortFunc(apps, func(a, b *watchedApp) int { return a.looked.Compare(b.looked) }) // the application that has waited longest comes first
	for _, a := range apps {
		w.visit(ctx, a)
	}
}

// listEvery is the minimum interval between two listings of the applications. On DynamoDB, a
// listing reads the whole table.
const listEvery = 30 * time.Second

// discover lists the applications if the last listing is old enough. It does nothing if the flags
// name applications.
func (w *watcher) discover(ctx context.Context) {
	if len(w.opts.apps) > 0 || time.Since(w.discovered) < listEvery-w.opts.every/10 {
		return
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	names, err := w.store.Apps(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listed = err; err != nil {
		return // keep the known applications
	}
	w.discovered = began
	for _, name := range names {
		if w.apps[name] == nil {
			w.apps[name] = &watchedApp{name: name}
		}
	}
	for name := range w.apps {
		if !slices.Contains(names, name) {
			delete(w.apps, name)
		}
	}
}

// visit reads the application from the store, and reads its shards if that is due.
func (w *watcher) visit(ctx context.Context, a *watchedApp) {
	began := time.Now()
	call, cancel := context.WithTimeout(ctx, 10*time.Second)
	view, err := w.store.View(call, a.name, "")
	cancel()
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if a.err == nil {
			a.failed = began
		}
		a.err = err
		return
	}
	// The history of an application that is well is read only once. Only this goroutine writes
	// these fields.
	var past observe.Past
	remembers, recalled := a.past, a.recalled
	if now := time.Now(); !remembers || a.needsCause(now) {
		past, err = shardlag.Past(ctx, w.store, a.name, now)
		remembers, recalled = remembers || err == nil, now
	}
	if len(w.opts.streams) > 0 {
		view.Leases = slices.DeleteFunc(slices.Clone(view.Leases), func(l lease.Lease) bool { return !slices.Contains(w.opts.streams, l.Stream) })
	}
	var open []lease.Lease
	for _, l := range view.Leases {
		if !l.Finished() {
			open = append(open, l)
		}
	}
	now := time.Now()
	lags, read, retention := a.lags, a.read, a.retention // only this goroutine writes these fields
	unread, lagErr, reads := a.unread, a.lagErr, 0
	if w.kinesis != nil && now.Sub(read) >= readEvery(len(open), w.opts.every, w.opts.share)-w.opts.every/10 {
		retention = shardlag.Retentions(ctx, w.kinesis, target.StreamsOf(view.Leases), a.retention)
		found := shardlag.Ask(ctx, cli.Silent, w.kinesis, open, "")
		if ctx.Err() != nil {
			return
		}
		lags, reads = shardlag.LookAt(now, view, found).Lags, len(found)
		unread, lagErr = shardlag.FirstError(found)
		read, now = now, time.Now()
	}
	if lagErr != nil && !w.denied {
		w.denied = true
		w.told.Note("application %s: the lag of %s is not known: %s", a.name, cli.Count(unread, "shard"), explain.Error(lagErr))
	} else if lagErr == nil && reads > 0 {
		w.denied = false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	a.err, a.looked = nil, now
	a.lags, a.read, a.retention, a.unread, a.lagErr = lags, read, retention, unread, lagErr
	a.reads += reads
	switch {
	case past == nil:
	case a.past:
		a.watch.Recall(past)
	default:
		a.watch.Remember(past)
	}
	a.past, a.recalled = remembers, recalled
	was := a.moved
	a.moved = make(map[lease.Key]moved, len(view.Leases))
	for _, l := range view.Leases {
		if m, known := was[l.Key]; known && m.to == l.Position {
			a.moved[l.Key] = m
		} else {
			a.moved[l.Key] = moved{l.Position, now}
		}
	}
	a.watch.Add(observe.Look{At: now, View: view, Lags: since(lags, view, was, now.Sub(read)), Retention: retention})
}

// recallEvery is the minimum interval between two reads of the history. Workers report once a
// minute.
const recallEvery = time.Minute

// needsCause reports whether the history must be read again, to find the cause of a lag.
func (a *watchedApp) needsCause(now time.Time) bool {
	if now.Sub(a.recalled) < recallEvery {
		return false
	}
	sum, _ := a.watch.Judge(now)
	return sum.State >= health.Behind
}

// since updates lags that were read some time ago; later is that time. If the checkpoint of a shard
// has not moved, the lag of the shard has grown by later. Otherwise the lag keeps its old value
// until the shard is read again.
func since(lags map[lease.Key]observe.Lag, v lease.View, was map[lease.Key]moved, later time.Duration) map[lease.Key]observe.Lag {
	if later <= 0 {
		return lags
	}
	now := map[lease.Key]observe.Lag{}
	for _, l := range v.Leases {
		lag, known := lags[l.Key]
		if !known {
			continue
		}
		if m, seen := was[l.Key]; lag.Behind > 0 && seen && m.to == l.Position {
			lag.Behind += later
		}
		now[l.Key] = lag
	}
	return now
}

// standing is the state of an application at one moment.
type standing struct {
	name   string
	err    error
	sum    health.Application
	facts  health.Facts
	shards []health.Named
	group  observe.Group
	moved  map[lease.Key]moved
	reads  int
	known  bool // the store has answered at least once
	looked time.Time
}

// judge returns the state of all applications, sorted by name.
func (w *watcher) judge(now time.Time) []standing {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]standing, 0, len(w.apps))
	for _, a := range w.apps {
		j := standing{
			name: a.name, err: a.err, moved: a.moved, reads: a.reads,
			known: !a.looked.IsZero(), looked: a.looked,
		}
		j.sum, j.shards = a.watch.Judge(now)
		j.facts = a.watch.Facts(a.name, now)
		if a.lagErr != nil {
			j.facts.NoLag = explain.Error(a.lagErr)
		}
		if a.err != nil {
			j.facts.StoreSilent = a.failed
			for i := range j.shards {
				j.shards[i].Shard = j.shards[i].Unanswered()
			}
		}
		j.group = a.watch.Group()
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b standing) int { return strings.Compare(a.name, b.name) })
	return all
}
