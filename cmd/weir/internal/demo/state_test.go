package demo

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/shard"
)

// shards creates the shards of a picture from lines of the form "id owner flags". The owner "-"
// means none. A flag such as "<a,b" names the parents.
func shards(t *testing.T, lines ...string) []shardState {
	t.Helper()
	var all []shardState
	for i, line := range lines {
		f := strings.Fields(line)
		s := shardState{id: f[0], put: 10 * (i + 1), hash: shard.HashRange{
			Start: shard.HashKey{Hi: uint64(i) << 32}, End: shard.HashKey{Hi: uint64(i)<<32 | 0xffffffff, Lo: 1<<64 - 1}}}
		if f[1] != "-" {
			s.owner = f[1]
		}
		for _, flag := range f[2:] {
			switch {
			case flag == "finished":
				s.finished = true
			case flag == "closed":
				s.closed = true
			case flag == "moving":
				s.moving = true
			case strings.HasPrefix(flag, "<"):
				s.parents = strings.Split(flag[1:], ",")
			default:
				t.Fatalf("line %q: what is %q?", line, flag)
			}
		}
		all = append(all, s)
	}
	return all
}

func crew(lines ...string) []workerState {
	var all []workerState
	for _, line := range lines {
		name, state, _ := strings.Cut(line, " ")
		w := workerState{name: strings.TrimSuffix(name, "*"), leads: strings.HasSuffix(name, "*"), life: living}
		for l := starting; l <= killed; l++ {
			if l.String() == state {
				w.life = l
			}
		}
		all = append(all, w)
	}
	return all
}

func TestBalanced(t *testing.T) {
	three := crew("w1*", "w2", "w3")
	for name, c := range map[string]struct {
		shards  []shardState
		workers []workerState
		want    bool
	}{
		"nothing is leased yet":               {nil, three, false},
		"each worker has one":                 {shards(t, "a w1", "b w2", "c w3"), three, true},
		"one has one more":                    {shards(t, "a w1", "b w2", "c w3", "d w1"), three, true},
		"one has two more":                    {shards(t, "a w1", "b w2", "c w1", "d w1", "e w2"), three, false},
		"one has none of three":               {shards(t, "a w1", "b w2", "c w1"), three, false},
		"a lease is free":                     {shards(t, "a w1", "b w2", "c w3", "d -"), three, false},
		"a lease is on its way":               {shards(t, "a w1", "b w2", "c w3 moving"), three, false},
		"a finished parent counts for nobody": {shards(t, "p - finished closed", "a w1 <p", "b w2 <p", "c w3"), three, true},
		"a child waits for its parent":        {shards(t, "p w1 closed", "a - <p", "b w2", "c w3"), three, true},
		"a parent that left the stream":       {shards(t, "a w1 <gone", "b w2", "c w3"), three, true},
		"a worker is missing":                 {shards(t, "a w1", "b w2"), crew("w1*", "w2"), false},
		"the dead one still holds a lease":    {shards(t, "a w1", "b w2", "c w3", "d w4"), crew("w1*", "w2", "w3", "w4 killed"), false},
		"the dead one holds none any more":    {shards(t, "a w1", "b w2", "c w3"), crew("w1*", "w2", "w3", "w4 killed"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (picture{shards: c.shards, workers: c.workers}).balanced(3); got != c.want {
				t.Errorf("balanced = %v, want %v", got, c.want)
			}
		})
	}
}

