package behaviour

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// startShards starts a worker with RunShards.
func startShards(t *testing.T, srv *kinesistest.Server, store lease.Store, opts weir.Options, h weir.ShardHandlers) (stop func() error) {
	t.Helper()
	return startRun(t, srv, store, opts, func(ctx context.Context, c *weir.Consumer) error { return c.RunShards(ctx, h) })
}

// startPull starts a worker with RunPull.
func startPull(t *testing.T, srv *kinesistest.Server, store lease.Store, opts weir.Options, h weir.PullHandler) (stop func() error) {
	t.Helper()
	return startRun(t, srv, store, opts, func(ctx context.Context, c *weir.Consumer) error { return c.RunPull(ctx, h) })
}

// startRun starts a worker with a method of Consumer that runs until its context ends.
func startRun(t *testing.T, srv *kinesistest.Server, store lease.Store, opts weir.Options, run func(context.Context, *weir.Consumer) error) (stop func() error) {
	t.Helper()
	opts.App, opts.Streams = "app", []string{"s"}
	if opts.Logger == nil {
		opts.Logger = quiet
	}
	c, err := weir.New(srv.Client(), store, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, c) }()
	return func() error {
		cancel()
		return <-done
	}
}

// database is a sink whose transactions contain effects and positions.
type database struct {
	mu      sync.Mutex
	at      map[string]weir.Position // positions by shard
	effects []string
	opened  []string // "shard from position"
	closed  []string // "shard reason"
}

func newDatabase() *database { return &database{at: map[string]weir.Position{}} }

// backup returns a copy of the durable state.
func (s *database) backup() *database {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &database{at: maps.Clone(s.at), effects: slices.Clone(s.effects)}
}

func (s *database) handlers() weir.ShardHandlers {
	return weir.ShardHandlers{
		Open: func(_ context.Context, t weir.Term) (weir.ShardHandler, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.opened = append(s.opened, t.Shard+" from "+t.From.String())
			return &databaseShard{s, t.Shard}, nil
		},
		Position: func(_ context.Context, _, shard string) (weir.Position, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.at[shard], nil
		},
	}
}

type databaseShard struct {
	*database
	shard string
}

func (s *databaseShard) Handle(_ context.Context, b *weir.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range b.Records {
		if r.Position().Compare(s.at[s.shard]) > 0 {
			s.effects, s.at[s.shard] = append(s.effects, string(r.Data)), r.Position()
		}
	}
	return nil
}

func (s *databaseShard) Close(_ context.Context, why event.EndReason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = append(s.closed, fmt.Sprint(s.shard, " ", why))
}

func put(srv *kinesistest.Server, from, to int) (want []string) {
	for i := from; i <= to; i++ {
		want = append(want, fmt.Sprint(i))
		srv.Put("s", "key", []byte(fmt.Sprint(i)))
	}
	return want
}

func numbers(to int) (all []string) {
	for i := range to {
		all = append(all, fmt.Sprint(i+1))
	}
	return all
}

// A sink that was restored from a backup across two splits receives the missing records of finished
// shards and of their descendants, in order.
func TestASinkThatWasRestoredAcrossSplitsMissesNothing(t *testing.T) {
	for _, reading := range []weir.FanOutMode{weir.FanOutOff, weir.FanOutRegister} {
		t.Run(reading.String(), func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				store, opts := memstore.New(), weir.Options{FanOut: weir.FanOut{Mode: reading}}
				put(srv, 1, 10)
				s := newDatabase()
				stop := startShards(t, srv, store, opts, s.handlers())
				time.Sleep(20 * time.Second)
				backup := s.backup() // in the middle of the first shard
				put(srv, 11, 20)
				srv.Split("s", srv.OpenShards("s")[0])
				time.Sleep(20 * time.Second)
				put(srv, 21, 30)
				time.Sleep(20 * time.Second)
				for _, open := range srv.OpenShards("s") {
					srv.Split("s", open)
				}
				time.Sleep(20 * time.Second)
				put(srv, 31, 40)
				time.Sleep(20 * time.Second)
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(s.effects, numbers(40)) {
					t.Fatalf("before: %v", s.effects)
				}
				stop = startShards(t, srv, store, opts, backup.handlers())
				time.Sleep(4 * time.Minute)
				put(srv, 41, 50)
				time.Sleep(20 * time.Second)
				if err := stop(); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(backup.effects, numbers(50)) {
					t.Errorf("after the restore: %v", backup.effects)
				}
			})
		})
	}
}

