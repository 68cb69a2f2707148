package behaviour

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// spied is a store that calls a function before each method. The arguments are the name of the
// method and the place in weir that called it. spied embeds nothing, so the package compiles only
// if it has every method of the interfaces.
type spied struct {
	to   *memstore.Store
	call func(method, site string)
}

var (
	_ lease.Store     = (*spied)(nil)
	_ lease.Historian = (*spied)(nil)
)

func (s *spied) before(method string) { s.call(method, callSite()) }

func (s *spied) Abilities() lease.Abilities {
	s.before("Abilities")
	return s.to.Abilities()
}

func (s *spied) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	s.before("Heartbeat")
	return s.to.Heartbeat(ctx, app, r)
}

func (s *spied) View(ctx context.Context, app, since string) (lease.View, error) {
	s.before("View")
	return s.to.View(ctx, app, since)
}

func (s *spied) Apply(ctx context.Context, app string, a []lease.Action) ([]bool, error) {
	s.before("Apply")
	return s.to.Apply(ctx, app, a)
}

func (s *spied) Lead(ctx context.Context, app, session string, term uint64) (bool, error) {
	s.before("Lead")
	return s.to.Lead(ctx, app, session, term)
}

func (s *spied) Leave(ctx context.Context, app string, r lease.Report) error {
	s.before("Leave")
	return s.to.Leave(ctx, app, r)
}

func (s *spied) PutHistory(ctx context.Context, app string, c lease.HistoryChunk) error {
	s.before("PutHistory")
	return s.to.PutHistory(ctx, app, c)
}

func (s *spied) History(ctx context.Context, app string, since int64) ([]lease.HistoryChunk, error) {
	s.before("History")
	return s.to.History(ctx, app, since)
}

// callers lists the folders of the packages that call the store.
var callers = []string{".", "internal/group", "internal/history/sampling"}

// packageOf returns the name of the package in a folder.
func packageOf(dir string) string {
	if dir == "." {
		return "weir"
	}
	return filepath.Base(dir)
}

// callSite returns the function that called the store. It considers only functions of the packages
// in callers.
func callSite() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		name := filepath.Base(f.Function)
		switch {
		case strings.HasSuffix(f.File, "_test.go"), strings.Contains(f.File, "/guard/guarded/"):
		case slices.ContainsFunc(callers, func(dir string) bool { return strings.HasPrefix(name, packageOf(dir)+".") }):
			return name
		}
		if !more {
			return "?"
		}
	}
}

// storeLife runs a worker that calls its store from many places, and returns the error of Run. The
// worker leads, and reads by fan-out across a split. Its sink was set back to a backup with earlier
// positions. It keeps history for some minutes, stops, and removes its consumer. If helped is true,
// storeLife also starts a second worker with an ordinary store.
func storeLife(t *testing.T, srv *kinesistest.Server, helped bool, call func(method, site string)) error {
	t.Helper()
	store, db := memstore.New(), newDatabase()
	opts := weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutTemporary}}
	put(srv, 1, 5)
	stop := startShards(t, srv, store, opts, db.handlers())
	time.Sleep(5 * time.Second)
	backup := db.backup()
	put(srv, 6, 10)
	time.Sleep(time.Second)
	srv.Split("s", srv.OpenShards("s")[0])
	time.Sleep(10 * time.Second)
	put(srv, 11, 20)
	time.Sleep(5 * time.Second)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(db.effects, numbers(20)) {
		t.Fatalf("before the sink is set back it has %v", db.effects)
	}
	opts.App, opts.Streams, opts.Logger = "app", []string{"s"}, quiet
	c, err := weir.New(srv.Client(), &spied{store, call}, opts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.RunShards(ctx, backup.handlers()) }()
	time.Sleep(30 * time.Second)
	put(srv, 21, 30)
	time.Sleep(3 * time.Minute)
	stopHelp := func() error { return nil }
	if helped {
		stopHelp = startShards(t, srv, store, weir.Options{FanOut: weir.FanOut{Mode: weir.FanOutRegister}}, backup.handlers())
		time.Sleep(3 * time.Minute)
	}
	backup.mu.Lock()
	got := slices.Clone(backup.effects)
	backup.mu.Unlock()
	if !slices.Equal(got, numbers(30)) {
		t.Errorf("the sink has %v", got)
	}
	if err := stopHelp(); err != nil {
		t.Error(err)
	}
	cancel()
	return <-done
}

// sites returns the places from which storeLife calls the store, in the form "method site".
func sites(t *testing.T) []string {
	t.Helper()
	seen := map[string]bool{}
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		var mu sync.Mutex
		if err := storeLife(t, srv, false, func(method, site string) {
			mu.Lock()
			defer mu.Unlock()
			seen[method+" "+site] = true
		}); err != nil {
			t.Error(err)
		}
	})
	return slices.Sorted(maps.Keys(seen))
}

