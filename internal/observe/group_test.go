package observe_test

import (
	"testing"

	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestAGroupCountsWhatLives(t *testing.T) {
	t.Parallel()
	of := func(id, owner string) lease.Lease {
		return lease.Lease{Key: key(id), Owner: owner, Load: lease.LoadOf(40_000)}
	}
	end := of("e", "")
	end.Position = shard.End
	g := observe.GroupOf(lease.View{
		Leader: lease.Leader{Session: "dead"}, Paused: []string{"bills"},
		Workers: []lease.Worker{{Session: "s1"}, {Session: "dead"}, {Session: "over", Ended: true}},
		Leases: []lease.Lease{
			of("a", "s1"), of("b", "s1"), of("c", "dead"), of("d", "over"), end, of("f", "forgotten"), of("g", ""),
			{Key: lease.Key{Stream: "bills", Shard: "a"}},
		},
	}, map[string]bool{"dead": true})
	orders, bills := observe.Shares{Held: 2, Unheld: 4}, observe.Shares{Unheld: 1, Paused: true}
	if g.Living != 1 || g.Leader != "" || g.Open != 7 || g.Held != 2 || g.Finished != 1 || g.Paused || g.Streams["orders"] != orders || g.Streams["bills"] != bills {
		t.Errorf("%+v", g)
	}
	if g.Holder(key("a")) != "s1" || g.Holder(key("c")) != "" || !g.Lives("s1") || g.Lives("dead") || g.Lives("over") {
		t.Errorf("%+v", g)
	}
	measured := of("a", "s1")
	measured.Rate, measured.Load = lease.Measured(40_243)
	for what, rate := range map[string][2]string{
		"a shard that is held":  {g.ShardRate(of("a", "s1")), "~45 KiB/s"},
		"one of a dead worker":  {g.ShardRate(of("c", "dead")), "–"},
		"one that is finished":  {g.ShardRate(end), "–"},
		"one without a report":  {g.ShardRate(lease.Lease{Key: key("a")}), "not known"},
		"a measured one":        {g.ShardRate(measured), "39 KiB/s"},
		"a worker of two":       {g.WorkerRate("s1"), "~91 KiB/s"},
		"a dead worker":         {g.WorkerRate("dead"), "–"},
		"the application":       {g.Rate(), "~91 KiB/s"},
		"one that has stopped":  {observe.GroupOf(lease.View{}, nil).Rate(), "–"},
		"two measured ones":     {observe.ThroughputOf(measured).Plus(observe.ThroughputOf(measured)).String(), "79 KiB/s"},
		"one that is not":       {observe.ThroughputOf(measured).Plus(observe.ThroughputOf(of("a", "s1"))).String(), "~85 KiB/s"},
		"measured as idle":      {observe.Throughput{}.String(), "idle"},
		"nothing per second":    {observe.Rate(0), "idle"},
		"a few":                 {observe.Rate(7.24), "~7.2 B/s"},
		"hundreds":              {observe.Rate(724), "~720 B/s"},
		"just below a kilobyte": {observe.Rate(1001), "~1.0 KiB/s"},
		"just below a megabyte": {observe.Rate(999 * 1024), "~1000 KiB/s"},
		"many":                  {observe.Rate(3 << 50), "~3070 TiB/s"},
	} {
		if rate[0] != rate[1] {
			t.Errorf("%s: %s, want %s", what, rate[0], rate[1])
		}
	}
}
