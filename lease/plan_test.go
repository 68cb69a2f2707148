package lease_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// TestPlanShares executes plans until nothing is left to do, and checks the number of leases of
// each worker.
func TestPlanShares(t *testing.T) {
	t.Parallel()
	type worker = lease.Worker
	for name, c := range map[string]struct {
		workers []worker
		free    int
		held    []int // number of leases by worker, before
		want    []int // number of leases by worker, after all handoffs
	}{
		"nobody is there": {nil, 3, nil, nil},
		"nothing is there": {
			[]worker{{}, {}}, 0, nil, []int{0, 0},
		},
		"fewer leases than workers go to the first": {
			[]worker{{}, {}, {}}, 2, nil, []int{1, 1, 0},
		},
		"the odd lease stays with whoever has it": {
			[]worker{{}, {}, {}}, 0, []int{2, 2, 3}, []int{2, 2, 3},
		},
		"a weight that is not said, negative or not a number counts as 1": {
			[]worker{{}, {Weight: -3}, {Weight: math.NaN()}, {Weight: math.Inf(1)}, {Weight: math.Inf(-1)}, {Weight: 1}},
			12, nil, []int{2, 2, 2, 2, 2, 2},
		},
		"weights count relative to each other": {
			[]worker{{Weight: 0.5}, {Weight: 1.5}, {Weight: 2}}, 8, nil, []int{1, 3, 4},
		},
		"the largest remainders are rounded up": {
			// The exact shares are 3.5, 2.1 and 1.4.
			[]worker{{Weight: 5}, {Weight: 3}, {Weight: 2}}, 7, nil, []int{4, 2, 1},
		},
		"weights whose sums would overflow": {
			[]worker{{Weight: math.MaxFloat64}, {Weight: math.MaxFloat64}, {Weight: 1}}, 9, nil, []int{5, 4, 0},
		},
		"tiny weights": {
			[]worker{{Weight: math.SmallestNonzeroFloat64}, {Weight: math.SmallestNonzeroFloat64}}, 8, nil, []int{4, 4},
		},
		"an error of rounding is no remainder": {
			[]worker{{Weight: 0.1}, {Weight: 0.2}, {Weight: 0.3}}, 6, []int{1, 2, 3}, []int{2, 4, 6},
		},
		"equal remainders with different whole parts go where a move is saved": {
			// The exact shares are 1.5 and 4.5. If the second worker got the share 5, the first
			// would lose a lease.
			[]worker{{Weight: 1}, {Weight: 3}}, 0, []int{2, 4}, []int{2, 4},
		},
		"a cap leaves more for the others": {
			[]worker{{MaxLeases: 1}, {}, {}}, 9, nil, []int{1, 4, 4},
		},
		"a cap far away changes nothing": {
			[]worker{{MaxLeases: 1000}, {}, {}}, 9, nil, []int{3, 3, 3},
		},
		"a cap exactly at the share changes nothing": {
			[]worker{{MaxLeases: 3}, {}, {}}, 9, nil, []int{3, 3, 3},
		},
		"one cap makes another one bind": {
			[]worker{{MaxLeases: 1}, {MaxLeases: 4}, {}}, 10, nil, []int{1, 4, 5},
		},
		"a heavy worker with a small cap": {
			[]worker{{Weight: 100, MaxLeases: 2}, {}, {}}, 8, nil, []int{2, 3, 3},
		},
		"all caps together are too few": {
			[]worker{{MaxLeases: 2}, {MaxLeases: 1}}, 8, nil, []int{2, 1},
		},
		"a negative cap is no cap": {
			[]worker{{MaxLeases: -1}, {MaxLeases: math.MinInt}}, 4, nil, []int{2, 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newModel()
			for i, w := range c.workers {
				w.Session = fmt.Sprintf("w%d", i)
				m.workers[w.Session] = &w
			}
			n := 0
			add := func(owner string) {
				k := lease.Key{Stream: "s", Shard: fmt.Sprintf("%03d", n)}
				m.leases[k] = &lease.Lease{Key: k, Epoch: 1, Owner: owner, Last: owner, Position: shard.Oldest}
				n++
			}
			for i, held := range c.held {
				for range held {
					add(fmt.Sprintf("w%d", i))
				}
			}
			for range c.free {
				add("")
			}
			for planned := m.plan(); len(planned) > 0; planned = m.plan() {
				for _, a := range planned {
					if !m.apply(a) {
						t.Fatalf("refused: %v", a)
					}
				}
				m.handOver()
			}
			held := m.held()
			for i, want := range c.want {
				if got := held[fmt.Sprintf("w%d", i)]; got != want {
					t.Errorf("worker %d holds %d leases, want %d\n%s", i, got, want, m)
				}
			}
		})
	}
}

