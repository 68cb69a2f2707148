package storetest_test

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/store/storetest"
)

// mutantEnv is set in a process that runs the suite on a store with a defect.
const mutantEnv = "STORETEST_MUTANT"

// mutant is a store with one defect. The defect is only visible between calls or between writers.
type mutant struct {
	lease.Store
	mu    sync.Mutex
	held  map[string]lease.Orders
	views map[string]lease.View
}

// mutants lists defects, each with the case that must find it.
var mutants = []struct {
	name, caught string
	wrap         func(*mutant) lease.Store
}{
	{"abilities come and go", "abilities/abilities_are_the_same_for_each_client,_at_any_time", func(m *mutant) lease.Store { return &moodyAbilities{mutant: m} }},
	{"orders are those of the previous heartbeat", "action/assign_gives_a_free_lease", func(m *mutant) lease.Store { return staleOrders{m} }},
	{"orders are sometimes cached", "race/racing_workers_and_leaders_keep_one_owner_for_each_epoch_and_lose_no_checkpoint",
		func(m *mutant) lease.Store { return keptOrders{m} }},
	{"views read the workers first", "race/a_view_never_misses_the_session_that_its_leases_name", func(m *mutant) lease.Store { return workersFirst{m} }},
	{"views read the revision last", "race/views_that_build_on_earlier_ones_settle_on_the_truth", func(m *mutant) lease.Store { return revisionLast{m} }},
	{"views are cached", "view/a_view_that_saves_the_leases_still_shows_sessions_and_leader_as_they_are", func(m *mutant) lease.Store { return keptViews{m} }},
	{"views that save the leases cache the paused streams", "wish/streams_are_paused_until_an_operator_resumes_them", func(m *mutant) lease.Store { return keptPauses{m} }},
	{"stalls count as releases", "wish/a_lease_that_stalled_shuns_the_session_until_it_is_owned_again",
		func(m *mutant) lease.Store { return mutedStalls{m} }},
	{"heartbeat counts of others are those of the previous heartbeat", "watch/a_heartbeat_that_asks_sees_earlier_heartbeats,_also_through_another_client",
		func(m *mutant) lease.Store { return staleOthers{m} }},
	{"a session resigns any term at which it leads", "resign/a_resignation_that_comes_twice,_or_late,_deposes_nobody",
		func(m *mutant) lease.Store { return anyTerm{m} }},
	{"a candidate reads before it writes", "leader/of_racing_candidates_exactly_one_wins_each_term", func(m *mutant) lease.Store { return eagerLead{m} }},
	{"a repeated apply takes effect again", "history/a_random_history_of_lost,_doubled_and_repeated_calls_ends_like_one_without_faults",
		func(m *mutant) lease.Store { return repeatedApply{m} }},
}

type moodyAbilities struct {
	*mutant
	beaten atomic.Bool
}

func (m *moodyAbilities) Abilities() lease.Abilities {
	if m.beaten.Load() {
		return lease.WatchHeartbeats
	}
	return 0
}

func (m *moodyAbilities) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	m.beaten.Store(true)
	return m.Store.Heartbeat(ctx, app, r)
}

type staleOrders struct{ *mutant }

func (m staleOrders) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	o, err := m.Store.Heartbeat(ctx, app, r)
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.held[app+r.Session]
	m.held[app+r.Session] = o
	if ok && err == nil {
		o.Held = old.Held
	}
	return o, err
}

type keptOrders struct{ *mutant }

func (m keptOrders) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	o, err := m.Store.Heartbeat(ctx, app, r)
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.held[app+r.Session]; ok && err == nil && rand.IntN(8) == 0 {
		return old, nil
	}
	m.held[app+r.Session] = o
	return o, err
}

type workersFirst struct{ *mutant }

func (m workersFirst) View(ctx context.Context, app, since string) (lease.View, error) {
	first, err := m.Store.View(ctx, app, since)
	if err != nil {
		return first, err
	}
	runtime.Gosched()
	v, err := m.Store.View(ctx, app, since)
	v.Workers = first.Workers
	return v, err
}

type revisionLast struct{ *mutant }

