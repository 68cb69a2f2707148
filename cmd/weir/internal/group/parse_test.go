package group

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/lease"
)

func TestParseTo(t *testing.T) {
	for s, want := range map[string]string{
		"oldest": "oldest", "latest": "latest", "2026-01-31T12:00:00Z": "2026-01-31T12:00:00.000Z", "17": "17", "17+3": "17+3",
		"0": "0", "2026-01-31T13:00:00+01:00": "2026-01-31T12:00:00.000Z",
	} {
		if w, ago, err := parseTo(s); err != nil || ago != nil || w.To.String() != want {
			t.Errorf("%s is %s, %v, %v", s, w.To, ago, err)
		}
	}
	for s, want := range map[string]time.Duration{"15m": 15 * time.Minute, "0s": 0, "1h30m": 90 * time.Minute} {
		if w, ago, err := parseTo(s); err != nil || ago == nil || *ago != want || !w.To.IsZero() {
			t.Errorf("%s is %s, %v, %v", s, w.To, ago, err)
		}
	}
	for _, s := range []string{"", "end", "newest", "-15m", "yesterday", "2026-01-31", "017", "17+", "+3"} {
		var usage cli.UsageError
		if w, _, err := parseTo(s); !errors.As(err, &usage) {
			t.Errorf("%q is %s, %v, want a wrong usage", s, w.To, err)
		}
	}
}

func TestSessionsOf(t *testing.T) {
	v := lease.View{Workers: []lease.Worker{
		{Session: "S2", Name: "web"}, {Session: "S1", Name: "web"}, {Session: "S3", Name: "S1"}, {Session: "S4", Name: "old", Ended: true},
	}}
	for worker, want := range map[string]string{"web": "S1, S2", "S1": "S1", "S3": "S3"} {
		if got, err := sessionsOf("a", v, worker); err != nil || cli.List(got) != want {
			t.Errorf("%s is %v, %v, want %s", worker, got, err, want)
		}
	}
	for _, worker := range []string{"old", "S4", "none"} {
		if got, err := sessionsOf("a", v, worker); err == nil || !strings.Contains(err.Error(), "there is S1, web") {
			t.Errorf("%s is %v, %v", worker, got, err)
		}
	}
}

// A plan names workers instead of sessions. It also says who will carry it out.
func TestPlanReport(t *testing.T) {
	v := exampleView(t)
	v.Leases = v.Leases[1:6]
	v.Workers[0].Drain = true
	r := planOf("a", v, lease.Facts{Dead: map[string]uint64{"S1": 0}})
	text := r.text()
	for _, want := range []string{"  1. end alpha: it has sent no heartbeat for the failover time\n", "move s/shardId-2 from beta to S5: its worker is drained\n", "4 actions; there is no leader now: the next leader does this.\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q", text, want)
		}
	}
	for name, c := range map[string]struct {
		change func(*lease.View)
		want   string
	}{
		"no worker":  {func(v *lease.View) { v.Workers = nil }, "no worker runs, so the 4 shards that are not finished are not read"},
		"no lease":   {func(v *lease.View) { v.Leases = nil }, "there is no lease yet"},
		"all done":   {func(v *lease.View) { v.Leases = v.Leases[1:2] }, "every lease is finished"},
		"a leader":   {func(*lease.View) {}, "the leader does this with its next look"},
		"two alike":  {func(v *lease.View) { v.Workers[0].Name = "alpha" }, "the leader does this with its next look"},
		"all paused": {func(v *lease.View) { v.Paused = []string{""}; v.Leases = v.Leases[3:4] }, "the application is paused"},
	} {
		t.Run(name, func(t *testing.T) {
			v := exampleView(t)
			v.Leases = v.Leases[1:6]
			v.Workers = v.Workers[:2]
			c.change(&v)
			r := planOf("a", v, lease.Facts{})
			if r.Note != c.want {
				t.Errorf("%q, want %q; %s", r.Note, c.want, r.text())
			}
			if name == "two alike" && !strings.Contains(r.text(), "alpha (S1)") {
				t.Errorf("two workers of one name are not told apart: %s", r.text())
			}
		})
	}
}
