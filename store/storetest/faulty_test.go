package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/store/storetest"
)

func TestFaults(t *testing.T) {
	boom := errors.New("boom")
	cases := []struct {
		name  string
		fault storetest.Fault
		err   error
		won   bool   // the answer of Lead
		term  uint64 // how often the call was executed
		takes time.Duration
	}{
		{"none", storetest.Fault{}, nil, true, 1, 0},
		{"before", storetest.Fault{Before: boom}, boom, false, 0, 0},
		{"after", storetest.Fault{After: boom}, boom, false, 1, 0},
		{"twice, of which the second is refused", storetest.Fault{Twice: true}, nil, false, 1, 0},
		{"delayed", storetest.Fault{Delay: 3 * time.Second}, nil, true, 1, 3 * time.Second},
		{"delayed beyond the context", storetest.Fault{Delay: time.Minute}, context.DeadlineExceeded, false, 0, 10 * time.Second},
		{"the answer delayed", storetest.Fault{DelayAnswer: 3 * time.Second}, nil, true, 1, 3 * time.Second},
		{"the answer delayed beyond the context", storetest.Fault{DelayAnswer: time.Minute}, context.DeadlineExceeded, false, 1, 10 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner := memstore.New()
				ops := ""
				s := storetest.Faulty(inner, func(op string) storetest.Fault { ops += op; return c.fault })
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				begun := time.Now()
				won, err := s.Lead(ctx, "app", "a", 0)
				if won != c.won || !errors.Is(err, c.err) || time.Since(begun) != c.takes {
					t.Errorf("Lead = %t, %v after %s", won, err, time.Since(begun))
				}
				v, err := inner.View(t.Context(), "app", "")
				if err != nil || v.Leader.Epoch != c.term || ops != "Lead" {
					t.Errorf("term %d, %v, operations %q", v.Leader.Epoch, err, ops)
				}
			})
		})
	}
}

func TestLateCallsAreDeliveredOnceInOrder(t *testing.T) {
	inner := memstore.New()
	s := storetest.Faulty(inner, func(string) storetest.Fault { return storetest.Fault{Before: storetest.ErrLost, Later: true} })
	ctx := t.Context()
	actions := []lease.Action{{Kind: lease.Create, Lease: lease.Lease{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 1}}}
	if _, err := s.Apply(ctx, "app", actions); !errors.Is(err, storetest.ErrLost) {
		t.Fatal(err)
	}
	actions[0].Lease.Epoch = 9 // the slice belongs to the caller again
	if _, err := s.Lead(ctx, "app", "a", 0); !errors.Is(err, storetest.ErrLost) {
		t.Fatal(err)
	}
	if _, err := s.Lead(ctx, "app", "b", 1); !errors.Is(err, storetest.ErrLost) {
		t.Fatal(err)
	}
	for _, want := range []int{3, 0} {
		if n := s.Deliver(ctx); n != want {
			t.Errorf("Deliver = %d, want %d", n, want)
		}
		v, err := inner.View(ctx, "app", "")
		if err != nil || v.Leader.Epoch != 2 || len(v.Leases) != 1 || v.Leases[0].Epoch != 1 {
			t.Errorf("View = %+v, %v", v, err)
		}
	}
}

// complaints collects the failures that a test would report.
type complaints struct {
	testing.TB
	all []string
}

func (c *complaints) Errorf(format string, args ...any) {
	c.all = append(c.all, fmt.Sprintf(format, args...))
}

// rebuilt builds reports from the fields that it knows.
type rebuilt struct{ lease.Store }

func (s rebuilt) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	return s.Store.Heartbeat(ctx, app, lease.Report{Session: r.Session, First: r.First, Progress: r.Progress})
}

// modest reports no abilities.
type modest struct{ lease.Store }

func (modest) Abilities() lease.Abilities { return 0 }

func TestWrappersThatKeepSomethingBackAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		wrap func(lease.Store) lease.Store
		want string // "" if no failure is expected
	}{
		"it embeds the store":          {func(s lease.Store) lease.Store { return struct{ lease.Store }{s} }, ""},
		"it rebuilds reports":          {func(s lease.Store) lease.Store { return rebuilt{s} }, "the report of Heartbeat"},
		"it does not forward the bits": {func(s lease.Store) lease.Store { return modest{s} }, "the abilities are none"},
	} {
		found := &complaints{TB: t}
		storetest.Wrapper(found, c.wrap)
		if got := strings.Join(found.all, "\n"); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestAFaultyStoreIsAWrapper(t *testing.T) {
	storetest.Wrapper(t, func(s lease.Store) lease.Store {
		return storetest.Faulty(s, func(string) storetest.Fault { return storetest.Fault{} })
	})
}
