package group

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/shardlag"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func exampleView(t *testing.T) lease.View {
	key := func(id string) lease.Key { return lease.Key{Stream: "s", Shard: id} }
	return lease.View{
		Leader: lease.Leader{Session: "S1", Epoch: 7},
		Workers: []lease.Worker{
			{Session: "S2", Name: "beta", Weight: 1}, {Session: "S1", Name: "alpha", Weight: 2, MaxLeases: 5},
			{Session: "S3", Name: "gamma", Ended: true}, {Session: "S4", Name: "delta", Leaving: true}, {Session: "S5"},
		},
		Leases: []lease.Lease{
			{Key: key("shardId-3"), Parents: []string{"shardId-1"}, Epoch: 1, Position: shard.Oldest},
			{Key: key("shardId-1"), Epoch: 4, Owner: "S1", Heir: "S2", Position: clitest.Position(t, "123")},
			{Key: key("shardId-0"), Epoch: 9, Position: shard.End},
			{Key: key("shardId-2"), Parents: []string{"shardId-0"}, Epoch: 2, Owner: "S2", Position: clitest.Position(t, "99+3")},
			{Key: key("shardId-4"), Epoch: 3, Revoked: "S3", Position: shard.Oldest},
			{Key: key("shardId-5"), Epoch: 1, Position: shard.Latest},
			{Key: key("shardId-6"), Epoch: 2, Owner: "gone", Position: shard.Oldest},
			{Key: key("shardId-7"), Epoch: 2, Owner: "S3", Heir: "S2", Position: shard.Oldest},
			{Key: key("shardId-8"), Epoch: 3, Revoked: "S4", Position: shard.Oldest},
			{Key: key("shardId-9"), Parents: []string{"shardId-unknown"}, Epoch: 1, Position: shard.Oldest},
			{Key: lease.Key{Stream: "other", Shard: "shardId-0"}, Epoch: 2, Owner: "S1", Position: shard.Oldest},
		},
	}
}

func TestDescribe(t *testing.T) {
	lags := map[lease.Key]shardlag.Lag{
		{Stream: "s", Shard: "shardId-1"}: {Age: 1500 * time.Millisecond},
		{Stream: "s", Shard: "shardId-2"}: {Err: errors.New("throttled")},
		{Stream: "s", Shard: "shardId-3"}: {Age: 3 * time.Hour},
		{Stream: "s", Shard: "shardId-4"}: {Age: 20 * time.Millisecond},
	}
	v := exampleView(t)
	v.Paused = []string{"s"}
	v.PauseNotes = map[string]string{"s": lease.PauseNote{By: "ada@laptop", At: time.Date(2026, 1, 2, 14, 3, 0, 0, time.UTC)}.String()}
	v.Leases[1].Load, v.Leases[3].Load, v.Leases[3].Heir = lease.LoadOf(1<<20), lease.LoadOf(1), lease.Nobody
	v.Workers[0].Drain = true
	v.Workers[0].Times = lease.Times{Heartbeat: 1500 * time.Millisecond, Failover: time.Minute, Handoff: time.Minute}
	v.Workers[1].Times = lease.Times{Heartbeat: 2 * time.Second, Failover: time.Minute, Handoff: time.Minute}
	v.Workers[1].Troubles = []lease.Trouble{{Key: v.Leases[1].Key, State: "in the handler", For: 3 * time.Minute, Why: "it does\nnot return"}, {State: lease.CutOff, For: 2 * time.Minute, Why: "no route"},
		{Key: v.Leases[1].Key, State: "in the handler", For: time.Minute, Why: "no", Failing: lease.Failing{At: "49+2", KeyHash: "ab12cd34", Records: 1, Attempts: 12, Held: lease.HeldRate, GivenUp: 1}},
		{Key: v.Leases[1].Key, State: "in the handler", For: time.Minute, Why: "no", Failing: lease.Failing{At: "49", Records: 7, Attempts: 1, Held: "of a later version"}},
		{Key: v.Leases[1].Key, State: "letters cannot be put", For: time.Minute, Why: "no", Failing: lease.Failing{Letters: true}}}
	d := describe("billing", "s", v, map[string]bool{"S1": true}, 3*time.Second, lags)
	want := `Application billing; alpha leads (epoch 7). Paused: s (by ada@laptop at 14:03 UTC on 2 January).

WORKER  STATE             LEASES  LOAD        HEARTBEAT  FAILOVER  SESSION
S5      silent            0       –           1 s        5 s       S5
alpha   alive             2       ~1.0 MiB/s  2 s        60 s      S1
beta    silent, draining  0       –           1.5 s      60 s      S2
delta   silent            0       –           1 s        5 s       S4
gamma   ended             0       –           1 s        5 s       S3

alpha says: 1 of s in the handler for 3 min: it does not return
alpha says: itself cut off for 2 min: no route
alpha says: 1 of s in the handler for 60 s: no (record 49+2, hash of its key ab12cd34, 12 calls failed, not dead-lettered yet, because the limit of dead letters per minute is reached, 1 record dead-lettered lately)
alpha says: 1 of s in the handler for 60 s: no (7 records from 49 on, 1 call failed, not dead-lettered yet: of a later version)
alpha says: 1 of s dead letters cannot be stored for 60 s: no

STREAM  SHARD  STATE     OWNER         EPOCH  LAG    LOAD        CHECKPOINT
s       0      finished  -             9      -      –           end
s       1      moving    alpha → beta  4      1.5 s  ~1.0 MiB/s  123
s       2      paused    beta          2      ?      –           99+3
s       3      paused    -             1      3 h    –           oldest
s       4      paused    -             3      20 ms  –           oldest
s       5      paused    -             1      ?      –           latest
s       6      paused    -             2      ?      –           oldest
s       7      paused    -             2      ?      –           oldest
s       8      revoked   -             3      ?      –           oldest
s       9      paused    -             1      ?      –           oldest
`
	if got := d.text(0, 80, cli.Unbroken); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	states := map[string]string{"shardId-3": "waiting", "shardId-4": "free", "shardId-5": "free", "shardId-6": "free", "shardId-7": "free", "shardId-8": "revoked", "shardId-9": "waiting"}
	for _, l := range describe("billing", "s", exampleView(t), nil, 0, nil).Leases {
		if want := states[l.Shard]; want != "" && l.State != want {
			t.Errorf("without a pause %s is %s, want %s", l.Shard, l.State, want)
		}
	}
}

