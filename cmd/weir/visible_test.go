package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/doctor"
	"github.com/weir-go/weir/cmd/weir/internal/shardlag"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/deadletter/sqsletters"
	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Whatever names are in a store or come from a service, they break no line of what people see and
// steer no terminal.
func TestNamesDoNothingToTheTerminal(t *testing.T) {
	const evil = "x\n\t\x1b]0;owned\a\u009b2J\r\u202e"
	v := lease.View{
		Paused: []string{evil}, Leader: lease.Leader{Session: "S1", Term: 1},
		Workers: []lease.Worker{{Session: "S1", Name: evil, Troubles: []lease.Trouble{{Key: lease.Key{Stream: evil, Shard: evil}, State: evil, Why: evil, Failing: lease.Failing{At: evil, KeyHash: evil, Held: evil}}}}, {Session: evil, Name: "b"}},
		Leases: []lease.Lease{
			{Key: lease.Key{Stream: evil, Shard: evil}, Epoch: 1, Owner: "S1", Heir: evil, Position: shard.Oldest},
			{Key: lease.Key{Stream: "s", Shard: evil}, Epoch: 1, Position: shard.Oldest},
		},
	}
	var said bytes.Buffer
	to := cli.Terminal{In: strings.NewReader(""), Out: &said, Err: &said}
	to.Note("%s", evil)
	_ = cli.Confirm(t.Context(), to, "Delete "+evil+"?", evil) // nobody answers
	outcome := outcome{operate.Outcome{State: map[lease.Key]operate.State{v.Leases[0].Key: operate.Left}, Left: 1}}
	steps := []change.Step{{Key: v.Leases[0].Key, Why: evil}}
	if err := (resetReport{App: evil, Steps: stepInfos(steps, outcome.State)}).conclude(to, outcome, 1, false); err != nil {
		t.Fatal(err)
	}
	someLag := map[lease.Key]shardlag.Lag{v.Leases[0].Key: {Age: time.Second}}
	for name, c := range map[string]struct {
		text  string
		lines int
	}{
		"describe": {describe(evil, "", v, nil, 0, nil).text(), 11},
		"list":     {appsText([]appInfo{summary(evil, v)}), 2},
		"lag":      {lagsOf(evil, shardlag.LookAt(time.Now(), v, someLag), someLag).text(), 5},
		"no lag":   {lagReport{App: evil}.text(), 1},
		"plan":     {planOf(evil, v, lease.Facts{}).text(), 4},
		"steps":    {stepsText(steps), 2},
		"fanout":   {consumersText(evil, []registered{{Name: evil, Status: evil, ARN: evil}}), 2},
		"nobody":   {consumersText(evil, nil), 1},
		"doctor":   {doctorReport{App: evil, Leader: evil, Findings: []doctor.Finding{{Severity: doctor.Error, Text: evil, Do: evil}}}.text(), 4},
		"letters":  {lettersText([]deadletter.Item{{Letter: deadletter.Letter{ID: evil, Reason: evil, Error: evil}, State: evil}}), 2},
		"peek":     {receivedText([]sqsletters.Received{{Item: deadletter.Item{Letter: deadletter.Letter{ID: evil, Reason: evil, Error: evil}}}}), 2},
		"notes":    {said.String(), strings.Count(said.String(), "\n")},
	} {
		text := strings.ReplaceAll(c.text, "\n", "")
		if name == "notes" {
			text = strings.ReplaceAll(text, "\t", "") // an error may have a block of its own
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s shows %q", name, c.text)
		}
		if n := strings.Count(c.text, "\n"); n != c.lines {
			t.Errorf("%s has %d lines, want %d:\n%s", name, n, c.lines, c.text)
		}
		if !strings.Contains(text, `\x1b]0;owned`) {
			t.Errorf("%s does not show what the name is: %s", name, c.text)
		}
	}
}
