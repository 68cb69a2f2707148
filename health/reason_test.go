package health_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
)

// These are the words that workers store in their reports. Workers of other versions read these
// words, so they must not change.
var reported = map[health.Reason]string{
	health.NotStarted:         "starting",
	health.OpeningHandler:     "opening its handler",
	health.AtTip:              "at the tip",
	health.Pacing:             "pacing",
	health.Positioning:        "positioning",
	health.Requesting:         "reading",
	health.Subscribing:        "subscribing",
	health.Subscribed:         "subscribed",
	health.InHandler:          "in the handler",
	health.StoringDeadLetters: "giving records up",
	health.ReadFailed:         "backing off",
	health.HandlerFailed:      "waiting to handle again",
	health.DeadLettersFailed:  "letters cannot be put",
	health.NoOtherHandled:     lease.HeldForOutage,
	health.RateLimited:        lease.HeldRate,
	health.CutOff:             lease.CutOff,
	health.AwaitingHandler:    "waiting for the handler",
	health.AwaitingMemory:     "waiting for memory",
	health.AwaitingBatch:      "waiting for a full batch",
	health.Suspected:          "suspected of killing workers",
	health.AfterStall:         "waiting after a stall",
	health.ClosingHandler:     "closing its handler",
	health.Ended:              "read to its end",
	health.Abandoned:          "abandoned",
	health.CheckpointHeld:     lease.OnPurpose,
	health.DeadLettered:       lease.GaveUp,
}

func TestStoredWordsStay(t *testing.T) {
	t.Parallel()
	for _, r := range health.Reasons() {
		word := r.Reported()
		if word != reported[r] {
			t.Errorf("%s is reported as %q, want %q", r.Label(), word, reported[r])
		}
		if len(word) > lease.MaxStateBytes {
			t.Errorf("%q is too long for a report", word)
		}
		if word == "" {
			continue
		}
		if got := health.ReportedReason(word); got != r {
			t.Errorf("%q means %s, want %s", word, got.Label(), r.Label())
		}
		if got := health.ReportedWords(word); got != r.String() {
			t.Errorf("%q reads %q, want %q", word, got, r)
		}
	}
}

func TestAnUnknownStoredWordIsShownAsItIs(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]health.Reason{
		"":                   health.NoReason,
		"juggling records":   health.OtherReason,
		"no worker lives":    health.OtherReason, // no worker reports it
		"another reason":     health.OtherReason,
		"Waiting for memory": health.OtherReason,
	} {
		if got := health.ReportedReason(word); got != want {
			t.Errorf("%q means %s, want %s", word, got.Label(), want.Label())
		}
		if got := health.ReportedWords(word); got != word {
			t.Errorf("%q reads %q", word, got)
		}
	}
	s := health.Shard{State: health.Stalled, Reason: health.OtherReason, Detail: "juggling records"}
	if s.Why() != "juggling records" {
		t.Errorf("a shard reads %q", s.Why())
	}
}

func TestEveryReasonIsInTheTable(t *testing.T) {
	t.Parallel()
	words, labels, used := map[string]bool{}, map[string]bool{}, map[health.Activity]bool{}
	for _, r := range health.Reasons() {
		used[r.Activity()] = true
		switch {
		case r.String() == "" || words[r.String()]:
			t.Errorf("%d reads %q", r, r)
		case r.Label() == "" || labels[r.Label()] || strings.ContainsAny(r.Label(), " -"):
			t.Errorf("%d has the label %q", r, r.Label())
		case r.Activity() != health.NoActivity && r.Reported() == "":
			t.Errorf("%s describes a worker, which cannot report it", r)
		case r.Trouble() && r.Remedy() == "":
			t.Errorf("%s is trouble, and there is no remedy", r)
		}
		words[r.String()], labels[r.Label()] = true, true
	}
	for _, a := range health.Activities() {
		if !used[a] || a.String() == "" {
			t.Errorf("no reason belongs to %q", a)
		}
	}
	if len(health.Activities()) != 6 {
		t.Errorf("%d activities", len(health.Activities()))
	}
	if r := health.Reason(255); r.Label() != "other" || health.Activity(255).String() != "stopping" {
		t.Errorf("a value that is no constant is %q", r.Label())
	}
}

func TestReasonsAndActivitiesAsText(t *testing.T) {
	t.Parallel()
	for _, r := range append(health.Reasons(), health.NoReason, health.OtherReason) {
		text, err := json.Marshal(r)
		if err != nil || string(text) != `"`+r.Label()+`"` {
			t.Errorf("%s, %v", text, err)
		}
		var back health.Reason
		if err := json.Unmarshal(text, &back); err != nil || back != r {
			t.Errorf("%s became %v, %v", text, back, err)
		}
	}
	for _, a := range append(health.Activities(), health.NoActivity) {
		text, _ := a.MarshalText()
		back := health.Waiting
		if err := back.UnmarshalText(text); err != nil || back != a {
			t.Errorf("%s became %v, %v", text, back, err)
		}
	}
	if err := new(health.Reason).UnmarshalText([]byte("at the tip")); err == nil {
		t.Error("words are no label")
	}
	if err := new(health.Activity).UnmarshalText([]byte("sleeping")); err == nil {
		t.Error("sleeping is no activity")
	}
}

func TestAShardSaysWhy(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]health.Shard{
		"":                                      {},
		"in the handler":                        {Reason: health.InHandler},
		"its lag grew by 5 min in 3 min":        {Reason: health.LagGrows, Detail: "by 5 min in 3 min"},
		"its checkpoint is held by a window":    {Reason: health.CheckpointHeld, Held: "by a window"},
		"its checkpoint is held: month's end":   {Reason: health.CheckpointHeld, Held: "month's end"},
		"paused; its checkpoint is held by you": {Reason: health.Paused, Held: "by you"},
	} {
		if got := s.Why(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
