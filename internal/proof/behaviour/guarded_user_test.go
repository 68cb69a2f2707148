package behaviour

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// before is called with the name of a user's function or method before that function does its work.
type before func(name string)

// The following types implement the interfaces that users implement. They embed nothing, so the
// package compiles only if they have every method of the interfaces.

type spiedLog struct {
	before before
	to     slog.Handler
}

func (l spiedLog) Enabled(ctx context.Context, level slog.Level) bool {
	l.before("Logger.Enabled")
	return l.to.Enabled(ctx, level)
}

func (l spiedLog) Handle(ctx context.Context, r slog.Record) error {
	l.before("Logger.Handle")
	return l.to.Handle(ctx, r)
}

func (l spiedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	l.before("Logger.WithAttrs")
	return spiedLog{l.before, l.to.WithAttrs(attrs)}
}

func (l spiedLog) WithGroup(name string) slog.Handler {
	l.before("Logger.WithGroup")
	return spiedLog{l.before, l.to.WithGroup(name)}
}

type spiedFilter struct{ before before }

func (f spiedFilter) Match([]byte, string, time.Time) (matches, isJSON bool) {
	f.before("Filter.By.Match")
	return true, true
}

type spiedLetters struct {
	before before
	note   func(data string)
}

func (l spiedLetters) Put(_ context.Context, letters []deadletter.Letter) error {
	l.before("OnFailure.Destination.Put")
	for _, letter := range letters {
		l.note(string(letter.Data))
	}
	return nil
}

type spiedShard struct {
	before before
	handle weir.HandlerFunc
}

func (s spiedShard) Handle(ctx context.Context, b *weir.Batch) error { return s.handle(ctx, b) }

func (s spiedShard) Close(context.Context, event.EndReason) { s.before("ShardHandler.Close") }

// spiedEvents returns an OnEvent that calls do with the type of each event.
func spiedEvents(do before) func(context.Context, event.Event) {
	return func(_ context.Context, e event.Event) { do("OnEvent." + reflect.TypeOf(e).Name()) }
}

// errBad is the handler's error for the record that is dead-lettered.
var errBad = errors.New("bad")

// userLife runs a worker in one of three ways, with the functions and interfaces that a user can
// supply for it. It returns the error of Run, joined with errNotAll unless each record was handled
// or dead-lettered.
func userLife(t *testing.T, srv *kinesistest.Server, way string, do before) error {
	t.Helper()
	var mu sync.Mutex
	got := map[string]bool{}
	note := func(data string) {
		mu.Lock()
		defer mu.Unlock()
		got[data] = true
	}
	opts := weir.Options{
		App: "app", Retry: weir.Retry{MaxBackoff: time.Second}, OnEvent: spiedEvents(do), Filter: weir.Filter{By: spiedFilter{do}},
		Logger: slog.New(spiedLog{do, slog.NewTextHandler(io.Discard, nil)}),
		DiscoverStreams: func(context.Context) ([]string, error) {
			do("DiscoverStreams")
			return []string{"s"}, nil
		},
	}
	handle := func(name string) weir.HandlerFunc {
		return func(_ context.Context, b *weir.Batch) error {
			do(name)
			for _, r := range b.Records {
				if string(r.Data) == "bad" && opts.OnFailure.Destination != nil {
					return weir.FailedAt(r, weir.Reject(errBad))
				}
				note(string(r.Data))
			}
			return nil
		}
	}
	for i := range 10 {
		srv.Put("s", fmt.Sprint(i), fmt.Append(nil, i))
	}
	srv.Put("s", "bad", []byte("bad"))
	srv.Put("s", "last", []byte("last"))
	position := func(name string) func(context.Context, string, string) (weir.Position, error) {
		return func(context.Context, string, string) (weir.Position, error) {
			do(name)
			return weir.Position{}, nil
		}
	}
	shards := weir.ShardHandlers{Position: position("ShardHandlers.Position")}
	pulls := weir.PullHandler{Position: position("PullHandler.Position")}
	switch way {
	case "Run":
		opts.OnFailure = weir.FailurePolicy{Destination: spiedLetters{do, note}}
	case "Open":
		shards.Open = func(context.Context, weir.Term) (weir.ShardHandler, error) {
			do("ShardHandlers.Open")
			return spiedShard{do, handle("ShardHandler.Handle")}, nil
		}
	case "Pull":
		pulls.Pull = func(ctx context.Context, s *weir.Puller) error {
			do("PullHandler.Pull")
			for b, err := range s.Batches() {
				if err != nil {
					return err
				}
				if err := handle("PullHandler.Pull")(ctx, b); err != nil {
					return err
				}
			}
			return nil
		}
	}
	c, err := weir.New(srv.Client(), memstore.New(), opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		switch way {
		case "Run":
			done <- c.Run(ctx, handle("Handler.Handle"))
		case "Pull":
			done <- c.RunPull(ctx, pulls)
		default:
			done <- c.RunShards(ctx, shards)
		}
	}()
	time.Sleep(time.Minute)
	if err := c.Live(); err != nil && !strings.Contains(err.Error(), "handler") {
		t.Errorf("the worker is not live: %v", err)
	}
	_, _ = c.Ready(), c.Shards() // they do not wait for the user's functions
	cancel()
	err = <-done
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 12 {
		err = errors.Join(err, fmt.Errorf("%w: handled %v", errNotAll, slices.Sorted(maps.Keys(got))))
	}
	return err
}

