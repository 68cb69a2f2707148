package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/lease"
)

// Options configures a [Store].
type Options struct {
	// Prefix is the beginning of all keys, by default "weir:". It has at most 100 bytes and
	// contains no braces. All processes of an application must use the same prefix.
	Prefix string
	// Replicas is the number of replicas that must have a write before a call succeeds. The default
	// is 0, which does not wait. See the section about failovers in the package comment.
	Replicas int
	// ReplicaTimeout is the time limit of the wait for replicas. The default is 1 s. After that
	// time the call fails, although its writes were made.
	ReplicaTimeout time.Duration
}

// Store implements [lease.Store] on Redis. It is safe for concurrent use by any number of
// processes. Its methods return the errors of the contract and those of the client.
type Store struct {
	client  redis.UniversalClient
	options Options
	checked atomic.Bool // the server does not evict leases, as far as its settings can be read
	doubt   atomic.Bool // a call timed out, and the connections have not been checked since
}

var (
	_ lease.Store     = (*Store)(nil)
	_ lease.Admin     = (*Store)(nil)
	_ lease.Historian = (*Store)(nil)
)

// New returns a Store on a client, which the caller must close. It returns an error for invalid
// options, and does not call the server. The client must have ContextTimeoutEnabled, because a
// heartbeat that outlives its context would block its worker.
func New(client redis.UniversalClient, o Options) (*Store, error) {
	honours := true
	switch c := client.(type) {
	case nil:
		return nil, errors.New("redisstore: client is nil: make one with redis.NewClient")
	case *redis.Client:
		honours = c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		honours = c.Options().ContextTimeoutEnabled
	}
	var wrong []error
	if !honours {
		wrong = append(wrong, errors.New("redisstore: the client ignores deadlines of contexts: set ContextTimeoutEnabled in its options"))
	}
	if o.Prefix == "" {
		o.Prefix = "weir:"
	}
	if len(o.Prefix) > 100 || strings.ContainsAny(o.Prefix, "{}") {
		wrong = append(wrong, fmt.Errorf("redisstore: Options.Prefix %.60q: want at most 100 bytes without braces", o.Prefix))
	}
	if o.Replicas < 0 || o.ReplicaTimeout < 0 {
		wrong = append(wrong, errors.New("redisstore: Options.Replicas and ReplicaTimeout must not be below zero"))
	}
	if o.ReplicaTimeout == 0 {
		o.ReplicaTimeout = time.Second
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return &Store{client: client, options: o}, nil
}

// parts are the parts of an application, in the order of the scripts' keys.
var parts = [...]string{"app", "leases", "sessions", "owned", "paused"}

// key returns the name of one part of an application. In a cluster, the text in braces determines
// the slot, so it must not contain braces.
func (s *Store) key(app, part string) string {
	return s.options.Prefix + "{" + url.QueryEscape(app) + "}:" + part
}

func (s *Store) keys(app string) []string {
	keys := make([]string, len(parts))
	for i, part := range parts {
		keys[i] = s.key(app, part)
	}
	return keys
}

// Abilities implements [lease.Store].
func (s *Store) Abilities() lease.Abilities {
	return lease.WatchHeartbeats | lease.ResignByHeartbeat | lease.NoteFailures | lease.NoteDeaths | lease.KeepHistory | lease.NoteStreams |
		lease.NoteRates | lease.NotePauses | lease.NoteNumbers
}

// Heartbeat implements [lease.Store].
func (s *Store) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	r, err := r.Check()
	if err != nil {
		return lease.Orders{}, err
	}
	row, progress, err := encodeReport(r)
	if err != nil {
		return lease.Orders{}, err
	}
	a, err := s.run(ctx, beatScript, app, r.Session, flag(r.First), row, progress, r.Times.String(), flag(r.Others), count(r.Resigns), string(r.Streams))
	if err != nil {
		return lease.Orders{}, err
	}
	d := decoder{values: a}
	if d.text() == "over" {
		return lease.Orders{}, lease.ErrSessionOver
	}
	o := lease.Orders{Leader: d.leader()}
	if streams := d.text(); r.Others {
		o.Leader.Streams = lease.Streams(streams)
	}
	others := d.inner()
	o.Held = d.leases()
	if r.Others {
		o.Others = others.beats()
	}
	if err := errors.Join(d.err, others.err); err != nil {
		return lease.Orders{}, err
	}
	return o, nil
}