func TestChoices(t *testing.T) {
	p := picture{
		shards:  shards(t, "a w1", "p w2 finished closed", "c w1", "d w2", "e w3 <p", "f w3 <p"),
		workers: crew("w1*", "w2", "w3", "w4 killed"),
	}
	if s, err := p.busiest(); err != nil || s.id != "f" {
		t.Errorf("busiest is %s, %v, want f", s.id, err)
	}
	lower, upper, err := p.quietestPair()
	if err != nil || lower.id != "c" || upper.id != "d" {
		t.Errorf("quietest pair is %s, %s, %v, want c, d: a and c are no neighbours", lower.id, upper.id, err)
	}
	if w, err := p.victim(true); err != nil || w != "w1" {
		t.Errorf("the leader to kill is %q, %v, want w1", w, err)
	}
	if w, err := p.victim(false); err != nil || w != "w3" {
		t.Errorf("the other worker to kill is %q, %v, want w3, which holds more", w, err)
	}
	var children []string
	for _, s := range p.childrenOf("p") {
		children = append(children, s.id)
	}
	if !slices.Equal(children, []string{"e", "f"}) {
		t.Errorf("children of p are %v", children)
	}
	if !p.quiet() {
		t.Error("a finished parent disturbs")
	}
	p.shards[1].finished = false
	if p.quiet() {
		t.Error("a parent that is still read does not disturb")
	}
}

func TestChoicesWithNothingToChoose(t *testing.T) {
	empty := picture{workers: crew("w1*", "w2")}
	if _, err := empty.busiest(); err == nil {
		t.Error("busiest of nothing")
	}
	if _, _, err := (picture{shards: shards(t, "a w1")}).quietestPair(); err == nil {
		t.Error("a pair of one")
	}
	if _, err := empty.victim(true); err == nil {
		t.Error("a victim without shards")
	}
	lower, upper, err := (picture{shards: shards(t, "a w1 <p", "b w1 <p")}).quietestPair()
	if err != nil || lower.id != "a" || upper.id != "b" {
		t.Errorf("children are better than nothing: %s, %s, %v", lower.id, upper.id, err)
	}
}

func TestRate(t *testing.T) {
	for name, c := range map[string]struct {
		left  int
		until time.Duration
		done  bool
		want  float64
	}{
		"at the start":                      {20000, 40 * time.Second, false, 500},
		"late with events still to come":    {800, time.Second, false, 100},
		"after the planned end":             {80, -5 * time.Second, false, 10},
		"the script is done":                {3000, 3 * time.Second, true, 1000},
		"the script is done and it is time": {50, -time.Second, true, 500},
		"nothing is left":                   {0, time.Second, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rate(c.left, c.until, c.done); got != c.want {
				t.Errorf("rate = %v, want %v", got, c.want)
			}
		})
	}
}

func TestHurry(t *testing.T) {
	for name, c := range map[string]struct{ planned, now, want time.Duration }{
		"early":   {40 * time.Second, 30 * time.Second, 33 * time.Second},
		"on time": {40 * time.Second, 38 * time.Second, 40 * time.Second},
		"late":    {40 * time.Second, 50 * time.Second, 51 * time.Second},
	} {
		if got := hurry(c.planned, c.now); got != c.want {
			t.Errorf("%s: hurry = %v, want %v", name, got, c.want)
		}
	}
}

func TestFlights(t *testing.T) {
	all, err := flights(20000)
	if err != nil {
		t.Fatal(err)
	}
	airports := map[string]bool{}
	for i, f := range all {
		airports[f.origin] = true
		if index, err := flightIndex(f.data); err != nil || index != i {
			t.Fatalf("flight %d reads back as %d, %v", i, index, err)
		}
	}
	if len(airports) != 220 {
		t.Errorf("%d airports, want 220", len(airports))
	}
	if _, err := flights(20001); err == nil {
		t.Error("there are more flights than there are")
	}
	for _, data := range []string{"", "{}", "x", `{"flight":"1"}`, `{"flight":null}`} {
		if _, err := flightIndex([]byte(data)); err == nil {
			t.Errorf("%q passes for a flight", data)
		}
	}
}

func TestShortID(t *testing.T) {
	for id, want := range map[string]string{"shardId-000000000000": "0", "shardId-000000000012": "12", "odd": "odd"} {
		if got := shortID(id); got != want {
			t.Errorf("%s becomes %s, want %s", id, got, want)
		}
	}
}