func TestASinksPositionWins(t *testing.T) {
	var positions []weir.Position // positions after record 1, 2, ...
	for _, c := range []struct {
		name  string
		sink  func() weir.Position
		want  string // records of 1 to 10 that the second run handles; record 6 was checkpointed
		start string
	}{
		{"behind the checkpoint", func() weir.Position { return positions[2] }, "4 5 6 7 8 9 10", "sink"},
		{"ahead of the checkpoint", func() weir.Position { return positions[7] }, "9 10", "sink"},
		{"nothing is known", func() weir.Position { return weir.Position{} }, "7 8 9 10", "lease"},
		{"nothing is there", func() weir.Position { return weir.Oldest }, "1 2 3 4 5 6 7 8 9 10", "sink"},
		{"the end", func() weir.Position { return shard.End }, "7 8 9 10", "lease"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				positions = nil
				for i := range 6 {
					_, seq := srv.Put("s", "key", []byte(fmt.Sprint(i+1)))
					p, _ := shard.After(seq)
					positions = append(positions, p)
				}
				store := memstore.New()
				handled(t, srv, store, weir.Options{})
				for i := range 4 {
					_, seq := srv.Put("s", "key", []byte(fmt.Sprint(i+7)))
					p, _ := shard.After(seq)
					positions = append(positions, p)
				}
				checkpoint := func() weir.Position {
					view, err := store.View(t.Context(), "app", "")
					if err != nil {
						t.Fatal(err)
					}
					return view.Leases[0].Position
				}
				var got []string
				lowest := shard.End
				stop := startShards(t, srv, store, weir.Options{Batching: weir.Batching{MaxRecords: 1}}, weir.ShardHandlers{
					Open: func(_ context.Context, term weir.Term) (weir.ShardHandler, error) {
						if want := map[string]weir.Position{"sink": c.sink(), "lease": positions[5]}[c.start]; term.From != want {
							t.Errorf("the term is from %v, want %v", term.From, want)
						}
						return shardFunc(func(_ context.Context, b *weir.Batch) error {
							got = append(got, string(b.Records[0].Data))
							time.Sleep(3 * time.Second) // several heartbeats
							if p := checkpoint(); p.Compare(lowest) < 0 {
								lowest = p
							}
							return nil
						}), nil
					},
					Position: func(context.Context, string, string) (weir.Position, error) { return c.sink(), nil },
				})
				time.Sleep(time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if s := strings.Join(got, " "); s != c.want {
					t.Errorf("handled %q, want %q", s, c.want)
				}
				if lowest.Compare(positions[5]) < 0 {
					t.Errorf("the checkpoint went back to %v", lowest)
				}
				if checkpoint() != positions[9] {
					t.Errorf("the checkpoint is %v", checkpoint())
				}
			})
		})
	}
}

// shardFunc is a ShardHandler whose Close does nothing.
type shardFunc func(context.Context, *weir.Batch) error

func (f shardFunc) Handle(ctx context.Context, b *weir.Batch) error { return f(ctx, b) }
func (shardFunc) Close(context.Context, event.EndReason)            {}

// An error or an invalid position never counts as "no position": no record is handled until the
// sink returns a valid answer.
func TestASinkThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	earlier, _ := shard.After("7")
	for _, c := range []struct {
		name string
		ask  func(ctx context.Context) (weir.Position, error)
		told string
	}{
		{"an error", func(context.Context) (weir.Position, error) { return weir.Position{}, errors.New("no connection") }, "no connection"},
		{"a panic", func(context.Context) (weir.Position, error) { panic("oh") }, "panicked: oh"},
		{"no answer", func(ctx context.Context) (weir.Position, error) { <-ctx.Done(); return weir.Position{}, nil }, "deadline"},
		{"the tip", func(context.Context) (weir.Position, error) { return weir.Latest, nil }, "not a position that a sink can have reached"},
		{"a position of an earlier stream", func(context.Context) (weir.Position, error) { return earlier, nil }, "earlier stream of this name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				put(srv, 1, 3)
				var mu sync.Mutex
				var got, told []string
				answers, handledBefore := false, false
				opts := weir.Options{Expired: weir.OldestExpired, OnEvent: event.On(func(_ context.Context, f event.HandlerFailed) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, f.Err.Error())
				})}
				stop := startShards(t, srv, memstore.New(), opts, weir.ShardHandlers{
					Open: func(context.Context, weir.Term) (weir.ShardHandler, error) {
						return shardFunc(func(_ context.Context, b *weir.Batch) error {
							mu.Lock()
							defer mu.Unlock()
							handledBefore = handledBefore || !answers
							for _, r := range b.Records {
								got = append(got, string(r.Data))
							}
							return nil
						}), nil
					},
					Position: func(ctx context.Context, _, _ string) (weir.Position, error) {
						mu.Lock()
						now := answers
						mu.Unlock()
						if now {
							return weir.Position{}, nil
						}
						return c.ask(ctx)
					},
				})
				time.Sleep(5 * time.Minute)
				mu.Lock()
				answers = true
				n := len(told)
				mu.Unlock()
				time.Sleep(2 * time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if handledBefore || !slices.Equal(got, numbers(3)) {
					t.Errorf("handled %v, before the sink answered: %v", got, handledBefore)
				}
				if n < 5 || !strings.Contains(told[0], c.told) {
					t.Errorf("told %d times: %.300q", n, told)
				}
			})
		})
	}
}