// View implements [lease.Store]. It is one snapshot.
func (s *Store) View(ctx context.Context, app, since string) (lease.View, error) {
	a, err := s.run(ctx, viewScript, app, since)
	if err != nil {
		return lease.View{}, err
	}
	d := decoder{values: a}
	v := lease.View{Revision: d.text(), Same: d.number() == 1, Leader: d.leader(), Paused: d.texts()}
	leases, workers := d.inner(), d.inner()
	if !v.Same {
		v.Leases = leases.leases()
	}
	v.Workers = workers.workers()
	notes := d.texts()
	for i, stream := range v.Paused[:min(len(v.Paused), len(notes))] {
		if v.PauseNotes == nil {
			v.PauseNotes = make(map[string]string, len(notes))
		}
		v.PauseNotes[stream] = notes[i]
	}
	slices.Sort(v.Paused)
	if err := errors.Join(d.err, leases.err, workers.err); err != nil {
		return lease.View{}, err
	}
	return v, nil
}

// applyAtOnce is the maximum number of actions in one script, because a script blocks all others.
const applyAtOnce = 500

// Apply implements [lease.Store]. Up to 500 actions take effect in one step.
func (s *Store) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	for _, a := range actions {
		if err := a.Check(); err != nil {
			return nil, err
		}
	}
	if len(actions) == 0 {
		return nil, errors.Join(ctx.Err(), lease.CheckApp(app))
	}
	done := make([]bool, 0, len(actions))
	for some := range slices.Chunk(actions, applyAtOnce) {
		text, err := encodeActions(some)
		if err != nil {
			return nil, err
		}
		a, err := s.run(ctx, applyScript, app, text)
		if err != nil {
			return nil, err
		}
		d := decoder{values: a}
		for range some {
			done = append(done, d.number() == 1)
		}
		if d.err != nil {
			return nil, d.err
		}
	}
	return done, nil
}

// Lead implements [lease.Store].
func (s *Store) Lead(ctx context.Context, app, session string, term uint64) (bool, error) {
	a, err := s.run(ctx, leadScript, app, session, count(term))
	if err != nil {
		return false, err
	}
	d := decoder{values: a}
	won := d.number() == 1
	return won && d.err == nil, d.err
}

// Leave implements [lease.Store].
func (s *Store) Leave(ctx context.Context, app string, r lease.Report) error {
	r, err := r.Check()
	if err != nil {
		return err
	}
	_, progress, err := encodeReport(r)
	if err != nil {
		return err
	}
	_, err = s.run(ctx, leaveScript, app, r.Session, progress)
	return err
}

// Apps implements [lease.Admin]. It reads the names of all keys in the database, a thousand at a
// time.
func (s *Store) Apps(ctx context.Context) ([]string, error) {
	found := map[string]bool{}
	begin, end := s.options.Prefix+"{", "}:"+parts[0]
	scan := func(ctx context.Context, c redis.Cmdable) error {
		keys := c.Scan(ctx, 0, globEscape(begin)+"*"+end, 1000).Iterator()
		for keys.Next(ctx) {
			name, ok := strings.CutPrefix(keys.Val(), begin)
			name, cut := strings.CutSuffix(name, end)
			app, err := url.QueryUnescape(name)
			if ok && cut && err == nil && s.key(app, parts[0]) == keys.Val() && lease.CheckApp(app) == nil {
				found[app] = true
			}
		}
		return keys.Err()
	}
	var err error
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		// Read one master after the other, because found is not safe for concurrent writes.
		turn := make(chan struct{}, 1)
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
			turn <- struct{}{}
			defer func() { <-turn }()
			return scan(ctx, c)
		})
	} else {
		err = scan(ctx, s.client)
	}
	if err != nil {
		return nil, explain(ctx, err)
	}
	apps := make([]string, 0, len(found))
	for app := range found {
		apps = append(apps, app)
	}
	slices.Sort(apps)
	return apps, nil
}

// globEscape returns a pattern that matches exactly the text s.
func globEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}

// Remove implements [lease.Admin].
func (s *Store) Remove(ctx context.Context, app string) error {
	if err := lease.CheckApp(app); err != nil {
		return err
	}
	return explain(ctx, s.client.Del(ctx, append(s.keys(app), s.historyKeys(app)...)...).Err())
}
