package group

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/shardlag"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
)

// appLook contains the observations of an application.
type appLook struct {
	app    string
	view   lease.View
	beats  map[string]bool // sessions that sent a heartbeat; nil if there was nothing to watch
	looked time.Duration
	at     time.Time
	past   observe.Past
	lags   map[lease.Key]shardlag.Lag
	kept   map[string]time.Duration // retention by stream
}

// readApps returns the state of all applications in a store, sorted by name.
func readApps(ctx context.Context, t cli.Terminal, store stores.Store) ([]appLook, error) {
	admin, err := store.Admin()
	if err != nil {
		return nil, err
	}
	apps, err := admin.Apps(ctx)
	if err != nil {
		return nil, store.Explain(err)
	}
	if len(apps) == 0 { // the table may belong to others, or this user may not see its content: reading reports that
		if _, err := store.ReadApp(ctx, "weir"); err != nil {
			return nil, err
		}
	}
	all := make([]appLook, len(apps))
	for i, app := range apps {
		all[i].app = app
	}
	shown := cli.NewBar(t, "reading applications", len(apps))
	err = eachApp(all, func(a *appLook) (err error) {
		a.view, err = store.ReadApp(ctx, a.app)
		shown.Advance(1)
		return err
	})
	shown.Done()
	return all, err
}

// eachApp calls f for each application, a limited number at the same time.
func eachApp(all []appLook, f func(*appLook) error) error {
	var (
		failed = make([]error, len(all))
		asked  sync.WaitGroup
		turns  = make(chan struct{}, 8)
	)
	for i := range all {
		turns <- struct{}{}
		asked.Go(func() {
			defer func() { <-turns }()
			failed[i] = f(&all[i])
		})
	}
	asked.Wait()
	return cmp.Or(failed...)
}

// watchApps reads the applications with workers once more, after a time in which each live worker
// sends a heartbeat.
func watchApps(ctx context.Context, t cli.Terminal, store stores.Store, all []appLook) ([]appLook, error) {
	var length time.Duration
	for i := range all {
		if target.NotEnded(all[i].view) > 0 {
			length = max(length, (&target.LookFlag{}).ForBeats(all[i].view))
		}
	}
	if length == 0 {
		return all, nil
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return all, eachApp(all, func(a *appLook) error {
		if target.NotEnded(a.view) == 0 {
			return nil
		}
		now, err := store.ReadApp(ctx, a.app)
		if err != nil {
			return err
		}
		a.beats, a.looked = map[string]bool{}, length
		for _, w := range target.BeatBetween(a.view, now) {
			a.beats[w.Session] = true
		}
		a.view = now
		return nil
	})
}

// lags reads the history and the lags of all applications. It notes which of them are not known.
func (o *listOptions) lags(ctx context.Context, t cli.Terminal, store stores.Store, all []appLook) {
	var client *kinesis.Client
	if !o.noLag {
		var err error
		if client, err = o.AWS.Kinesis(ctx, t); err != nil {
			t.Note("no lag: %s", explain.Error(err))
		}
	}
	for i := range all {
		a := &all[i]
		a.at = time.Now()
		past, err := shardlag.Past(ctx, store, a.app, a.at)
		if err != nil && ctx.Err() == nil {
			t.Note("the history of application %s is not known: %s", cli.Visible(a.app), explain.Error(store.Explain(err)))
		}
		a.past = past
		if client == nil {
			continue
		}
		a.lags = shardlag.Ask(ctx, t, client, a.view.Leases, "")
		a.kept = shardlag.Retentions(ctx, client, target.StreamsOf(a.view.Leases), nil)
		a.at = time.Now()
		if n, err := shardlag.FirstError(a.lags); n > 0 {
			t.Note("the lag of %s of application %s is not known: %s", cli.Count(n, "shard"), cli.Visible(a.app), explain.Error(err))
		}
	}
}

// summary evaluates the observations.
func (l *appLook) summary() appInfo {
	v := l.view
	a := appInfo{App: l.app, Streams: target.StreamsOf(v.Leases), Leases: len(v.Leases), Paused: v.Paused}
	if a.Streams == nil {
		a.Streams = []string{}
	}
	silent := map[string]bool{}
	for _, w := range v.Workers {
		silent[w.Session] = workerState(w, l.beats, l.looked) == "silent"
	}
	seen := shardlag.LookAt(l.at, v, l.lags)
	seen.Retention, seen.Silent = l.kept, silent
	group := observe.GroupOf(v, silent)
	a.Held, a.Finished, a.Workers = group.Held, group.Finished, group.Living
	for _, w := range v.Workers {
		if w.Ended {
			continue
		}
		if w.Session == v.Leader.Session {
			a.Leader = cmp.Or(w.Name, w.Session)
		}
		if silent[w.Session] {
			a.Silent++
			continue
		}
		for _, tr := range w.Troubles {
			a.DeadLettered += tr.Failing.GivenUp
		}
	}
	var watch observe.Watch
	watch.Remember(l.past)
	watch.Add(seen)
	sum, _ := watch.Judge(l.at)
	a.State, a.Sentence = sum.State, sum.Sentence
	for _, lag := range l.lags {
		if lag.Err != nil {
			continue
		}
		if ms := lag.Age.Milliseconds(); a.Worst == nil || *a.Worst < ms {
			a.Worst = &ms
		}
		if lag.Waits {
			a.Behind++
		}
	}
	return a
}
