package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/queues"
	"github.com/weir-go/weir/internal/queuestate"
)

// queueReport is the output about a queue.
type queueReport struct {
	Queue    string    `json:"queue"`
	State    string    `json:"state"`
	Findings []Finding `json:"findings"`
}

// ofQueue contains the flags that go with --queue.
var ofQueue = map[string]bool{
	"queue": true, "output": true, "endpoint": true, "region": true, "connect-timeout": true,
	"role": true, "role-external-id": true, "role-session": true,
}

// examineQueue looks at a queue.
func (o *options) examineQueue(cmd *cobra.Command, t cli.Terminal) error {
	var wrong error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if wrong == nil && !ofQueue[f.Name] {
			wrong = cli.Usagef("--%s does not go with --queue, which looks at a queue and not at an application: leave one of them out", f.Name)
		}
	})
	if wrong != nil {
		return wrong
	}
	f := queues.Flags{AWS: o.AWS, Name: o.queue}
	if err := f.Check(cmd); err != nil {
		return err
	}
	report, err := lookAtQueue(cmd.Context(), t, &f)
	if err != nil {
		return err
	}
	if o.out == cli.FormatJSON {
		err = json.NewEncoder(t.Out).Encode(report)
	} else {
		_, err = io.WriteString(t.Out, report.text(t.Findings()))
	}
	if err == nil {
		err = exitCode(report.Findings)
	}
	return err
}

func lookAtQueue(ctx context.Context, t cli.Terminal, f *queues.Flags) (queueReport, error) {
	reader, err := f.Reader(ctx, t)
	if err != nil {
		return queueReport{}, err
	}
	d, err := queues.Find(ctx, reader.Queues, f.Name)
	if err != nil {
		return queueReport{}, err
	}
	return reportOn(reader.Facts(ctx, &d)), nil
}

func reportOn(facts queuestate.Facts) queueReport {
	r := queueReport{Queue: facts.Name, Findings: []Finding{}}
	r.State, _ = queuestate.State(facts)
	for _, f := range queuestate.Judge(facts) {
		do := f.Do
		if f.Command != "" {
			do += ": " + f.Command
		}
		r.Findings = append(r.Findings, Finding{Severity: severities[f.Severity], Code: f.Code, About: facts.Name, Text: f.Text, Do: do})
	}
	return r
}

var severities = map[queuestate.Severity]Severity{queuestate.Error: Error, queuestate.Warning: Warning, queuestate.Info: Info}

func (r queueReport) text(columns int) string {
	count := map[Severity]int{}
	for _, f := range r.Findings {
		count[f.Severity]++
	}
	result := "nothing is wrong"
	if n := count[Error] + count[Warning]; n > 0 {
		result = fmt.Sprintf("%s and %s", cli.Count(count[Error], "error"), cli.Count(count[Warning], "warning"))
	}
	var b strings.Builder
	b.WriteString(cli.Wrapped(fmt.Sprintf("Queue %s: %s. It is %s.", r.Queue, result, r.State), "  ", columns))
	writeFindings(&b, r.Findings, columns)
	return b.String()
}
