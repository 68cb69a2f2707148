package lease_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
)

func TestTimesAsText(t *testing.T) {
	for s, want := range map[string]lease.Times{
		"":                        {},
		"1s/5s/30s":               lease.DefaultTimes,
		"250ms/1.5s/24h0m0s":      {Heartbeat: 250 * time.Millisecond, Failover: 1500 * time.Millisecond, Handoff: 24 * time.Hour},
		"1ms/1ms/1ms":             {Heartbeat: time.Millisecond, Failover: time.Millisecond, Handoff: time.Millisecond},
		"1m0s/1h0m0s/23h59m59.9s": {Heartbeat: time.Minute, Failover: time.Hour, Handoff: 24*time.Hour - 100*time.Millisecond},
	} {
		if got, err := lease.ParseTimes(s); err != nil || got != want {
			t.Errorf("%q is read as %v, %v", s, got, err)
		}
		if got := want.String(); got != s {
			t.Errorf("%q is written as %q", s, got)
		}
	}
	for s, says := range map[string]string{
		"1s":                                 "three durations",
		"1s/5s":                              "three durations",
		"1s/5s/30s/1s":                       "three durations",
		"1s/5s/x":                            "x",
		"0s/5s/30s":                          "the heartbeat interval",
		"-1s/5s/30s":                         "the heartbeat interval",
		"1s/24h0m0.001s/30s":                 "the failover time",
		"1s/5s/0s":                           "the handoff timeout",
		"1s/5s/1ns":                          "whole milliseconds",
		"5s/1s/30s":                          "shorter than the heartbeat interval",
		"1000ms/5s/30s":                      "want them as 1s/5s/30s",
		" 1s/5s/30s":                         "1s/5s/30s",
		"1s/5s/+30s":                         "want them as",
		strings.Repeat("1", 61) + "s/5s/30s": "three durations",
	} {
		if got, err := lease.ParseTimes(s); err == nil || got != (lease.Times{}) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is read as %v, %v, want an error with %q", s, got, err, says)
		}
	}
}

func FuzzParseTimes(f *testing.F) {
	f.Add("1s/5s/30s")
	f.Add("1h0m0s/0s/-1ns")
	f.Add("9999999h/1e9s/")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := lease.ParseTimes(s)
		if err != nil {
			if got != (lease.Times{}) {
				t.Errorf("%q: an error and %v", s, got)
			}
			return
		}
		if got.String() != s {
			t.Errorf("%q is written as %q", s, got)
		}
		// All stored times are also valid in a report.
		r, err := lease.Report{Session: "a", Times: got}.Check()
		if err != nil || r.Times != got {
			t.Errorf("%q in a report becomes %q, %v", s, r.Times, err)
		}
	})
}

func TestTimesOfReportsAreMadeToFit(t *testing.T) {
	for name, c := range map[string]struct{ said, want lease.Times }{
		"none":                    {},
		"the defaults":            {lease.DefaultTimes, lease.DefaultTimes},
		"parts of a millisecond":  {lease.Times{Heartbeat: 1e9 + 1, Failover: 5e9 + 999_999, Handoff: 30e9}, lease.DefaultTimes},
		"no handoff":              {lease.Times{Heartbeat: 1e9, Failover: 5e9}, lease.Times{}},
		"less than a millisecond": {lease.Times{Heartbeat: 999_999, Failover: 5e9, Handoff: 30e9}, lease.Times{}},
		"more than a day":         {lease.Times{Heartbeat: 1e9, Failover: 25 * time.Hour, Handoff: 30e9}, lease.Times{}},
		"dead before it can send heartbeats again": {lease.Times{Heartbeat: 6e9, Failover: 5e9, Handoff: 30e9}, lease.Times{}},
	} {
		if r, err := (lease.Report{Session: "a", Times: c.said}).Check(); err != nil || r.Times != c.want {
			t.Errorf("%s: %v became %v, %v", name, c.said, r.Times, err)
		}
	}
}

func TestTimesOfAView(t *testing.T) {
	slow := lease.Times{Heartbeat: 10 * time.Second, Failover: 2 * time.Minute, Handoff: time.Minute}
	patient := lease.Times{Heartbeat: 2 * time.Second, Failover: time.Minute, Handoff: time.Hour}
	for name, c := range map[string]struct {
		leader  string
		workers []lease.Worker
		want    lease.Times
	}{
		"nobody":                     {"", nil, lease.DefaultTimes},
		"nobody said":                {"", []lease.Worker{{Session: "a"}}, lease.DefaultTimes},
		"the leader's":               {"a", []lease.Worker{{Session: "b", Times: slow}, {Session: "a", Times: patient}}, patient},
		"a leader that did not say":  {"a", []lease.Worker{{Session: "b", Times: slow}, {Session: "a"}}, lease.DefaultTimes},
		"without one, the longest":   {"", []lease.Worker{{Session: "b", Times: slow}, {Session: "a", Times: patient}}, lease.Times{Heartbeat: slow.Heartbeat, Failover: slow.Failover, Handoff: patient.Handoff}},
		"ended workers do not count": {"b", []lease.Worker{{Session: "b", Times: slow, Ended: true}, {Session: "a", Times: patient}}, patient},
	} {
		if got := lease.TimesOf(lease.View{Leader: lease.Leader{Session: c.leader}, Workers: c.workers}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
