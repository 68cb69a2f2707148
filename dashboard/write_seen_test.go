package dashboard

import (
	"maps"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func stepsOf(ids ...string) (steps []change.Step) {
	for i, id := range ids {
		k := lease.Key{Stream: "a b\n", Shard: id}
		a := lease.Action{Kind: lease.Move, Key: k, Epoch: uint64(i)}
		if i == 0 {
			a = lease.Action{Kind: lease.Create}
		}
		steps = append(steps, change.Step{Key: k, To: shard.Oldest, Actions: []lease.Action{a}})
	}
	return steps
}

func TestWhatAFormShowsComesBack(t *testing.T) {
	t.Parallel()
	steps := append(stepsOf("0", "x y", "%2A;"), change.Step{Key: lease.Key{Stream: "s", Shard: "stays"}})
	for _, ending := range []string{"\n", "\r\n"} {
		seen, err := parseSteps(strings.ReplaceAll(stepsSeen(steps), "\n", ending))
		if err != nil || len(seen) != 3 {
			t.Fatalf("%v, %v", seen, err)
		}
		if said := stepsChanged(seen, steps, nil); len(said) != 0 {
			t.Errorf("it says %q", said)
		}
		now := stepsOf("0", "x y")
		now[1].Actions[0].Epoch = 4
		said := stepsChanged(seen, now, []lease.Lease{{Key: now[1].Key, Epoch: 4, Owner: "s1"}})
		if len(said) != 2 || !strings.Contains(strings.Join(said, " "), "at epoch 1 and is at epoch 4 now, owned by session s1") {
			t.Errorf("it says %q", said)
		}
	}
	for _, bad := range []string{"1", "x oldest s 0", "1 oldest s 0 1", "1 oldest %zz 0", "1 oldest s %zz", "-1 oldest s 0", "\n", "18446744073709551616 oldest s 0"} {
		if seen, err := parseSteps(bad); err == nil {
			t.Errorf("%q is %v", bad, seen)
		}
	}
	if pausesSeen([]string{"", "a;b"}) == pausesSeen([]string{"", "a", "b"}) {
		t.Error("two sets of what is paused look the same")
	}
}

func FuzzSeen(f *testing.F) {
	f.Add(stepsSeen(stepsOf("0", "1")))
	f.Add("1 oldest s 0\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		seen, err := parseSteps(text)
		if err != nil {
			return
		}
		if again, err := parseSteps(text); err != nil || !maps.Equal(seen, again) {
			t.Errorf("%q is %v and %v, %v", text, seen, again, err)
		}
		if said := stepsChanged(seen, nil, nil); len(said) != len(seen) {
			t.Errorf("%d leases that do not move any more are %q", len(seen), said)
		}
	})
}
