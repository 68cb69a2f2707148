package group

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// These cases show which of a stream's missing leases are created now.
func TestAStartIsClaimedBeforeAnythingElseIsMade(t *testing.T) {
	of := func(id string, at shard.Position) lease.Lease {
		return lease.Lease{Key: lease.Key{Stream: "s", Shard: id}, Epoch: 1, Position: at}
	}
	none := shard.Position{}
	for _, tt := range []struct {
		name     string
		b        *beginning
		existing bool
		pin      shard.Position
		missing  []lease.Lease
		want     string
	}{
		{"by the oldest shard", nil, false, noon, []lease.Lease{of("1", noon), of("2", noon)}, "1 noon"},
		{"also by a shard that ended before", nil, false, noon, []lease.Lease{of("1", shard.End), of("2", noon)}, "1 noon"},
		{"if the leases do not show it", &beginning{}, true, noon, []lease.Lease{of("2", shard.Oldest), of("3", shard.End), of("4", noon)}, "3 noon"},
		{"not by a descendant of a shard that is read", &beginning{}, true, noon, []lease.Lease{of("2", shard.Oldest), of("3", shard.Oldest)}, "2 oldest, 3 oldest"},
		{"once", &beginning{noon}, true, noon, []lease.Lease{of("1", shard.End), of("2", noon), of("3", noon)}, "2 noon, 3 noon"},
		{"once, and then the earlier shards follow", &beginning{noon}, true, noon, []lease.Lease{of("1", shard.End), of("2", shard.Oldest)}, "1 end, 2 oldest"},
		{"not while a worker reads", nil, true, noon, []lease.Lease{of("1", shard.End), of("2", noon), of("3", noon)}, "2 noon, 3 noon"},
		{"not at the oldest record", nil, false, none, []lease.Lease{of("1", shard.Oldest), of("2", shard.Oldest)}, "1 oldest, 2 oldest"},
		{"not without one time", nil, false, none, []lease.Lease{of("1", shard.End), of("2", noon), of("3", noon)}, "2 noon, 3 noon"},
		{"of nothing", nil, false, noon, nil, ""},
	} {
		var got []string
		for _, l := range tt.b.first(tt.missing, tt.pin, tt.existing) {
			got = append(got, l.Shard+" "+strings.ReplaceAll(l.Position.String(), noon.String(), "noon"))
		}
		if all := strings.Join(got, ", "); all != tt.want {
			t.Errorf("%s: %s, not %s", tt.name, all, tt.want)
		}
	}
}

// A leader continues with a claim only if the store confirms that this leader made it. Another
// leader's claim in the same second may be based on other shards.
func TestWhoseClaimItIs(t *testing.T) {
	made := lease.View{Leases: []lease.Lease{{Key: lease.Key{Stream: "s", Shard: "1"}, Epoch: 1, Position: noon}}}
	for _, tt := range []struct {
		name  string
		start shard.Position
		did   shard.Position
		goes  bool
	}{
		{"ours", shard.Latest, noon, true},
		{"it is unknown whose", shard.Latest, shard.Position{}, false},
		{"not ours, though another lease is", shard.Latest, shard.Oldest, false},
		{"the listing is as of that time", noon, shard.Position{}, true},
	} {
		s := newListings([]string{"s"})
		cfg := Config{Host: new(HostFuncs), Start: shard.Latest, Log: slog.New(slog.DiscardHandler)}
		listing := Listing{Shards: []shard.Shard{{ID: "1"}, {ID: "2"}}, Begin: map[string]shard.Position{"2": noon}}
		if err := s.take(result{stream: "s", Listing: listing, start: tt.start, fresh: true}, cfg); err != nil {
			t.Fatal(err)
		}
		s.beginnings = beginnings(made.Leases)
		if !tt.did.IsZero() {
			s.made(lease.Lease{Key: lease.Key{Stream: "s", Shard: "3"}, Position: tt.did})
		}
		if got := s.actions(made, lease.Facts{}, cfg); (len(got) == 1 && got[0].Lease.Shard == "2") != tt.goes || !tt.goes && len(got) > 0 {
			t.Errorf("%s: %v", tt.name, got)
		}
		if off := s.unlisted(nil, nil); len(off) != 1 {
			t.Errorf("%s: it is given out", tt.name)
		}
	}
}

// Three leaders follow one another on a stream that keeps splitting. Their calls reach the store at
// any time, in any order, partly or not at all. When a leader can assign the first lease, all
// leases begin at the time of the leader whose claim came first.
func TestLeadersWhoseCallsAreLateBeginAtOneTime(t *testing.T) {
	var firsts [3]int // how often each leader's claim was first
	for seed := range uint64(600) {
		synctest.Test(t, func(t *testing.T) {
			h := &lateLeaders{t: t, rng: rand.New(rand.NewPCG(seed, 1)), store: memstore.New()}
			for who := range firsts {
				h.leads(who, who == len(firsts)-1)
			}
			for len(h.late) > 0 {
				h.arrives()
			}
			h.begins()
			if t.Failed() {
				t.Fatalf("seed %d:\n%s", seed, h.story.String())
			}
			firsts[h.by]++
		})
		if t.Failed() {
			return
		}
	}
	if slices.Contains(firsts[:], 0) {
		t.Errorf("whose claim came first: %v", firsts)
	}
}

