package shard_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/shard"
)

// listing returns shards from strings of the form "id" or "id<parent,parent".
func listing(shards ...string) []shard.Shard {
	var all []shard.Shard
	for _, s := range shards {
		id, parents, _ := strings.Cut(s, "<")
		one := shard.Shard{ID: id}
		if parents != "" {
			one.Parents = strings.Split(parents, ",")
		}
		all = append(all, one)
	}
	return all
}

func TestGraph(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shards  string // arguments of listing, separated by blanks
		ordered string
		ready   string // "done: the shards that are ready then", separated by semicolons
	}{
		"no shards": {"", "", ":"},
		"shards that were never resharded": {
			"c a b", "a b c", ": a b c; a b: c; a b c:",
		},
		"a split": {
			"c<a b<a a", "a b c", ": a; a: b c; a b: c; a b c:",
		},
		"a merge waits for both parents": {
			"c<a,b a b", "a b c", ": a b; a: b; b: a; a b: c",
		},
		"generation by generation, sorted inside each": {
			"a z b<z c<a d<b,c", "a z b c d", ": a z; z: a b; a: z c; a z: b c; a z b c: d",
		},
		"a long way and a short way to the same shard": {
			"a b<a c<b d<c,a", "a b c d", "a: b; a b: c; a b c: d",
		},
		"a parent that has left the stream is not waited for": {
			"b<a c<a,b", "b c", ": b; b: c",
		},
		"both parents have left the stream": {
			"c<a,b", "c", ": c",
		},
		"a shard that names one parent twice": {
			"a b<a,a", "a b", ": a; a: b",
		},
		"a shard that comes twice counts once, the last one": {
			"a b<a b", "a b", ": a b",
		},
		"shards done out of order": {
			"a b<a c<b", "a b c", "b: a c; b c: a",
		},
		"a circle comes last and is never ready": {
			"m<n n<m z", "z m n", ": z; z:",
		},
		"a shard that is its own parent": {
			"a<a b<a z", "z a b", ": z; z:",
		},
		"a descendant of a circle is not ready either": {
			"a<b b<a c<a d<c", "a b c d", ":",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shards := listing(strings.Fields(c.shards)...)
			g := shard.NewGraph(shards)
			if got := strings.Join(g.Ordered(), " "); got != c.ordered {
				t.Errorf("ordered %q, want %q", got, c.ordered)
			}
			if g.Len() != len(strings.Fields(c.ordered)) {
				t.Errorf("there are %d shards", g.Len())
			}
			for step := range strings.SplitSeq(c.ready, ";") {
				before, after, _ := strings.Cut(step, ":")
				done := strings.Fields(before)
				got := strings.Join(g.Ready(func(id string) bool { return slices.Contains(done, id) }), " ")
				if want := strings.TrimSpace(after); got != want {
					t.Errorf("with %v done, %q are ready, want %q", done, got, want)
				}
			}
		})
	}
}

func TestGraphKnowsRelatives(t *testing.T) {
	t.Parallel()
	g := shard.NewGraph(listing("a", "b<a", "c<a", "d<c,b", "e<gone,a"))
	for id, want := range map[string]string{"a": "", "b": "a", "d": "c b", "e": "a", "gone": "", "unknown": ""} {
		if got := strings.Join(g.Parents(id), " "); got != want {
			t.Errorf("the parents of %s are %q, want %q", id, got, want)
		}
	}
	for id, want := range map[string]string{"a": "b c e", "b": "d", "c": "d", "d": "", "gone": "", "unknown": ""} {
		if got := strings.Join(g.Children(id), " "); got != want {
			t.Errorf("the children of %s are %q, want %q", id, got, want)
		}
	}
	if s, ok := g.Shard("e"); !ok || !slices.Equal(s.Parents, []string{"gone", "a"}) {
		t.Errorf("shard e is %+v, %v", s, ok)
	}
	if s, ok := g.Shard("gone"); ok {
		t.Errorf("there is a shard %+v", s)
	}
}

// TestGraphOfAnyStream checks random lineages. For any order of the listing, ancestors come first.
// Reading shards as they become ready reaches all of them.
func TestGraphOfAnyStream(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		var shards []shard.Shard
		for i := range rng.IntN(30) {
			s := shard.Shard{ID: fmt.Sprint(rng.IntN(20), "-", i)}
			for range rng.IntN(3) {
				if i > 0 {
					s.Parents = append(s.Parents, shards[rng.IntN(i)].ID)
				} else {
					s.Parents = append(s.Parents, "gone")
				}
			}
			shards = append(shards, s)
		}
		g := shard.NewGraph(shards)
		order := g.Ordered()
		for i, id := range order {
			for _, p := range g.Parents(id) {
				if slices.Index(order, p) > i {
					t.Fatalf("seed %d: %s comes before its parent %s in %v", seed, id, p, order)
				}
			}
		}
		rng.Shuffle(len(shards), func(i, j int) { shards[i], shards[j] = shards[j], shards[i] })
		if again := shard.NewGraph(shards).Ordered(); !slices.Equal(order, again) {
			t.Fatalf("seed %d: the order depends on that of the listing: %v, %v", seed, order, again)
		}
		done := map[string]bool{}
		isDone := func(id string) bool { return done[id] }
		for ready := g.Ready(isDone); len(ready) > 0; ready = g.Ready(isDone) {
			id := ready[rng.IntN(len(ready))]
			for _, p := range g.Parents(id) {
				if !done[p] {
					t.Fatalf("seed %d: %s is ready before its parent %s is done", seed, id, p)
				}
			}
			done[id] = true
		}
		if len(done) != len(shards) {
			t.Fatalf("seed %d: %d of %d shards were ever ready", seed, len(done), len(shards))
		}
	}
}