func (m revisionLast) View(ctx context.Context, app, since string) (lease.View, error) {
	v, err := m.Store.View(ctx, app, since)
	if err != nil {
		return v, err
	}
	runtime.Gosched()
	last, err := m.Store.View(ctx, app, since)
	v.Revision = last.Revision
	return v, err
}

type keptViews struct{ *mutant }

func (m keptViews) View(ctx context.Context, app, since string) (lease.View, error) {
	v, err := m.Store.View(ctx, app, since)
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.views[app]; ok && err == nil && v.Same {
		return old, nil
	}
	if err == nil {
		m.views[app] = v
		old := m.views[app]
		old.Same, old.Leases = true, nil
		m.views[app] = old
	}
	return v, err
}

type keptPauses struct{ *mutant }

func (m keptPauses) View(ctx context.Context, app, since string) (lease.View, error) {
	v, err := m.Store.View(ctx, app, since)
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.views[app]; ok && err == nil && v.Same {
		v.Paused = old.Paused
	}
	if err == nil {
		m.views[app] = v
	}
	return v, err
}

type mutedStalls struct{ *mutant }

func (m mutedStalls) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	r.Progress = slices.Clone(r.Progress)
	for i := range r.Progress {
		r.Progress[i].Stalled = false
	}
	return m.Store.Heartbeat(ctx, app, r)
}

type staleOthers struct{ *mutant }

func (m staleOthers) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	o, err := m.Store.Heartbeat(ctx, app, r)
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.held[app+r.Session]
	m.held[app+r.Session] = o
	if ok && err == nil {
		o.Others = old.Others
	}
	return o, err
}

type anyTerm struct{ *mutant }

func (m anyTerm) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	if r.Resigns != 0 {
		v, err := m.Store.View(ctx, app, "")
		if err != nil {
			return lease.Orders{}, err
		}
		r.Resigns = v.Leader.Epoch
	}
	return m.Store.Heartbeat(ctx, app, r)
}

type eagerLead struct{ *mutant }

func (m eagerLead) Lead(ctx context.Context, app, session string, term uint64) (bool, error) {
	v, err := m.Store.View(ctx, app, "")
	if err != nil || v.Leader.Epoch != term {
		return false, err
	}
	runtime.Gosched()
	for {
		v, err := m.Store.View(ctx, app, "")
		if err != nil {
			return false, err
		}
		if won, err := m.Store.Lead(ctx, app, session, v.Leader.Epoch); won || err != nil {
			return won, err
		}
	}
}

type repeatedApply struct{ *mutant }

// Apply moves a lease at any epoch.
func (m repeatedApply) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	done, err := m.Store.Apply(ctx, app, actions)
	for i, a := range actions {
		if err != nil || a.Kind != lease.Move || done[i] {
			continue
		}
		a.Epoch++
		if _, err := m.Store.Apply(ctx, app, []lease.Action{a}); err != nil {
			return nil, err
		}
	}
	return done, err
}

// TestOnMutant runs the suite in a separate process, where it must fail.
func TestOnMutant(t *testing.T) {
	name := os.Getenv(mutantEnv)
	for _, m := range mutants {
		if m.name == name {
			storetest.Run(t, storetest.Harness{Open: func(testing.TB) lease.Store {
				return m.wrap(&mutant{Store: memstore.New(), held: map[string]lease.Orders{}, views: map[string]lease.View{}})
			}})
			return
		}
	}
	if name != "" {
		t.Fatalf("no mutant %q", name)
	}
}

func TestTheSuiteFindsDefects(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			// The defect is visible only if the mutant loses a race, so the test tries several
			// times.
			var out []byte
			for range 5 {
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOnMutant$/"+strings.ReplaceAll(m.caught, "/", "$/^")+"$")
				cmd.Env = append(os.Environ(), mutantEnv+"="+m.name)
				var err error
				if out, err = cmd.CombinedOutput(); err != nil {
					break
				}
			}
			if !strings.Contains(string(out), "--- FAIL: TestOnMutant/"+m.caught) {
				t.Errorf("the case %q did not find it:\n%.2000s", m.caught, out)
			}
		})
	}
}
