package target

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

func TestStirring(t *testing.T) {
	first := lease.View{Workers: []lease.Worker{{Session: "A", Name: "ann", Heartbeats: 1}, {Session: "B", Name: "bob", Heartbeats: 5}, {Session: "C", Name: "cid", Ended: true}}}
	for name, c := range map[string]struct {
		now  []lease.Worker
		want string
	}{
		"nothing moves":         {first.Workers, ""},
		"one beats":             {[]lease.Worker{{Session: "A", Name: "ann", Heartbeats: 2}, {Session: "B", Name: "bob", Heartbeats: 5}}, "ann"},
		"one is new":            {[]lease.Worker{{Session: "D", Name: "dan", Heartbeats: 0}, {Session: "B", Name: "bob", Heartbeats: 5}}, "dan"},
		"one was ended":         {[]lease.Worker{{Session: "A", Name: "ann", Heartbeats: 2, Ended: true}}, ""},
		"one without a name":    {[]lease.Worker{{Session: "E", Heartbeats: 1}}, "E"},
		"many, in their order":  {[]lease.Worker{{Session: "2", Name: "z"}, {Session: "1", Name: "y"}}, "y, z"},
		"more than can be said": {[]lease.Worker{{Session: "1"}, {Session: "2"}, {Session: "3"}, {Session: "4"}, {Session: "5"}, {Session: "6"}, {Session: "7"}}, "1, 2, 3, 4, 5, and 2 more"},
	} {
		if got := namesOf(BeatBetween(first, lease.View{Workers: c.now})); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// blind is a store whose View fails after a number of calls.
type blind struct {
	lease.Store
	looks int
}

func (b *blind) View(ctx context.Context, app, since string) (lease.View, error) {
	if b.looks--; b.looks < 0 {
		return lease.View{}, errors.New("no view")
	}
	return b.Store.View(ctx, app, since)
}

// The error names all running workers, not only the one with the first heartbeat.
func TestAllThatRunAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		ctx, cancel := context.WithCancel(t.Context())
		for i, name := range []string{"ann", "bob", "cid"} {
			if _, err := mem.Heartbeat(ctx, "a", lease.Report{Session: name, Name: name, First: true}); err != nil {
				t.Fatal(err)
			}
			go func() {
				tick := time.NewTicker(time.Second + time.Duration(i)*300*time.Millisecond)
				defer tick.Stop()
				for name != "cid" { // the dead worker
					select {
					case <-ctx.Done():
						return
					case <-tick.C:
						_, _ = mem.Heartbeat(ctx, "a", lease.Report{Session: name, Name: name})
					}
				}
			}()
		}
		first, err := mem.View(ctx, "a", "")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = RefuseWhileRunning(ctx, cli.Silent, stores.Store{Store: mem}, "a", first, 5*time.Second)
		if want := "workers run: ann, bob; stop them first"; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		cancel()
	})
}

// A session counts as dead only after it was watched for long enough.
func TestRefuseWhileRunning(t *testing.T) {
	for name, c := range map[string]struct {
		// beat is the interval between heartbeats of the only worker. The value 0 means that there
		// is no worker. A negative value means that the worker is dead.
		beat  time.Duration
		looks int           // number of reads that succeed
		want  string        // "" if the command may continue
		takes time.Duration // maximum duration
	}{
		"no worker ever":                        {0, 99, "", 0},
		"a worker that sends heartbeats":        {time.Second, 99, "workers run: ann; stop them first", 1300 * time.Millisecond},
		"a worker that sends heartbeats slowly": {4 * time.Second, 99, "workers run: ann; stop them first", 4300 * time.Millisecond},
		"a worker that is dead":                 {-1, 99, "", 5 * time.Second},
		"a store that fails":                    {-1, 3, "weir could not find out whether workers run: no view", 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := memstore.New()
				ctx, cancel := context.WithCancel(t.Context())
				if c.beat != 0 {
					if _, err := mem.Heartbeat(ctx, "a", lease.Report{Session: "A", Name: "ann", First: true}); err != nil {
						t.Fatal(err)
					}
				}
				if c.beat > 0 {
					go func() {
						tick := time.NewTicker(c.beat)
						defer tick.Stop()
						for {
							select {
							case <-ctx.Done():
								return
							case <-tick.C:
								// This fails when the test is over.
								_, _ = mem.Heartbeat(ctx, "a", lease.Report{Session: "A", Name: "ann"})
							}
						}
					}()
				}
				first, err := mem.View(ctx, "a", "")
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				err = RefuseWhileRunning(ctx, cli.Silent, stores.Store{Store: &blind{mem, c.looks}}, "a", first, 5*time.Second)
				if took := time.Since(began); took > c.takes {
					t.Errorf("it took %v", took)
				}
				if got := ""; err != nil {
					if got = err.Error(); got != c.want {
						t.Errorf("%q, want %q", got, c.want)
					}
				} else if c.want != "" {
					t.Errorf("it may go on, want %q", c.want)
				}
				cancel()
			})
		})
	}
}
