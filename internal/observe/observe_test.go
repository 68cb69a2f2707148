package observe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func key(id string) lease.Key { return lease.Key{Stream: "orders", Shard: id} }

func TestWhyNobodyReadsAShard(t *testing.T) {
	t.Parallel()
	worker := func(change func(*lease.Worker)) lease.Worker {
		w := lease.Worker{Session: "s1", Name: "w1"}
		change(&w)
		return w
	}
	nothing := func(*lease.Worker) {}
	owned := lease.Lease{Key: key("a"), Owner: "s1"}
	for name, c := range map[string]struct {
		of      lease.Lease
		workers []lease.Worker
		silent  string
		paused  []string
		want    health.Reason
	}{
		"its owner lives": {owned, []lease.Worker{worker(nothing)}, "", nil, health.NoReason},
		"its owner lives, while it is being paused": {owned, []lease.Worker{worker(nothing)}, "", []string{""}, health.NoReason},
		"its owner has ended":                       {owned, []lease.Worker{worker(func(w *lease.Worker) { w.Ended = true })}, "", nil, health.NoWorker},
		"its owner is silent":                       {owned, []lease.Worker{worker(nothing), {Session: "s2"}}, "s1", nil, health.OwnerSilent},
		"its owner was forgotten":                   {owned, []lease.Worker{{Session: "s2"}}, "", nil, health.OwnerSilent},
		"nobody lives":                              {lease.Lease{Key: key("a")}, nil, "", nil, health.NoWorker},
		"the application is paused":                 {lease.Lease{Key: key("a")}, nil, "", []string{""}, health.Paused},
		"its stream is paused":                      {lease.Lease{Key: key("a")}, nil, "", []string{"orders"}, health.Paused},
		"another stream is paused":                  {lease.Lease{Key: key("a")}, nil, "", []string{"bills"}, health.NoWorker},
		"its parent is unfinished":                  {lease.Lease{Key: key("a"), Parents: []string{"b"}}, []lease.Worker{worker(nothing)}, "", nil, health.WaitsForParents},
		"its parent is unknown":                     {lease.Lease{Key: key("a"), Parents: []string{"z"}}, []lease.Worker{worker(nothing)}, "", nil, health.Unassigned},
		"the only worker is full":                   {lease.Lease{Key: key("a")}, []lease.Worker{worker(func(w *lease.Worker) { w.MaxLeases = 1 })}, "", nil, health.NoRoom},
		"the only worker is drained":                {lease.Lease{Key: key("a")}, []lease.Worker{worker(func(w *lease.Worker) { w.Drain = true })}, "", nil, health.NoRoom},
		"no live worker reads its stream":           {lease.Lease{Key: key("a")}, []lease.Worker{worker(func(w *lease.Worker) { w.Streams = "1:bills" })}, "", nil, health.NoReader},
		"the only worker that reads its stream is silent": {lease.Lease{Key: key("a")}, []lease.Worker{
			worker(func(w *lease.Worker) { w.Streams = "1:bills" }), {Session: "s2", Streams: "1:orders"},
		}, "s2", nil, health.NoReader},
		"no live worker reads its paused stream": {lease.Lease{Key: key("a")}, []lease.Worker{worker(func(w *lease.Worker) { w.Streams = "1:bills" })}, "", []string{"orders"}, health.Paused},
		"its owner is silent, and another worker has room": {owned, []lease.Worker{
			worker(nothing), {Session: "s2", MaxLeases: 1},
		}, "s1", nil, health.OwnerSilent},
		"its owner is silent, and the others have no room": {owned, []lease.Worker{
			worker(nothing), {Session: "s2", Drain: true},
		}, "s1", nil, health.NoRoom},
		"its owner is silent, and the others read other streams": {owned, []lease.Worker{
			worker(nothing), {Session: "s2", Streams: "1:bills"},
		}, "s1", nil, health.NoReader},
		"it is about to be given away": {lease.Lease{Key: key("a")}, []lease.Worker{worker(nothing)}, "", nil, health.Unassigned},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := observe.Shards(observe.Look{
				At: noon, Silent: map[string]bool{c.silent: true},
				View: lease.View{Leases: []lease.Lease{c.of, {Key: key("b"), Owner: "s1"}}, Workers: c.workers, Paused: c.paused},
			})[c.of.Key]
			if seen.Reason != c.want || (seen.Owner != "") != (c.want == health.NoReason) {
				t.Errorf("%v, owner %q; want %v", seen.Reason, seen.Owner, c.want)
			}
		})
	}
}