func TestPlanOfNothing(t *testing.T) {
	t.Parallel()
	if got := lease.Plan(lease.View{}, lease.Facts{}, lease.Limits{}); len(got) != 0 {
		t.Errorf("planned %v", got)
	}
}

// TestPlanOfATornView plans from a view that the store read with several queries while leases
// changed. A lease may occur twice in such a view.
func TestPlanOfATornView(t *testing.T) {
	t.Parallel()
	k := lease.Key{Stream: "s", Shard: "1"}
	v := lease.View{
		Workers: []lease.Worker{{Session: "ann"}, {Session: "bea"}},
		Leases: []lease.Lease{
			{Key: k, Epoch: 1, Position: shard.Oldest},
			{Key: k, Epoch: 2, Owner: "bea", Last: "bea", Position: shard.Oldest},
			{Key: k, Epoch: 1, Owner: "nobody", Position: shard.Oldest},
		},
	}
	if got := lease.Plan(v, lease.Facts{}, lease.Limits{}); len(got) != 0 {
		t.Errorf("planned %v although the newest row is in order", got)
	}
}

func TestWaiting(t *testing.T) {
	t.Parallel()
	k := func(id string) lease.Key { return lease.Key{Stream: "s", Shard: id} }
	open := func(id string, parents ...string) lease.Lease {
		return lease.Lease{Key: k(id), Parents: parents, Position: shard.Oldest}
	}
	finished := func(id string, parents ...string) lease.Lease {
		return lease.Lease{Key: k(id), Parents: parents, Position: shard.End}
	}
	held := func(l lease.Lease) lease.Lease { l.Owner, l.Last = "w", "w"; return l }
	hadOwner := func(l lease.Lease) lease.Lease { l.Last = "w"; return l }
	otherStream := func(l lease.Lease) lease.Lease { l.Stream = "t"; return l }

	for name, c := range map[string]struct {
		leases  []lease.Lease
		gone    []string
		waiting map[lease.Key][]lease.Key
		unknown []lease.Key
	}{
		"nothing": {waiting: map[lease.Key][]lease.Key{}},
		"a shard without parents": {
			leases: []lease.Lease{open("1")}, waiting: map[lease.Key][]lease.Key{},
		},
		"the child of an unfinished shard": {
			leases:  []lease.Lease{open("1"), open("2", "1")},
			waiting: map[lease.Key][]lease.Key{k("2"): {k("1")}},
		},
		"the child of a finished shard": {
			leases: []lease.Lease{finished("1"), open("2", "1")}, waiting: map[lease.Key][]lease.Key{},
		},
		"a merge of which one parent is finished": {
			leases:  []lease.Lease{finished("1"), open("2"), open("3", "2", "1")},
			waiting: map[lease.Key][]lease.Key{k("3"): {k("2")}},
		},
		"a merge of two unfinished parents": {
			leases:  []lease.Lease{open("1"), open("2"), open("3", "2", "1")},
			waiting: map[lease.Key][]lease.Key{k("3"): {k("1"), k("2")}},
		},
		"a parent without a lease": {
			leases:  []lease.Lease{open("2", "1"), open("3", "1"), open("4", "0")},
			waiting: map[lease.Key][]lease.Key{k("2"): {k("1")}, k("3"): {k("1")}, k("4"): {k("0")}},
			unknown: []lease.Key{k("0"), k("1")},
		},
		"a parent that is gone": {
			leases: []lease.Lease{open("2", "1")}, gone: []string{"1"}, waiting: map[lease.Key][]lease.Key{},
		},
		"a parent that is said to be gone and yet has a lease": {
			leases: []lease.Lease{open("1"), open("2", "1")}, gone: []string{"1"},
			waiting: map[lease.Key][]lease.Key{k("2"): {k("1")}},
		},
		"a parent of the same name in another stream": {
			leases:  []lease.Lease{otherStream(finished("1")), open("2", "1")},
			waiting: map[lease.Key][]lease.Key{k("2"): {k("1")}},
			unknown: []lease.Key{k("1")},
		},
		"a parent that was forgotten since the child was given out": {
			leases: []lease.Lease{held(open("2", "1")), hadOwner(open("3", "1"))}, waiting: map[lease.Key][]lease.Key{},
		},
		"a parent that was set back since the child was given out": {
			leases:  []lease.Lease{open("1"), held(open("2", "1"))},
			waiting: map[lease.Key][]lease.Key{k("2"): {k("1")}},
		},
		"a finished shard waits for nothing": {
			leases: []lease.Lease{finished("2", "1")}, waiting: map[lease.Key][]lease.Key{},
		},
		"the same parent twice": {
			leases:  []lease.Lease{open("2", "1", "1")},
			waiting: map[lease.Key][]lease.Key{k("2"): {k("1")}},
			unknown: []lease.Key{k("1")},
		},
		"a circle, which no stream has": {
			leases:  []lease.Lease{open("1", "2"), open("2", "1"), open("3", "3")},
			waiting: map[lease.Key][]lease.Key{k("1"): {k("2")}, k("2"): {k("1")}, k("3"): {k("3")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gone := map[lease.Key]bool{}
			for _, id := range c.gone {
				gone[k(id)] = true
			}
			if got := lease.Waiting(c.leases, gone); !reflect.DeepEqual(got, c.waiting) {
				t.Errorf("waiting: %v, want %v", got, c.waiting)
			}
			if got := lease.Unknown(c.leases, gone); !slices.Equal(got, c.unknown) {
				t.Errorf("unknown: %v, want %v", got, c.unknown)
			}
		})
	}
}

// FuzzPlan makes views that no store returns. They contain repeated sessions and leases, cycles of
// parents, unknown owners and heirs, and finished leases with owners. Plan must not panic and must
// not depend on the order. It must still not assign a lease to a session that cannot take the
// lease.
func FuzzPlan(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{3, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 1, 0, 0, 0, 4, 0, 1, 2, 3, 0, 0, 0, 0, 0, 1, 1, 2, 0, 1, 0, 0, 0})
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 2))
		data := make([]byte, 40+rng.IntN(300))
		for i := range data {
			data[i] = byte(rng.IntN(256))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := &fuzzInput{data: data}
		v, facts, limits := in.view(), in.facts(), lease.Limits{MovesInFlight: in.number(9) - 2}

		planned := lease.Plan(v, facts, limits)
		shuffled := lease.View{Leases: slices.Clone(v.Leases), Workers: slices.Clone(v.Workers)}
		slices.Reverse(shuffled.Leases)
		slices.Reverse(shuffled.Workers)
		if again := lease.Plan(shuffled, facts, limits); !reflect.DeepEqual(planned, again) {
			t.Errorf("the order of the rows matters:\n%v\n%v", planned, again)
		}
		takes := map[string]bool{}
		for _, w := range v.Workers {
			takes[w.Session] = true
		}
		for _, w := range v.Workers {
			if w.Ended {
				takes[w.Session] = false
			}
		}
		decided := map[lease.Key]bool{}
		for _, a := range planned {
			switch a.Kind {
			case lease.Assign, lease.Handoff, lease.Revoke:
				if decided[a.Key] {
					t.Errorf("%v is in two actions", a.Key)
				}
				decided[a.Key] = true
				if a.Session == "" && a.Kind == lease.Assign || a.Session != "" && !takes[a.Session] {
					t.Errorf("%v: which takes none", a)
				}
			}
		}
		waiting := lease.Waiting(v.Leases, facts.Gone)
		for _, k := range lease.Unknown(v.Leases, facts.Gone) {
			if !slices.ContainsFunc(slices.Collect(maps.Values(waiting)), func(ps []lease.Key) bool { return slices.Contains(ps, k) }) {
				t.Errorf("%v is unknown, and nobody waits for it", k)
			}
		}
	})
}

