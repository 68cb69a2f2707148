package consume

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/lease"
)

func TestWaitsAreLoggedWithPauses(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	type step struct {
		after  time.Duration // since the begin
		why    string
		atOnce bool
		say    bool
	}
	for name, steps := range map[string][]step{
		"a short wait": {{0, "a", false, false}, {9 * time.Second, "a", false, false}, {10 * time.Second, "", false, false}, {11 * time.Second, "a", false, false}},
		"a long wait": {{0, "a", false, false}, {10 * time.Second, "a", false, true}, {60 * time.Second, "a", false, false}, {70 * time.Second, "a", false, true},
			{189 * time.Second, "a", false, false}, {190 * time.Second, "a", false, true}},
		"at once":             {{0, "a", true, true}, {time.Second, "a", true, false}, {time.Minute, "a", true, true}},
		"another reason":      {{0, "a", true, true}, {time.Second, "b", false, false}, {2 * time.Second, "c", true, true}, {10 * time.Minute, "b", false, true}},
		"it has work between": {{0, "a", true, true}, {time.Second, "", false, false}, {2 * time.Second, "a", true, true}},
	} {
		var w waiting
		for _, s := range steps {
			if got := w.see(s.why, s.atOnce, begin.Add(s.after)); got != s.say {
				t.Errorf("%s: after %v: %v, want %v", name, s.after, got, s.say)
			}
		}
	}
}

func TestStuckShards(t *testing.T) {
	t.Parallel()
	fails := weir.ShardStatus{Stream: "s", Shard: "2", Epoch: 1, Err: errors.New("no such stream")}
	other := weir.ShardStatus{Stream: "s", Shard: "1", Epoch: 1, Err: errors.New("no such stream")}
	works := weir.ShardStatus{Stream: "s", Shard: "3", Epoch: 1}
	for _, c := range []struct {
		shards  []weir.ShardStatus
		handled string
		want    string
	}{
		{nil, "", ""},
		{[]weir.ShardStatus{fails}, "", "shard s/2 cannot go on: no such stream"},
		{[]weir.ShardStatus{fails, other}, "", "2 shards cannot go on, first s/1: no such stream"},
		{[]weir.ShardStatus{fails, works}, "", ""},
		{[]weir.ShardStatus{fails, works}, "3", "shard s/2 cannot go on: no such stream"},
	} {
		own := map[term]bool{}
		for _, s := range c.shards {
			own[term{lease.Key{Stream: s.Stream, Shard: s.Shard}, s.Epoch}] = s.Shard == c.handled
		}
		if got := hindrance(c.shards, own); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestShardsWithoutRoom(t *testing.T) {
	t.Parallel()
	keys := []lease.Key{{Stream: "s", Shard: "3"}, {Stream: "s", Shard: "4"}}
	for name, c := range map[string]struct {
		most, live int
		why        string
		tell       bool
	}{
		"full":               {2, 1, noOwner, true},
		"room for one more":  {3, 1, noOwner, false},
		"no limit":           {0, 1, noOwner, false},
		"no worker is alive": {2, 0, noOwner, false},
		"for another reason": {2, 1, "waits for its parent 1", false},
	} {
		v := lease.View{Workers: []lease.Worker{{Session: "a", MaxLeases: c.most}}, Leases: []lease.Lease{{Owner: "a"}, {Owner: "a"}, {}}}
		text, tell := owing(keys, c.why, v, func(*lease.Worker) bool { return c.live > 0 })
		if tell != c.tell || strings.Contains(text, "--max-leases") != c.tell || !strings.HasPrefix(text, fmt.Sprintf("shard s/3 %s, and 1 more shard", c.why)) {
			t.Errorf("%s: %v, %q", name, tell, text)
		}
	}
}
