package behaviour

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// mortalSink is a sink that stores its positions itself. Its workers die at some records. A
// position moves only every few records, like that of a sink that writes objects.
type mortalSink struct {
	t      *testing.T
	srv    *kinesistest.Server
	store  lease.Store
	opts   weir.Options
	every  int // number of records in a write
	kills  []string
	mu     sync.Mutex
	at     map[string]weir.Position
	got    map[string]int
	deaths map[string]int
	began  int
	runs   sync.WaitGroup
	ends   context.Context
}

type mortalTerm struct {
	*mortalSink
	shard string
	held  []weir.Record
	store *mortalStore
}

// mortalStore is a store that does not answer after the death of its worker.
type mortalStore struct {
	lease.Store
	dead chan struct{}
}

func (s *mortalStore) lives(ctx context.Context) error {
	select {
	case <-s.dead:
		<-ctx.Done()
		return context.Cause(ctx)
	default:
		return nil
	}
}

func (s *mortalStore) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if err := s.lives(ctx); err != nil {
		return lease.Orders{}, err
	}
	return s.Store.Heartbeat(ctx, app, r)
}

func (s *mortalStore) View(ctx context.Context, app, since string) (lease.View, error) {
	if err := s.lives(ctx); err != nil {
		return lease.View{}, err
	}
	return s.Store.View(ctx, app, since)
}

func (s *mortalStore) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	if err := s.lives(ctx); err != nil {
		return nil, err
	}
	return s.Store.Apply(ctx, app, actions)
}

func (s *mortalStore) Lead(ctx context.Context, app, session string, term uint64) (bool, error) {
	if err := s.lives(ctx); err != nil {
		return false, err
	}
	return s.Store.Lead(ctx, app, session, term)
}

func (s *mortalStore) Leave(ctx context.Context, app string, r lease.Report) error {
	if err := s.lives(ctx); err != nil {
		return err
	}
	return s.Store.Leave(ctx, app, r)
}

func (s *mortalTerm) Close(context.Context, event.EndReason) {}

func (s *mortalTerm) Handle(ctx context.Context, b *weir.Batch) error {
	for _, r := range b.Records {
		if slices.Contains(s.kills, string(r.Data)) {
			s.mu.Lock()
			s.deaths[string(r.Data)]++
			s.mu.Unlock()
			time.AfterFunc(time.Second, s.start)
			close(s.store.dead)
			<-ctx.Done()
			return context.Cause(ctx)
		}
		if s.held = append(s.held, r); len(s.held) >= s.every {
			s.write()
		}
	}
	if b.End {
		s.write()
		s.mu.Lock()
		s.at[s.shard] = shard.End
		s.mu.Unlock()
	}
	return nil
}

func (s *mortalTerm) write() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.held {
		s.got[string(r.Data)]++
		s.at[s.shard] = r.Position()
	}
	s.held = nil
}

func (s *mortalSink) start() {
	s.mu.Lock()
	s.began++
	opts := s.opts
	opts.App, opts.Streams, opts.Worker, opts.Logger = "app", []string{"s"}, fmt.Sprint("worker ", s.began), quiet
	s.mu.Unlock()
	store := &mortalStore{s.store, make(chan struct{})}
	c, err := weir.New(s.srv.Client(), store, opts)
	if err != nil {
		s.t.Error(err)
		return
	}
	s.runs.Go(func() {
		ctx, cancel := context.WithCancel(s.ends)
		defer cancel()
		go func() {
			select {
			case <-store.dead:
				cancel()
			case <-ctx.Done():
			}
		}()
		_ = c.RunShards(ctx, weir.ShardHandlers{
			Open: func(_ context.Context, t weir.Term) (weir.ShardHandler, error) {
				return &mortalTerm{mortalSink: s, shard: t.Shard, store: store}, nil
			},
			Position: func(_ context.Context, _, shard string) (weir.Position, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.at[shard], nil
			},
		})
	})
}