var errNotAll = errors.New("not all was handled")

var userWays = []string{"Run", "Open", "Pull"}

// usersCode returns the user's functions that userLife calls, for each way.
func usersCode(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, way := range userWays {
		bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
			var mu sync.Mutex
			seen := map[string]bool{}
			if err := userLife(t, srv, way, func(name string) {
				mu.Lock()
				defer mu.Unlock()
				seen[name] = true
			}); err != nil {
				t.Errorf("%s: %v", way, err)
			}
			all[way] = slices.Sorted(maps.Keys(seen))
		})
	}
	return all
}

// The tests below make every function in Options, ShardHandlers and PullHandler fail, and every
// method of their interfaces. This test checks that usersCode returns all of these functions and
// methods. It needs only a few of the event types, because all events use one queue.
func TestEveryFunctionOfTheUserIsKnownToTheTests(t *testing.T) {
	var known []string
	for _, names := range usersCode(t) {
		known = append(known, names...)
	}
	var want []string
	var walk func(of reflect.Type, name string)
	walk = func(of reflect.Type, name string) {
		switch {
		case of == reflect.TypeFor[*slog.Logger]():
			walk(reflect.TypeFor[slog.Handler](), name)
		case of == reflect.TypeFor[func(context.Context, event.Event)]():
			want = append(want, "OnEvent.LeaseTaken", "OnEvent.BatchHandled")
		case of.Kind() == reflect.Func:
			want = append(want, name)
		case of.Kind() == reflect.Interface:
			for i := range of.NumMethod() {
				want = append(want, name+"."+of.Method(i).Name)
			}
		case of.Kind() == reflect.Struct && of.PkgPath() == "github.com/weir-go/weir":
			for i := range of.NumField() {
				if f := of.Field(i); f.IsExported() {
					walk(f.Type, strings.TrimPrefix(name+"."+f.Name, "."))
				}
			}
		}
	}
	walk(reflect.TypeFor[weir.Options](), "")
	walk(reflect.TypeFor[weir.ShardHandlers](), "ShardHandlers")
	walk(reflect.TypeFor[weir.PullHandler](), "PullHandler")
	walk(reflect.TypeFor[weir.ShardHandler](), "ShardHandler")
	walk(reflect.TypeFor[weir.Handler](), "Handler")
	for _, name := range want {
		if name != "Logger.WithGroup" && !slices.Contains(known, name) { // weir makes no groups
			t.Errorf("no test calls %s; userLife reaches %v", name, known)
		}
	}
}

// Each function of the user may panic three times. All records are still handled, and Run returns
// nil.
func TestWhatAUserGivesMayPanic(t *testing.T) {
	for way, names := range usersCode(t) {
		for _, at := range names {
			t.Run(way+" "+at, func(t *testing.T) {
				bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
					var mu sync.Mutex
					left := 3
					if err := userLife(t, srv, way, func(name string) {
						mu.Lock()
						defer mu.Unlock()
						if left > 0 && name == at {
							left--
							panic("a bug of the user's")
						}
					}); err != nil {
						t.Errorf("Run returned %v", err)
					}
				})
			})
		}
	}
}

// If a function of the user does not return, Run still returns, with an error that wraps
// ErrAbandoned.
func TestWhatAUserGivesMayBlock(t *testing.T) {
	longform.Only(t)
	for way, names := range usersCode(t) {
		for _, at := range names {
			t.Run(way+" "+at, func(t *testing.T) {
				bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
					release := make(chan struct{})
					began := time.Now()
					err := userLife(t, srv, way, func(name string) {
						if name == at {
							<-release
						}
					})
					if took := time.Since(began); took > 3*time.Minute {
						t.Errorf("Run returned after %v", took)
					}
					if !errors.Is(err, weir.ErrAbandoned) {
						t.Errorf("Run returned %v", err)
					}
					told := strings.HasPrefix(at, "OnEvent.") || strings.HasPrefix(at, "Logger.")
					if told && errors.Is(err, errNotAll) {
						t.Errorf("Run returned %v", err)
					}
					close(release)
					time.Sleep(time.Minute)
				})
			})
		}
	}
}