func TestDescribeTellsWhatHoldsACheckpoint(t *testing.T) {
	for name, of := range map[string]lease.Key{"of one shard": {Stream: "s", Shard: "shardId-2"}, "of several": {}} {
		v := exampleView(t)
		v.Workers[0].Troubles = []lease.Trouble{{Key: of, State: lease.OnPurpose, For: 3 * time.Minute, Why: "by an open window"}}
		lags := map[lease.Key]shardlag.Lag{{Stream: "s", Shard: "shardId-1"}: {Age: time.Minute}, {Stream: "s", Shard: "shardId-2"}: {Age: 3 * time.Minute}}
		text := describe("billing", "s", v, nil, 0, lags).text(0, 80, cli.Unbroken)
		if strings.Count(text, "held by an open window") != 1 || !strings.Contains(text, "3 min, held by an open window") || strings.Contains(text, "says:") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

// A dead worker is not shown as the leader, even if the store still names it.
func TestADeadLeaderDoesNotLead(t *testing.T) {
	for name, c := range map[string]struct {
		session string
		beating map[string]bool
		want    string
	}{
		"it beats":                     {"S1", map[string]bool{"S1": true}, "alpha leads (epoch 7)"},
		"nobody looked":                {"S1", nil, "alpha leads (epoch 7)"},
		"it gives up its leases":       {"S4", map[string]bool{"S4": true}, "delta leads (epoch 7)"},
		"it died while it stopped":     {"S4", map[string]bool{}, "no worker leads: delta led (epoch 7) and is silent"},
		"it is silent":                 {"S1", map[string]bool{"S2": true}, "no worker leads: alpha led (epoch 7) and is silent"},
		"it has ended":                 {"S3", map[string]bool{"S2": true}, "no worker leads: gamma led (epoch 7) and has ended"},
		"the store has forgotten it":   {"S9", map[string]bool{"S2": true}, "no worker leads: S9 led (epoch 7) and is gone"},
		"the leader said that it goes": {"", map[string]bool{"S2": true}, "no worker leads"},
	} {
		v := exampleView(t)
		v.Leader.Session = c.session
		d := describe("billing", "s", v, c.beating, 3*time.Second, nil)
		if first, _, _ := strings.Cut(d.text(0, 80, cli.Unbroken), "\n"); first != "Application billing; "+c.want+"." {
			t.Errorf("%s: %s", name, first)
		}
		leads := slices.ContainsFunc(d.Workers, func(w workerInfo) bool { return w.Leader })
		if leads != (d.Leader != nil) || leads == strings.Contains(c.want, "no worker leads") {
			t.Errorf("%s: the leader is %+v, the workers %+v", name, d.Leader, d.Workers)
		}
	}
}

func TestDescribeWithoutAnything(t *testing.T) {
	d := describe("a", "", lease.View{Workers: []lease.Worker{{Session: "S"}}}, nil, 0, nil)
	if len(d.Workers) != 1 || d.Workers[0].State != "unknown" || d.Leader != nil {
		t.Errorf("described as %+v", d)
	}
	slow := lease.Worker{Session: "S", Times: lease.Times{Heartbeat: time.Minute, Failover: time.Hour, Handoff: time.Hour}}
	d = describe("a", "", lease.View{Workers: []lease.Worker{slow}}, map[string]bool{}, 10*time.Second, nil)
	if w := d.Workers[0]; w.State != "unknown" || w.Beat != 60_000 || w.Failover != 3_600_000 || w.Handoff != 3_600_000 {
		t.Errorf("a worker that sends heartbeats less often than it was looked at is described as %+v", w)
	}
	if text := describe("a", "", lease.View{}, nil, 0, nil).text(0, 80, cli.Unbroken); !strings.Contains(text, "no worker leads") || !strings.Contains(text, "none") {
		t.Errorf("described as %s", text)
	}
}

// A worker that died holds, handles and reports nothing, even if its rows are still there.
func TestADeadWorkerHasNothing(t *testing.T) {
	for name, ended := range map[string]bool{"it is silent": false, "it has ended": true} {
		v := exampleView(t)
		v.Leases[1].Load = lease.LoadOf(1 << 20)
		v.Workers[1].Leaving, v.Workers[1].Ended = true, ended
		v.Workers[1].Troubles = []lease.Trouble{
			{Key: v.Leases[1].Key, State: "in the handler", For: time.Minute}, {State: lease.OnPurpose, Why: "by an open window"},
		}
		d := describe("billing", "s", v, map[string]bool{"S2": true}, 3*time.Second, nil)
		text := d.text(0, 80, cli.Unbroken)
		for _, wrong := range []string{"leaving", "alpha leads", "moving", "MiB/s", "says:", "open window"} {
			if strings.Contains(text, wrong) {
				t.Errorf("%s, and it says %q:\n%s", name, wrong, text)
			}
		}
		if l := d.Leases[slices.IndexFunc(d.Leases, func(l leaseInfo) bool { return l.Shard == "shardId-1" })]; l.Load != nil || (l.State == "unread") == ended {
			t.Errorf("%s: %+v", name, l)
		}
	}
}