func TestWhatAWorkerSaysOfItsShardIsHeard(t *testing.T) {
	t.Parallel()
	view := lease.View{
		Leases: []lease.Lease{{Key: key("a"), Owner: "s1"}, {Key: key("b"), Owner: "s1"}, {Key: key("c"), Owner: "s2"}, {Key: key("d"), Owner: "s1"}},
		Workers: []lease.Worker{{Session: "s1", Name: "w1", Troubles: []lease.Trouble{
			{State: lease.CutOff, For: time.Minute, Why: "no route"},
			{Key: key("a"), State: "in the handler", For: 3 * time.Minute, Why: "it hangs"},
			{Key: key("d"), State: health.ReadFailed.Reported(), For: 12 * time.Second, Why: "EOF"},
		}}, {Session: "s2", Troubles: []lease.Trouble{
			{Key: key("c"), State: lease.GaveUp, For: time.Hour}, {State: lease.OnPurpose, For: time.Hour, Why: "by an open window"},
		}}},
	}
	seen := observe.Shards(observe.Look{At: noon, View: view})
	if a := seen[key("a")]; !a.Complains || a.Reason != health.InHandler || !a.Since.Equal(noon.Add(-3*time.Minute)) || a.Err != "it hangs" {
		t.Errorf("%+v", a)
	}
	if b := seen[key("b")]; !b.Complains || b.Err != "no route" {
		t.Errorf("%+v", b)
	}
	if d := seen[key("d")]; d.Reason != health.CutOff || d.Err != "no route" || !d.Since.Equal(noon.Add(-time.Minute)) {
		t.Errorf("the worker has been cut off for longer than it has had the shard: %+v", d)
	}
	if c := seen[key("c")]; c.Complains || c.Held != "by an open window" {
		t.Errorf("giving records up is no complaint, nor is holding a checkpoint: %+v", c)
	}
}

func TestAWatchJudgesByWhatItSawBefore(t *testing.T) {
	t.Parallel()
	var w observe.Watch
	for i := range 11 {
		at := noon.Add(time.Duration(i) * 30 * time.Second)
		position, err := shard.After("5" + strings.Repeat("0", i))
		if err != nil {
			t.Fatal(err)
		}
		view := lease.View{Workers: []lease.Worker{{Session: "s1", Name: "w1", Heartbeats: uint64(i)}}, Leases: []lease.Lease{
			{Key: key("a"), Owner: "s1", Position: position}, {Key: key("b"), Owner: "s1", Position: shard.Oldest}, {Key: key("c"), Position: shard.End},
		}}
		if i < 5 {
			view.Leases = append(view.Leases, lease.Lease{Key: key("gone")})
		}
		w.Add(observe.Look{At: at, View: view, Lags: map[lease.Key]observe.Lag{key("a"): {Behind: time.Hour - time.Duration(i)*time.Minute}, key("b"): {Behind: time.Hour}}})
	}
	sum, all := w.Judge(noon.Add(5 * time.Minute))
	if len(all) != 3 || all[0].Name != "b" || all[0].State != health.Stalled || all[1].State != health.CatchingUp || all[2].State != health.OK {
		t.Errorf("%+v", all)
	}
	if sum.State != health.Stalled || !strings.HasPrefix(sum.Sentence, "stalled: b of orders, 1 h 0 min behind") {
		t.Error(sum.Sentence)
	}
}

func TestAWorkerThatDoesNotBeatIsSilentAfterItsFailoverTime(t *testing.T) {
	t.Parallel()
	var w observe.Watch
	view := lease.View{
		Workers: []lease.Worker{{Session: "s1", Name: "w1", Heartbeats: 7, Times: lease.Times{Heartbeat: time.Second, Failover: 10 * time.Second}}, {Session: "s2", Heartbeats: 1}},
		Leases:  []lease.Lease{{Key: key("a"), Owner: "s1"}},
	}
	for i, want := range []health.State{health.NotKnown, health.NotKnown, health.Unread, health.Unread, health.NotKnown} {
		at := noon.Add(time.Duration(i) * 5 * time.Second)
		view.Workers[1].Heartbeats++
		if i == 4 {
			view.Workers[0].Heartbeats++
		}
		w.Add(observe.Look{At: at, View: view})
		if sum, _ := w.Judge(at); sum.State != want {
			t.Errorf("after %v: %s", at.Sub(noon), sum.Sentence)
		}
		if living := w.Group().Living; (living == 2) != (want == health.NotKnown) {
			t.Errorf("after %v: %d live", at.Sub(noon), living)
		}
	}
}
