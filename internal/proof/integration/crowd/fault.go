package crowd

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/lease"
)

// Fault is a way in which one step of a call can go wrong, a statement or the answer to it.
type Fault struct {
	Store lease.Store // reached where that can happen
	// At makes it happen at the nth step from then on, 0 for never. cancel ends the context of the
	// call that follows.
	At       func(n int, cancel context.CancelFunc)
	Happened func() bool // since the last At
	Panics   bool        // it is a panic, which comes back to the caller
	Mended   bool        // the store gets over it by itself
	Check    func(t *testing.T)
}

// patient bounds the calls of Faults, which must not hang because of what was left locked by an
// earlier one.
const patient = 20 * time.Second

// Faults is a test of a store that clean reaches without the fault. Whichever step of a call goes
// wrong, the application is either as before or as after the call, and repeating it leaves it as
// after it. Check, which may be nil, looks at what is left after each call.
func Faults(t *testing.T, clean lease.Store, f Fault) {
	apps := 0
	fresh := func(t *testing.T) string {
		apps++
		app := fmt.Sprintf("%s-%d", strings.ToLower(t.Name()), apps)
		prepare(t, clean, app)
		return app
	}
	for _, op := range operations(t) {
		t.Run(op.name, func(t *testing.T) {
			app := fresh(t)
			before := state(t, clean, app)
			if err := op.do(t.Context(), clean, app); err != nil {
				t.Fatal(err)
			}
			after := state(t, clean, app)
			if before == after {
				t.Fatalf("%s does nothing", op.name)
			}
			happened := 0
			for n := 1; ; n++ {
				app := fresh(t)
				err := f.strike(t, n, op, app)
				was := f.Happened()
				f.At(0, nil)
				if f.Check != nil {
					f.Check(t)
				}
				got := state(t, clean, app)
				switch {
				case got != before && got != after:
					t.Fatalf("step %d: half done\n%s", n, got)
				case err == nil && got != after:
					t.Fatalf("step %d: no error, but not done\n%s", n, got)
				case f.Mended && err != nil:
					t.Fatalf("step %d: %v", n, err)
				}
				for _, s := range []lease.Store{f.Store, clean} {
					ctx, cancel := context.WithTimeout(t.Context(), patient)
					err := op.do(ctx, s, app)
					cancel()
					if err != nil {
						t.Fatalf("step %d: repeated: %v", n, err)
					}
				}
				if got := state(t, clean, app); got != after {
					t.Fatalf("step %d: repeated\n%s\nwant\n%s", n, got, after)
				}
				if !was {
					break
				}
				happened++
			}
			if happened == 0 {
				t.Error("it never happened")
			}
			t.Logf("it happened once at each of %d steps", happened)
		})
	}
}

// strike makes a call whose nth step goes wrong.
func (f Fault) strike(t *testing.T, n int, op operation, app string) (err error) {
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	f.At(n, cancel)
	if f.Panics {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
			}
		}()
	}
	return op.do(ctx, f.Store, app)
}

// LostAnswers is a test of a store, reached through a connection on which answers can be lost after
// the server did what it was told: lose n makes the nth answer from then on get lost (0: none), and
// lost reports whether that has happened.
func LostAnswers(t *testing.T, clean, faulty lease.Store, lose func(n int), lost func() bool) {
	Faults(t, clean, Fault{Store: faulty, At: func(n int, _ context.CancelFunc) { lose(n) }, Happened: lost})
}

// Losing counts what a client sends through a proxy, to lose the answer of just one.
func Losing(p *servers.Proxy) (lose func(n int), lost func() bool) {
	var mu sync.Mutex
	wanted, sent, hit := 0, 0, false
	p.CutAnswers(func([]byte) bool {
		mu.Lock()
		defer mu.Unlock()
		sent++
		if sent != wanted {
			return false
		}
		hit = true
		return true
	})
	lose = func(n int) {
		mu.Lock()
		defer mu.Unlock()
		wanted, sent, hit = n, 0, false
	}
	return lose, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return hit
	}
}