// fuzzInput converts bytes to small numbers, and these to rows.
type fuzzInput struct{ data []byte }

func (in *fuzzInput) number(below int) int {
	if len(in.data) == 0 {
		return 0
	}
	n := int(in.data[0]) % below
	in.data = in.data[1:]
	return n
}

func (in *fuzzInput) session() string {
	return [...]string{"", "a", "b", "c", "d", "nobody", "\xff", "a", "b"}[in.number(9)]
}

func (in *fuzzInput) key() lease.Key {
	return lease.Key{Stream: [...]string{"s", "", "t"}[in.number(3)], Shard: [...]string{"0", "1", "2", "3", "", "4"}[in.number(6)]}
}

func (in *fuzzInput) position() shard.Position {
	part, _ := shard.Part("17", 2)
	return [...]shard.Position{{}, shard.Oldest, shard.Latest, shard.End, part}[in.number(5)]
}

func (in *fuzzInput) view() lease.View {
	var v lease.View
	for range in.number(8) {
		flags := in.number(8)
		v.Workers = append(v.Workers, lease.Worker{
			Session: in.session(), Heartbeats: uint64(in.number(4)), Ended: flags&1 != 0, Leaving: flags&6 == 6,
			Weight:    [...]float64{0, 1, 2, 0.3, -1, math.NaN(), math.Inf(1), math.MaxFloat64, 5e-324}[in.number(9)],
			MaxLeases: [...]int{0, 0, 1, 2, -5, math.MaxInt}[in.number(6)],
		})
	}
	for range in.number(40) {
		l := lease.Lease{
			Key: in.key(), Epoch: uint64(in.number(3)), Owner: in.session(), Heir: in.session(), Revoked: in.session(),
			Last: in.session(), Position: in.position(),
		}
		for range in.number(4) {
			l.Parents = append(l.Parents, in.key().Shard)
		}
		v.Leases = append(v.Leases, l)
	}
	return v
}

