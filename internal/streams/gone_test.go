package streams

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

// The error about a departed shard contains its children from the listing, with both parents.
func TestAShardThatIsGoneNamesItsChildren(t *testing.T) {
	for _, left := range []time.Duration{48 * time.Hour, 0} {
		inBubble(t, kinesistest.Config{}, func(t *testing.T, srv *kinesistest.Server) {
			srv.CreateStream("three", 3)
			open := srv.OpenShards("three")
			split, low, high := open[0], open[1], open[2]
			a, b := srv.Split("three", split)
			c := srv.Merge("three", low, high)
			time.Sleep(left)
			for id, want := range map[string][]string{split: {a, b}, low: {c}, high: {c}} {
				err := Gone(t.Context(), srv.Client(), Stream{Name: "three"}, id)
				if left == 0 {
					if err != nil {
						t.Errorf("%s is still there: %v", id, err)
					}
					continue
				}
				var gone *GoneError
				if !errors.As(err, &gone) || !errors.Is(err, ErrNoShard) || gone.Stream != "three" || gone.Shard != id {
					t.Fatalf("%s: %v", id, err)
				}
				var got []string
				for _, k := range gone.Children {
					got = append(got, k.ID)
					if k.ID == c && !slices.Equal(k.Parents, []string{low, high}) {
						t.Errorf("the parents of %s: %q", c, k.Parents)
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("the children of %s: %q, want %q", id, got, want)
				}
			}
		})
	}
}

func TestChildrenInAListing(t *testing.T) {
	some := func(n int) (all []shard.Shard) {
		for i := range n {
			all = append(all, shard.Shard{ID: fmt.Sprint(i), Parents: []string{"other", "p"}})
		}
		return all
	}
	for name, c := range map[string]struct {
		listed []shard.Shard
		want   int
	}{
		"none":                           {nil, 0},
		"of others":                      {[]shard.Shard{{ID: "p"}, {ID: "a", Parents: []string{"q", "pp"}}}, 0},
		"one parent, and the other":      {[]shard.Shard{{ID: "a", Parents: []string{"p"}}, {ID: "b", Parents: []string{"q", "p"}}}, 2},
		"as many as there may be":        {some(100), 100},
		"more than a report may contain": {some(101), 0},
	} {
		if got := childrenOf("p", c.listed); len(got) != c.want {
			t.Errorf("%s: %d children, want %d", name, len(got), c.want)
		}
	}
}