func TestAHandlerOfItsOwnForEachTerm(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		put(srv, 1, 20)
		store := memstore.New()
		first, second := newDatabase(), newDatabase()
		second.at = first.at
		stop := startShards(t, srv, store, weir.Options{}, first.handlers())
		time.Sleep(10 * time.Second)
		// The second worker takes one of the two shards.
		stop2 := startShards(t, srv, store, weir.Options{}, second.handlers())
		time.Sleep(20 * time.Second)
		for _, open := range srv.OpenShards("s") {
			srv.Split("s", open)
		}
		time.Sleep(20 * time.Second)
		if err := errors.Join(stop(), stop2()); err != nil {
			t.Error(err)
		}
		all := slices.Concat(first.closed, second.closed)
		if len(all) != len(first.opened)+len(second.opened) {
			t.Errorf("opened %v and %v, closed %v", first.opened, second.opened, all)
		}
		for reason, least := range map[event.EndReason]int{event.EndHandedOff: 1, event.EndFinished: 2, event.EndStopped: 4} {
			n := 0
			for _, c := range all {
				if strings.HasSuffix(c, " "+fmt.Sprint(reason)) {
					n++
				}
			}
			if n < least {
				t.Errorf("%d terms ended as %v, want at least %d: %v", n, reason, least, all)
			}
		}
	})
}

// If a handler cannot be opened, opening is retried. No record is lost in the meantime.
func TestAHandlerThatCannotBeOpened(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		put(srv, 1, 5)
		var got []string
		tries := 0
		stop := startShards(t, srv, memstore.New(), weir.Options{}, weir.ShardHandlers{
			Open: func(context.Context, weir.Term) (weir.ShardHandler, error) {
				switch tries++; tries {
				case 1:
					return nil, errors.New("no")
				case 2:
					panic("oh")
				case 3:
					return nil, nil
				}
				return shardFunc(func(_ context.Context, b *weir.Batch) error {
					for _, r := range b.Records {
						got = append(got, string(r.Data))
					}
					return nil
				}), nil
			},
		})
		time.Sleep(20 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if tries != 4 || !slices.Equal(got, numbers(5)) {
			t.Errorf("%d tries, handled %v", tries, got)
		}
	})
}

// closing is a handler whose Close may panic or never return.
type closing struct {
	shardFunc
	close func()
}

func (c *closing) Close(context.Context, event.EndReason) { c.close() }

func TestAHandlerThatCannotBeClosed(t *testing.T) {
	hang := make(chan struct{})
	for name, c := range map[string]struct {
		close func()
		want  error
	}{
		"panics":        {func() { panic("oh") }, nil},
		"never returns": {func() { <-hang }, weir.ErrAbandoned},
	} {
		bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
			hang = make(chan struct{})
			defer close(hang)
			put(srv, 1, 5)
			store := memstore.New()
			stop := startShards(t, srv, store, weir.Options{Timing: weir.Timing{StopTimeout: time.Second}}, weir.ShardHandlers{
				Open: func(context.Context, weir.Term) (weir.ShardHandler, error) {
					return &closing{func(context.Context, *weir.Batch) error { return nil }, c.close}, nil
				},
			})
			time.Sleep(20 * time.Second)
			began := time.Now()
			if err := stop(); !errors.Is(err, c.want) {
				t.Errorf("%s: Run returned %v", name, err)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("%s: Run took %v to stop", name, took)
			}
			if rest := handled(t, srv, store, weir.Options{}); len(rest) > 0 {
				t.Errorf("%s: handled again: %v", name, rest)
			}
		})
	}
}