// storeMethods returns the methods that a worker may call.
func storeMethods() (all []string) {
	for _, of := range []reflect.Type{reflect.TypeFor[lease.Store](), reflect.TypeFor[lease.Historian]()} {
		for i := range of.NumMethod() {
			all = append(all, of.Method(i).Name)
		}
	}
	return all
}

// The tests below make the store fail at every place that sites returns. This test checks that
// these are all places in the source that call the store, with the exceptions below.
func TestEveryCallOfAStoreIsKnownToTheTests(t *testing.T) {
	known := sites(t)
	called := map[string]bool{}
	for _, dir := range callers {
		files, err := filepath.Glob(filepath.Join("..", "..", "..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				ast.Inspect(fn, func(n ast.Node) bool {
					if method := calledOfStore(n); method != "" && method != "Abilities" { // New calls it once
						called[method+" "+siteOf(f.Name.Name, fn)] = true
					}
					return true
				})
			}
		}
	}
	if len(called) < 8 {
		t.Errorf("the source calls a store from %v only", called)
	}
	// storeLife does not reach these calls. resign needs a store that lacks lease.ResignByHeartbeat
	// and that has failed for a long time. farewell needs a stop after an outage. deputy and
	// olderLeader need workers that read different streams or have another version.
	for _, site := range []string{
		"Lead group.(*worker).resign", "Heartbeat group.(*worker).farewell", "Apply group.(*deputy).step",
		"View group.(*deputy).step", "View group.(*olderLeader).look",
	} {
		if !called[site] {
			t.Errorf("the source does not call a store from %s any more", site)
		}
		delete(called, site)
	}
	for site := range called {
		if !slices.ContainsFunc(known, func(k string) bool { return k == site }) {
			t.Errorf("no test calls a store from %s; storeLife reaches %v", site, known)
		}
	}
}

// calledOfStore returns the method if n calls a method of a field or variable named store or Store.
// Otherwise it returns "".
func calledOfStore(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(storeMethods(), method.Sel.Name) {
		return ""
	}
	switch of := method.X.(type) {
	case *ast.SelectorExpr:
		if strings.EqualFold(of.Sel.Name, "store") {
			return method.Sel.Name
		}
	case *ast.Ident:
		if strings.EqualFold(of.Name, "store") {
			return method.Sel.Name
		}
	}
	return ""
}

// siteOf returns the name of a function in the form that package runtime uses.
func siteOf(pkg string, fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return pkg + "." + fn.Name.Name
	}
	switch of := fn.Recv.List[0].Type.(type) {
	case *ast.StarExpr:
		return fmt.Sprintf("%s.(*%s).%s", pkg, of.X, fn.Name.Name)
	default:
		return fmt.Sprintf("%s.%s.%s", pkg, of, fn.Name.Name)
	}
}

// A store may panic three times at each place that calls it. Each panic counts as a failed call.
func TestAStoreMayPanicWhereverItIsCalled(t *testing.T) {
	for _, at := range sites(t) {
		t.Run(at, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				var mu sync.Mutex
				left := 3
				err := storeLife(t, srv, false, func(method, site string) {
					mu.Lock()
					defer mu.Unlock()
					if left > 0 && method+" "+site == at {
						left--
						panic("a bug in the store")
					}
				})
				var p *weir.PanicError
				switch {
				case strings.HasPrefix(at, "Abilities "):
					if !errors.As(err, &p) || p.Who != "the store" {
						t.Errorf("New returned %v", err)
					}
				case err != nil:
					t.Errorf("Run returned %v", err)
				case left == 3:
					t.Error("the store was not called there")
				}
			})
		})
	}
}

// If a call of a store ignores its context and does not return for long, it stops at most the
// worker that made the call. Another worker handles the records.
func TestAStoreMayBlockWhereverItIsCalled(t *testing.T) {
	longform.Only(t)
	for _, at := range sites(t) {
		if strings.HasPrefix(at, "Abilities ") { // New makes this call, and the caller of New waits for it
			continue
		}
		t.Run(at, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				var mu sync.Mutex
				blocked := false
				err := storeLife(t, srv, true, func(method, site string) {
					mu.Lock()
					first := !blocked && method+" "+site == at
					blocked = blocked || first
					mu.Unlock()
					if first {
						time.Sleep(20 * time.Minute)
					}
				})
				if err != nil && !errors.Is(err, weir.ErrAbandoned) {
					t.Errorf("Run returned %v", err)
				}
				if !blocked {
					t.Error("the store was not called there")
				}
				time.Sleep(30 * time.Minute) // until an abandoned call has returned
			})
		})
	}
}