// TestKillersInARowWithASink puts several killing records in a row. Each of them must be found and
// dead-lettered. The sink does not contain them, and each worker begins to read before them.
func TestKillersInARowWithASink(t *testing.T) {
	for _, c := range []struct {
		name  string
		every int
		kills []string
	}{
		{"two in a row", 1, []string{"r 20", "r 21"}},
		{"three in a row", 1, []string{"r 20", "r 21", "r 22"}},
		{"two apart", 1, []string{"r 20", "r 23"}},
		{"two in one write", 10, []string{"r 23", "r 26"}},
		{"the first two", 1, []string{"r 0", "r 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				box := &letterbox{}
				s := &mortalSink{
					t: t, srv: srv, store: memstore.New(), every: c.every, kills: c.kills,
					opts: weir.Options{OnFailure: weir.FailurePolicy{Destination: box, OutageGrace: -1}},
					at:   map[string]weir.Position{}, got: map[string]int{}, deaths: map[string]int{},
				}
				ends, cancel := context.WithCancel(t.Context())
				s.ends = ends
				defer s.runs.Wait()
				defer cancel()
				names := putMany(srv, 100+len(c.kills), nil) // 100 records for the sink
				s.start()
				time.Sleep(20 * time.Minute)
				cancel()
				s.runs.Wait()
				s.mu.Lock()
				defer s.mu.Unlock()
				letters := box.letters()
				var given []string
				for _, l := range letters {
					given = append(given, string(l.Data))
					if l.Reason != deadletter.Killed {
						t.Errorf("letter %+v", l)
					}
				}
				slices.Sort(given)
				if !slices.Equal(given, c.kills) {
					t.Errorf("dead letters of %q, want %q", given, c.kills)
				}
				for _, name := range c.kills { // alone, and first twice not alone
					if n := s.deaths[name]; n < 2 || n > 3 {
						t.Errorf("%d workers died of %q", n, name)
					}
				}
				for _, name := range names {
					if bad := slices.Contains(c.kills, name); bad != (s.got[name] == 0) {
						t.Errorf("%q was handled %d times", name, s.got[name])
					}
				}
			})
		})
	}
}

// onlyRecords matches the records that the sink gets.
type onlyRecords struct{}

func (onlyRecords) Match(data []byte, _ string, _ time.Time) (matches, isJSON bool) {
	return strings.HasPrefix(string(data), "r "), true
}

// The checkpoint passes records that the filter drops, but the position of a sink does not. A
// worker that begins at the position must not handle a record again that was dead-lettered before
// the dropped records.
func TestAKillerBeforeDroppedRecordsIsNotTriedAgain(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		box := &letterbox{}
		s := &mortalSink{
			t: t, srv: srv, store: memstore.New(), every: 1, kills: []string{"r 20"},
			opts: weir.Options{
				OnFailure: weir.FailurePolicy{Destination: box, OutageGrace: -1}, Filter: weir.Filter{By: onlyRecords{}},
			},
			at: map[string]weir.Position{}, got: map[string]int{}, deaths: map[string]int{},
		}
		defer s.runs.Wait()
		run := func(lasts time.Duration) {
			ends, cancel := context.WithCancel(t.Context())
			defer cancel()
			s.ends = ends
			s.start()
			time.Sleep(lasts)
			cancel()
			s.runs.Wait()
		}
		putMany(srv, 21, nil)
		for range 50 {
			srv.Put("s", "key", []byte("dropped"))
		}
		run(5 * time.Minute)
		if n := len(box.letters()); n != 1 {
			t.Fatalf("%d letters", n)
		}
		died := s.deaths["r 20"]
		for range 3 { // the note about the record moves from owner to owner
			srv.Put("s", "key", []byte("dropped"))
			run(time.Minute)
		}
		if n := s.deaths["r 20"]; n != died {
			t.Errorf("%d workers died of the record before it was dead-lettered, and %d after that", died, n-died)
		}
	})
}