type lateLeaders struct {
	t       *testing.T
	rng     *rand.Rand
	store   *memstore.Store
	stage   int // how often the stream has been split
	late    []lateCall
	pin, by int // the stage and the leader of the first lease
	story   strings.Builder
}

type lateCall struct {
	who, stage int
	actions    []lease.Action
}

// stageAt returns the service's time at a stage. Each second contains two stages.
func stageAt(stage int) shard.Position {
	return shard.At(noon.Time().Add(time.Duration(stage/2) * time.Second))
}

// shards returns the shards at a stage. Each stage splits the oldest open shard. Shard 10 was split
// before the first stage.
func (h *lateLeaders) shards() (all []shard.Shard, open []string) {
	all, open = []shard.Shard{{ID: "10"}, {ID: "11", Parents: []string{"10"}}, {ID: "12", Parents: []string{"10"}}, {ID: "13"}}, []string{"11", "12", "13"}
	for i := range h.stage {
		for k := range 2 {
			id := fmt.Sprint(14 + 2*i + k)
			all, open = append(all, shard.Shard{ID: id, Parents: open[:1:1]}), append(open, id)
		}
		open = open[1:]
	}
	return all, open
}

// leads runs a leader for a few looks. The last leader runs until it could assign leases.
func (h *lateLeaders) leads(who int, last bool) {
	// stage is the stage of the listing that the leader uses. next is the stage of the listing in
	// progress.
	s, stage, next := newListings([]string{"s"}), 0, 0
	cfg := Config{
		Start: shard.Latest, ListInterval: time.Minute, Log: slog.New(slog.DiscardHandler),
		Host: &HostFuncs{
			OnList: func(_ context.Context, _ string, start shard.Position) (Listing, error) {
				all, open := h.shards()
				l := Listing{Shards: all, Begin: map[string]shard.Position{}}
				if start.Kind() == shard.Tip {
					next = h.stage
					for _, id := range open {
						l.Begin[id] = stageAt(next)
					}
					return l, nil
				}
				for _, sh := range all {
					l.Begin[sh.ID] = start
				}
				return l, nil
			},
		},
	}
	for looks := h.rng.IntN(8); looks > 0 || last; looks-- {
		time.Sleep(time.Second)
		if looks < -50 {
			h.t.Errorf("the last leader does not come to an end")
			return
		}
		if h.rng.IntN(3) == 0 && len(h.late) > 0 {
			h.arrives()
		}
		if h.rng.IntN(3) == 0 && h.stage < 6 {
			h.stage++
		}
		v, err := h.store.View(h.t.Context(), "app", "")
		if err != nil {
			h.t.Fatal(err)
		}
		s.begin(h.t.Context(), v, cfg)
		synctest.Wait()
		actions := s.actions(v, lease.Facts{}, cfg)
		if len(v.Leases) > 0 && len(s.unlisted(nil, nil)) == 0 {
			h.begins()
			return
		}
		call := lateCall{who, stage, actions}
		switch {
		case len(actions) == 0:
		case h.rng.IntN(2) == 0:
			for i, did := range h.apply(call) {
				if did && h.rng.IntN(3) > 0 { // otherwise the answer is lost
					s.made(actions[i].Lease)
				}
			}
		default:
			call.actions = actions[:h.rng.IntN(len(actions)+1)]
			h.late = append(h.late, call)
		}
		select {
		case r := <-s.results:
			if err := s.take(r, cfg); err != nil {
				h.t.Fatal(err)
			}
			stage = next
		default:
		}
	}
}

// arrives makes a late call, or one action of it, take effect.
func (h *lateLeaders) arrives() {
	i := h.rng.IntN(len(h.late))
	call := h.late[i]
	if len(call.actions) > 1 && h.rng.IntN(2) == 0 {
		h.late[i].actions, call.actions = call.actions[1:], call.actions[:1]
	} else {
		h.late = slices.Delete(h.late, i, i+1)
	}
	h.apply(call)
}

func (h *lateLeaders) apply(call lateCall) []bool {
	did, err := h.store.Apply(h.t.Context(), "app", call.actions)
	if err != nil {
		h.t.Fatal(err)
	}
	for i, a := range call.actions {
		fmt.Fprintln(&h.story, call.who, "stage", h.stage, a, did[i])
		if !did[i] {
			continue
		}
		if h.pin == 0 {
			h.pin, h.by = call.stage+1, call.who
		}
	}
	return did
}

// begins checks where the leases begin, whenever a leader can assign them and once when all calls
// have arrived.
func (h *lateLeaders) begins() {
	v, err := h.store.View(h.t.Context(), "app", "")
	if err != nil {
		h.t.Fatal(err)
	}
	pin := stageAt(h.pin - 1)
	at := map[string]shard.Position{}
	for _, l := range v.Leases {
		at[l.Shard] = l.Position
	}
	now := h.stage
	h.stage = h.pin - 1
	before, open := h.shards()
	h.stage = now
	all, _ := h.shards()
	for _, sh := range all {
		was := slices.ContainsFunc(before, func(b shard.Shard) bool { return b.ID == sh.ID })
		p, made := at[sh.ID]
		right := p == pin
		switch {
		case !made:
			right = !was // the shard is newer than the last leader's listing
		case was && !slices.Contains(open, sh.ID):
			right = right || p.IsEnd()
		case !was:
			right = right || p == shard.Oldest
		}
		if !right {
			h.t.Errorf("%s, which was there: %t, begins at %s, not %s", sh.ID, was, p, pin)
		}
	}
}