func (in *fuzzInput) facts() lease.Facts {
	f := lease.Facts{
		Dead: map[string]uint64{}, Ripe: map[lease.Key]uint64{}, Overdue: map[lease.Key]uint64{},
		Gone: map[lease.Key]bool{}, OutOfDate: map[string]bool{}, Forgettable: map[string]bool{},
	}
	for range in.number(6) {
		f.Dead[in.session()] = uint64(in.number(4))
		f.Ripe[in.key()] = uint64(in.number(3))
		f.Overdue[in.key()] = uint64(in.number(3))
		f.Gone[in.key()] = in.number(2) == 1
		f.OutOfDate[in.session()] = in.number(2) == 1
		f.Forgettable[in.session()] = in.number(2) == 1
	}
	return f
}

// BenchmarkPlan plans for 10,000 leases and 100 workers.
func BenchmarkPlan(b *testing.B) {
	for _, c := range []struct {
		name string
		at   func(i int) lease.Lease // modifies lease i
	}{
		{"balanced", func(i int) lease.Lease { return lease.Lease{Owner: worker(i % 100)} }},
		{"start", func(int) lease.Lease { return lease.Lease{} }},
		{"join", func(i int) lease.Lease { return lease.Lease{Owner: worker(i % 99)} }},
		{"half of the workers are new", func(i int) lease.Lease { return lease.Lease{Owner: worker(i % 50)} }},
		{"failover of one", func(i int) lease.Lease {
			if i%100 == 7 {
				return lease.Lease{Owner: "dead", Last: "dead"}
			}
			return lease.Lease{Owner: worker(i % 100)}
		}},
		{"all were split", func(i int) lease.Lease {
			if i < 3333 {
				return lease.Lease{Position: shard.End, Last: worker(i % 100)}
			}
			return lease.Lease{Parents: []string{shardID((i - 3333) / 2)}}
		}},
		{"uneven loads", func(i int) lease.Lease {
			return lease.Lease{Owner: worker(i % 100), Load: lease.Load(i % 100 * 40 / 100)}
		}},
		{"suspicious former owners", func(i int) lease.Lease { return lease.Lease{Revoked: worker(0), Last: worker(0)} }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var v lease.View
			facts := lease.Facts{Ripe: map[lease.Key]uint64{}}
			for i := range 100 {
				v.Workers = append(v.Workers, lease.Worker{Session: worker(i), Heartbeats: 1})
			}
			for i := range 10_000 {
				l := c.at(i)
				l.Key, l.Epoch = lease.Key{Stream: "orders", Shard: shardID(i)}, 1
				v.Leases = append(v.Leases, l)
				if l.Revoked != "" {
					facts.Ripe[l.Key] = 1
				}
			}
			rand.New(rand.NewPCG(1, 1)).Shuffle(len(v.Leases), func(i, j int) {
				v.Leases[i], v.Leases[j] = v.Leases[j], v.Leases[i]
			})
			actions := 0
			b.ReportAllocs()
			for b.Loop() {
				actions = len(lease.Plan(v, facts, lease.Limits{MovesInFlight: 10_000}))
			}
			b.ReportMetric(float64(actions), "actions")
		})
	}
}

func worker(i int) string  { return fmt.Sprintf("worker-%03d", i) }
func shardID(i int) string { return fmt.Sprintf("shardId-%012d", i) }
