package crowd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Processes of an older version use the same variables and the same output; see [Mixed].
const (
	placeVariable  = "WEIR_TEST_CROWD_PLACE" // set in worker processes
	numberVariable = "WEIR_TEST_CROWD_NUMBER"
	steadyVariable = "WEIR_TEST_CROWD_STEADY" // set if the server is not disturbed
	app            = "crowd"
	leases         = 8
	patience       = 30 * time.Second // of a worker, during a restart of the server
)

// Main runs the tests. In a worker process, it runs the worker instead. TestMain must call it. open
// opens a store; it receives only the place.
func Main(m *testing.M, open func(place string) (lease.Store, error)) {
	place := os.Getenv(placeVariable)
	if place == "" {
		os.Exit(leaktest.Run(m))
	}
	s, err := open(place)
	if err == nil {
		err = work(s, insisting(os.Getenv(steadyVariable) != ""))
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// insist makes a call.
type insist func(what string, call func(context.Context) error) error

// insisting returns a function that repeats a call until the call is answered, or until patience is
// over. If the server is steady, the function does not repeat calls. Any error then fails the
// process, except for the error that the session is over. Sleeping is allowed here, because this is
// a separate process.
func insisting(steady bool) insist {
	return func(what string, call func(context.Context) error) error {
		begun := time.Now()
		for {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			if steady {
				ctx = context.Background()
			}
			err := call(ctx)
			cancel()
			if err == nil || errors.Is(err, lease.ErrSessionOver) {
				return err
			}
			if steady || errors.Is(err, lease.ErrSetup) || time.Since(begun) > patience {
				return fmt.Errorf("%s: %w", what, err)
			}
			<-time.After(20 * time.Millisecond)
		}
	}
}

// work runs until the process is killed. It sends heartbeats with progress on the leases that it
// holds. After each answered heartbeat, it prints what the store confirmed, and acts as a leader.
func work(s lease.Store, do insist) error {
	worker, err := strconv.ParseUint(os.Getenv(numberVariable), 10, 32)
	if err != nil {
		return err
	}
	held := map[lease.Key]lease.Lease{}
	for n, first, session := uint64(1), true, ""; ; n++ {
		if first {
			session = fmt.Sprintf("w%d-%d", worker, n)
		}
		r := lease.Report{Session: session, First: first}
		at := map[lease.Key]uint64{}
		for k, l := range held {
			p := lease.Progress{Key: k, Epoch: l.Epoch, Release: l.Heir != "" && rand.IntN(2) == 0 || rand.IntN(20) == 0}
			at[k] = position(l.Epoch, n, worker)
			if p.Position, err = shard.After(strconv.FormatUint(at[k], 10)); err != nil {
				return err
			}
			r.Progress = append(r.Progress, p)
		}
		var o lease.Orders
		err := do("Beat", func(ctx context.Context) (err error) { o, err = s.Heartbeat(ctx, app, r); return err })
		if errors.Is(err, lease.ErrSessionOver) {
			first, held = true, map[lease.Key]lease.Lease{}
			continue
		}
		if err != nil {
			return err
		}
		first = false
		now := map[lease.Key]lease.Lease{}
		var out strings.Builder
		for _, l := range o.Held {
			confirmed := uint64(0)
			if old, ok := held[l.Key]; ok && old.Epoch == l.Epoch {
				confirmed = at[l.Key]
			}
			fmt.Fprintf(&out, "held %s %d %d %s\n", l.Shard, l.Epoch, confirmed, session)
			now[l.Key] = l
		}
		held = now
		fmt.Fprintln(&out, "beat")
		if _, err := os.Stdout.WriteString(out.String()); err != nil {
			return err
		}
		if err := direct(s, do); err != nil {
			return err
		}
	}
}

// position encodes the epoch, the number of the heartbeat, and the worker in a position. The epoch
// comes first, because it may jump.
func position(epoch, n, worker uint64) uint64 { return (epoch*100_000+n%100_000)*1000 + worker }

// direct makes random actions of a leader.
func direct(s lease.Store, do insist) error {
	var v lease.View
	err := do("View", func(ctx context.Context) (err error) { v, err = s.View(ctx, app, ""); return err })
	if err != nil {
		return err
	}
	var live, ended []string
	for _, w := range v.Workers {
		switch {
		case w.Ended:
			ended = append(ended, w.Session)
		case !w.Leaving:
			live = append(live, w.Session)
		}
	}
	var actions []lease.Action
	for _, w := range v.Workers {
		if w.Ended && !slices.ContainsFunc(v.Leases, func(l lease.Lease) bool { return l.Owner == w.Session }) {
			actions = append(actions, lease.Action{Kind: lease.Forget, Session: w.Session})
		} else if !w.Ended && rand.IntN(20*max(len(live), 1)) == 0 {
			// Sometimes also end a session that is alive.
			actions = append(actions, lease.Action{Kind: lease.EndSession, Session: w.Session, Heartbeats: w.Heartbeats})
		}
	}
	for _, l := range v.Leases {
		if len(live) == 0 {
			break
		}
		to := live[rand.IntN(len(live))]
		switch {
		case l.Owner == "" || slices.Contains(ended, l.Owner):
			actions = append(actions, lease.Action{Kind: lease.Assign, Key: l.Key, Epoch: l.Epoch, Session: to})
		case rand.IntN(10) == 0:
			actions = append(actions, lease.Action{Kind: lease.Handoff, Key: l.Key, Epoch: l.Epoch, Session: to})
		case rand.IntN(20) == 0:
			actions = append(actions, lease.Action{Kind: lease.Revoke, Key: l.Key, Epoch: l.Epoch})
		}
	}
	return do("Apply", func(ctx context.Context) error { _, err := s.Apply(ctx, app, actions); return err })
}
