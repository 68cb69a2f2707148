package judge

import (
	"slices"
	"testing"
	"time"
)

func at(ms int64) int64 { return ms * int64(time.Millisecond) }

func TestGaps(t *testing.T) {
	journals := map[string][]Handling{
		"dead": {
			{Shard: "s0", At: at(100)}, {Shard: "s1", At: at(900)}, {Shard: "s0", At: at(950)},
			{Shard: "elsewhere", At: at(990)},
		},
		"heir": {
			{Shard: "s0", At: at(50)}, // it held the shard before
			{Shard: "s0", At: at(6000)}, {Shard: "s0", At: at(6001)},
			{Shard: "s1", At: at(7000)},
			{Shard: "s2", At: at(1200)},
		},
		"other": {{Shard: "s1", At: at(6500)}},
	}
	moment := time.Unix(0, at(1000))
	for name, c := range map[string]struct {
		got    Gap
		want   time.Duration
		shard  string
		silent []string
	}{
		"a kill counts from the kill to the last shard's first record": {
			got: GapAfter(journals, "dead", moment, []string{"s0", "s1"}), want: 5500 * time.Millisecond, shard: "s1"},
		"a stop counts from the last record of each shard": {
			got: GapBetween(journals, "dead", moment, []string{"s0", "s1"}), want: 5600 * time.Millisecond, shard: "s1"},
		"a shard without a record of the worker counts from the request": {
			got: GapBetween(journals, "dead", moment, []string{"s2"}), want: 200 * time.Millisecond, shard: "s2"},
		"a shard that nobody read since is silent": {
			got: GapAfter(journals, "dead", moment, []string{"s3", "s0", "elsewhere"}), want: 5 * time.Second, shard: "s0",
			silent: []string{"elsewhere", "s3"}},
		"a worker that held nothing left no gap": {
			got: GapAfter(journals, "dead", moment, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			if c.got.Longest != c.want || c.got.Shard != c.shard || !slices.Equal(c.got.Silent, c.silent) {
				t.Errorf("got %+v, want %v in %s, silent %v", c.got, c.want, c.shard, c.silent)
			}
			if c.got.Over() != (len(c.silent) == 0) {
				t.Errorf("Over() = %v", c.got.Over())
			}
		})
	}
}
