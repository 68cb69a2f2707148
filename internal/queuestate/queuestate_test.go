package queuestate

import (
	"slices"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)
	healthy := Facts{
		Name: "billing", Stream: "orders", Status: "ACTIVE", DeadLetters: true, MaxReceiveCount: 20,
		Visibility: 30 * time.Second, StreamMode: "ON_DEMAND", Retention: 24 * time.Hour,
		Metrics: Metrics{At: at, Visible: 5, InFlight: 10, Received: 1000, Acknowledged: 990, Over: time.Hour},
	}
	for name, c := range map[string]struct {
		change func(*Facts)
		codes  []string
		state  string
	}{
		"healthy":               {func(*Facts) {}, nil, "consumed"},
		"without numbers":       {func(f *Facts) { f.Metrics = Metrics{Visible: Unknown, InFlight: Unknown, DeadLetters: Unknown} }, nil, "active"},
		"empty":                 {func(f *Facts) { f.Metrics = Metrics{At: at, Over: time.Hour} }, nil, "empty"},
		"being deleted":         {func(f *Facts) { f.Status = "DELETING" }, []string{"queue-deleting"}, "deleting"},
		"being created":         {func(f *Facts) { f.Status = "CREATING" }, []string{"queue-creating"}, "creating"},
		"being updated":         {func(f *Facts) { f.Status = "UPDATING" }, []string{"queue-updating"}, "consumed"},
		"no stream":             {func(f *Facts) { f.StreamMissing = true }, []string{"queue-stream-missing"}, "broken"},
		"a provisioned stream":  {func(f *Facts) { f.StreamMode = "PROVISIONED" }, []string{"queue-stream-mode"}, "broken"},
		"few receives":          {func(f *Facts) { f.MaxReceiveCount = 6 }, []string{"queue-receives-low"}, "at risk"},
		"no dead letters":       {func(f *Facts) { f.DeadLetters, f.MaxReceiveCount = false, 0 }, []string{"queue-no-dead-letters"}, "consumed"},
		"no visibility timeout": {func(f *Facts) { f.Visibility = 0 }, []string{"queue-visibility-zero"}, "at risk"},
		"dead letters":          {func(f *Facts) { f.Metrics.DeadLetters, f.Retention = 1, 48*time.Hour }, []string{"queue-dead-letters"}, "with dead letters"},
		"more dead letters": {
			func(f *Facts) { f.Metrics.DeadLetters, f.Metrics.NewDeadLetters, f.Retention = 7, 3, 48*time.Hour },
			[]string{"queue-dead-letters-grow"}, "with dead letters",
		},
		"dead letters for a day": {func(f *Facts) { f.Metrics.DeadLetters = 2 }, []string{"queue-dead-letters", "queue-retention-short"}, "with dead letters"},
		"nearly full":            {func(f *Facts) { f.Metrics.InFlight = 96_000 }, []string{"queue-in-flight-near"}, "at risk"},
		"full":                   {func(f *Facts) { f.Metrics.InFlight = 120_000 }, []string{"queue-in-flight-full"}, "full"},
		"not consumed": {
			func(f *Facts) { f.Metrics = Metrics{At: at, Visible: 3, Over: time.Hour} }, []string{"queue-not-consumed"}, "not consumed",
		},
		"spent receives": {func(f *Facts) { f.Metrics.Acknowledged = 600 }, []string{"queue-receives-spent"}, "at risk"},
		"few spent":      {func(f *Facts) { f.Metrics.Received, f.Metrics.Acknowledged = 50, 20 }, nil, "consumed"},
		"unknown numbers": {
			func(f *Facts) {
				f.Metrics, f.MetricsErr = Metrics{Visible: Unknown, InFlight: Unknown, DeadLetters: Unknown}, "no permission"
			},
			[]string{"queue-metrics-unknown"}, "active",
		},
	} {
		f := healthy
		c.change(&f)
		var codes []string
		last := Error
		for _, found := range Judge(f) {
			codes = append(codes, found.Code)
			if found.Severity < last || found.Text == "" || found.Do == "" {
				t.Errorf("%s: %+v", name, found)
			}
			last = found.Severity
		}
		if state, _ := State(f); !slices.Equal(codes, c.codes) || state != c.state {
			t.Errorf("%s: %q, %q; want %q, %q", name, codes, state, c.codes, c.state)
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	if got := plural(1, "record") + plural(120_000, "record") + Count(999); got != "1 record120,000 records999" {
		t.Error(got)
	}
	for d, want := range map[time.Duration]string{time.Hour: "1 h", 24 * time.Hour: "24 h", 48 * time.Hour: "2 d", 8760 * time.Hour: "365 d", time.Minute: "1m0s"} {
		if got := duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
