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

// Fault makes one step of a call fail. A step is a statement or its answer.
type Fault struct {
	Store lease.Store // the store with the fault
	// At makes the nth of the following steps fail. 0 means that no step fails. cancel ends the
	// context of the next call.
	At       func(n int, cancel context.CancelFunc)
	Happened func() bool // reports whether the fault has happened since the last call of At
	Panics   bool        // the fault is a panic that reaches the caller
	Mended   bool        // the store recovers from the fault
	Check    func(t *testing.T)
}

// patient is the time limit of the calls of Faults. The calls must not hang because of locks of an
// earlier call.
const patient = 20 * time.Second

// Faults tests a store with a fault. clean is the same store without the fault. After a fault at
// any step of a call, the application must be in the state before the call or the state after it. A
// repeated call must lead to the state after it. Check, which may be nil, is called after each
// call.
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

// strike makes a call whose nth step fails.
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

// LostAnswers tests a store whose connection can lose answers after the server has carried out the
// request. lose(n) loses the nth of the following answers. lose(0) loses no answer. lost reports
// whether an answer was lost.
func LostAnswers(t *testing.T, clean, faulty lease.Store, lose func(n int), lost func() bool) {
	Faults(t, clean, Fault{Store: faulty, At: func(n int, _ context.CancelFunc) { lose(n) }, Happened: lost})
}

// Losing counts the requests of a client through a proxy. It can lose the answer to one request.
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
