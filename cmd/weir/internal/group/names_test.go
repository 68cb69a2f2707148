package group

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/shardlag"
	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Names in a store must not break lines or control the terminal.
func TestNamesDoNothingToTheTerminal(t *testing.T) {
	v := lease.View{
		Paused: []string{clitest.Evil}, Leader: lease.Leader{Session: "S1", Epoch: 1},
		Workers: []lease.Worker{{Session: "S1", Name: clitest.Evil, Troubles: []lease.Trouble{{Key: lease.Key{Stream: clitest.Evil, Shard: clitest.Evil}, State: clitest.Evil, Why: clitest.Evil, Failing: lease.Failing{At: clitest.Evil, KeyHash: clitest.Evil, Held: clitest.Evil}}}}, {Session: clitest.Evil, Name: "b"}},
		Leases: []lease.Lease{
			{Key: lease.Key{Stream: clitest.Evil, Shard: clitest.Evil}, Epoch: 1, Owner: "S1", Heir: clitest.Evil, Position: shard.Oldest},
			{Key: lease.Key{Stream: "s", Shard: clitest.Evil}, Epoch: 1, Position: shard.Oldest},
		},
	}
	var said bytes.Buffer
	to := cli.Terminal{In: strings.NewReader(""), Out: &said, Err: &said}
	to.Note("%s", clitest.Evil)
	_ = cli.Confirm(t.Context(), to, "Delete "+clitest.Evil+"?", clitest.Evil) // there is no answer
	outcome := outcome{operate.Outcome{State: map[lease.Key]operate.State{v.Leases[0].Key: operate.Left}, Left: 1}}
	steps := []change.Step{{Key: v.Leases[0].Key, Why: clitest.Evil}}
	if err := (resetReport{App: clitest.Evil, Steps: stepInfos(steps, outcome.State)}).conclude(to, outcome, 1, false); err != nil {
		t.Fatal(err)
	}
	someLag := map[lease.Key]shardlag.Lag{v.Leases[0].Key: {Age: time.Second}}
	clitest.CheckShown(t, "describe", describe(clitest.Evil, "", v, nil, 0, nil).text(0, 80, cli.Unbroken), 11)
	clitest.CheckShown(t, "list", appsText([]appInfo{(&appLook{app: clitest.Evil, view: v}).summary()}, 0), 2)
	clitest.CheckShown(t, "lag", lagsOf(clitest.Evil, shardlag.LookAt(time.Now(), v, someLag), nil, someLag).text(0, cli.Unbroken), 5)
	clitest.CheckShown(t, "no lag", lagReport{App: clitest.Evil}.text(0, cli.Unbroken), 1)
	clitest.CheckShown(t, "plan", planOf(clitest.Evil, v, lease.Facts{}).text(), 4)
	clitest.CheckShown(t, "steps", stepsText(steps), 2)
	notes := strings.ReplaceAll(said.String(), "\t", "") // an error may be on a separate line
	clitest.CheckShown(t, "notes", notes, strings.Count(notes, "\n"))
}
