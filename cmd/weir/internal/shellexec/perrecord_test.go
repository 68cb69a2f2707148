//go:build unix

package shellexec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// A command may use the descriptor in any way. A record counts as done only if the command reports
// it. weir waits only a short time for processes that the command leaves behind.
func TestWhatCommandsDoWithTheirResults(t *testing.T) {
	const all = `echo '{"id":"a","result":"done"}' >&3; echo '{"id":"b","result":"done"}' >&3; echo '{"end":true}' >&3; `
	for name, c := range map[string]struct {
		command string
		want    string // error of the batch
	}{
		"says all":                        {all, "2 done"},
		"never writes":                    {"cat", "the command wrote no results"},
		"does not read either":            {"exit 0", "the command wrote no results"},
		"fails without a word":            {"exit 3", "the command failed: exit status 3"},
		"closes it":                       {"exec 3>&-; cat", "the command wrote no results"},
		"closes it when all is said":      {all + "exec 3>&-; exit 0", "2 done"},
		"is killed by a signal before":    {`echo '{"id":"a","result":"done"}' >&3; kill -9 $$`, `lack the line {"end":true}, so no record of the batch counts as done; the command failed: signal: killed`},
		"is killed by a signal after":     {all + "kill -9 $$", "2 done: the command failed: signal: killed"},
		"leaves somebody who holds it":    {all + "sleep 45 >/dev/null 2>&1 </dev/null & exit 0", "2 done"},
		"leaves somebody, without an end": {`sleep 45 >/dev/null 2>&1 </dev/null & echo '{"id":"a","result":"done"}' >&3; exit 0`, `lack the line {"end":true}`},
		"leaves somebody to say it":       {"(sleep 0.2; " + all + ") >/dev/null 2>&1 </dev/null & exit 0", "2 done"},
		"writes megabytes":                {`head -c 5000000 /dev/zero >&3`, "line 1 is longer than 64 KiB"},
		"writes megabytes of lines":       {`yes '{"id":"a","result":"done"}' | head -n 300000 >&3`, `lack the line {"end":true}`},
		"writes megabytes after the end":  {all + `head -c 5000000 /dev/zero >&3`, "2 done"},
		"names another descriptor":        {`test $WEIR_RESULTS_FD = 3 && ` + strings.ReplaceAll(all, "3", "$WEIR_RESULTS_FD"), "2 done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			o := PerRecord{Handler{cli.Terminal{Out: clitest.NewOutput(), Err: clitest.NewOutput()}, c.command, cli.FormatJSON, false, 0}}.
				ask(t.Context(), []byte(strings.Repeat("x", 1<<20)), []string{"a", "b"})
			got := fmt.Sprintf("%d done", o.done)
			if o.err != nil {
				got += ": " + o.err.Error()
			}
			if !strings.Contains(got, c.want) || o.named || o.done != 0 && !strings.HasPrefix(c.want, "2 done") {
				t.Errorf("%q, want %q", got, c.want)
			}
			if took := time.Since(began); took > 40*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// If a command is ended because its shard moves to another worker, it may still report which
// records are done.
func TestACommandThatIsEndedSaysHowFarItCame(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	out, asked := clitest.NewOutput(), make(chan batchOutcome, 1)
	command := `trap 'echo "{\"id\":\"a\",\"result\":\"done\"}" >&3; echo "{\"id\":\"b\",\"result\":\"failed\"}" >&3; echo "{\"end\":true}" >&3; exit 1' TERM
		echo ready; while :; do sleep 0.1; done`
	go func() {
		asked <- PerRecord{Handler{cli.Terminal{Out: out, Err: clitest.NewOutput()}, command, cli.FormatJSON, false, 0}}.ask(ctx, nil, []string{"a", "b"})
	}()
	out.Await(t, "the command", func(s string) bool { return strings.Contains(s, "ready") })
	cancel(weir.ErrStopping)
	if o := <-asked; o.done != 1 || o.named || !errors.Is(o.err, weir.ErrStopping) {
		t.Errorf("%s", shown(o))
	}
}
