package queuecmd

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/queues"
	"github.com/weir-go/weir/internal/queuestate"
	"github.com/weir-go/weir/queue"
)

type describeOptions struct {
	queues.Flags
	out   cli.Format
	peek  bool
	again bool
}

func describeCommand(t cli.Terminal) *cobra.Command {
	var o describeOptions
	cmd := &cobra.Command{
		Use:   "describe --queue NAME",
		Short: "Show what waits in a queue, its dead letters, and what to do",
		Long: `Shows the settings of a queue, how many records wait, are in flight and are dead
letters, how many receives were spent in the last hour, and the next step.

The numbers come from CloudWatch and are up to three minutes old. They need the
permission cloudwatch:GetMetricData, and CloudWatch bills them. Neither the queue
nor CloudWatch says how old the oldest record is. --peek receives up to ten
visible records, shows the oldest of them, and gives them back at once. It spends
one receive of each, so it is off by default. The visible records need not
contain the oldest one.

"receives" compares the receives of the last hour with the records that were
acknowledged. Each release, crash, lost answer and lost hold spends a receive,
and a record with too many receives becomes a dead letter.`,
		Example: `  weir queue describe --queue billing
  weir queue describe --queue billing --watch
  weir queue describe --queue billing -o json | jq '{visible, in_flight, dead_letters}'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Check(cmd); err != nil {
				return err
			}
			if o.again && o.peek {
				return cli.Usagef("--peek spends a receive of each record that it shows, so it cannot be combined with --watch")
			}
			if !o.again {
				text, err := o.describe(cmd.Context(), t)
				if err == nil {
					_, err = io.WriteString(t.Out, text)
				}
				return err
			}
			return cli.Again(cmd.Context(), t, o.describe)
		},
	}
	o.Register(cmd)
	cmd.Flags().BoolVar(&o.peek, "peek", false, "receive up to ten records to show their age, and give them back; spends one receive of each")
	cli.RegisterWatch(cmd, &o.again)
	o.out.Register(cmd, "output format")
	return cmd
}

// description is the output of describe for programs.
type description struct {
	Queue       string         `json:"queue"`
	ARN         string         `json:"arn"`
	Stream      string         `json:"stream"`
	Status      string         `json:"status"`
	State       string         `json:"state"`
	Created     time.Time      `json:"created"`
	From        string         `json:"from,omitempty"`         // oldest, latest or time
	Start       *time.Time     `json:"start,omitempty"`        // effective start
	MaxReceives int            `json:"max_receives,omitempty"` // 0: the queue keeps no dead letters
	Visibility  int            `json:"visibility_seconds"`
	Retention   int            `json:"retention_hours,omitempty"`
	At          *time.Time     `json:"numbers_at,omitempty"` // when the numbers were taken
	Visible     *int64         `json:"visible,omitempty"`
	InFlight    *int64         `json:"in_flight,omitempty"`
	MaxInFlight int            `json:"max_in_flight"`
	Dead        *int64         `json:"dead_letters,omitempty"`
	Received    int64          `json:"received_last_hour"`
	Acked       int64          `json:"acknowledged_last_hour"`
	Empty       int64          `json:"empty_receives_last_hour"`
	Peeked      *peeked        `json:"peeked,omitempty"`
	Findings    []queueFinding `json:"findings"`
	facts       queuestate.Facts
}

type queueFinding struct {
	Severity string `json:"severity"`
	Code     string `json:"code"`
	Text     string `json:"text"`
	Do       string `json:"do"`
	Command  string `json:"command,omitempty"`
}

// peeked describes the records that --peek has received.
type peeked struct {
	Records  int        `json:"records"`
	Oldest   *time.Time `json:"oldest,omitempty"` // arrival in the stream
	Receives int        `json:"most_receives"`    // the highest receive count
}

var severityNames = map[queuestate.Severity]string{queuestate.Error: "error", queuestate.Warning: "warning", queuestate.Info: "info"}

func (o *describeOptions) describe(ctx context.Context, t cli.Terminal) (string, error) {
	r, err := o.Reader(ctx, t)
	if err != nil {
		return "", err
	}
	about, err := queues.Find(ctx, r.Queues, o.Name)
	if err != nil {
		return "", err
	}
	d := newDescription(&about, r.Facts(ctx, &about))
	if o.peek {
		if d.Peeked, err = peek(ctx, r.Queues, about.ARN); err != nil {
			return "", err
		}
	}
	if o.out == cli.FormatJSON {
		line, err := json.Marshal(d)
		return string(line) + "\n", err
	}
	return d.text(t.Prose(), time.Now()), nil
}

func newDescription(about *queue.Description, f queuestate.Facts) *description {
	d := &description{
		Queue: about.Name, ARN: about.ARN, Stream: f.Stream, Status: about.Status, Created: about.Created.UTC(),
		Visibility: int(f.Visibility / time.Second), Retention: int(f.Retention / time.Hour), MaxInFlight: queuestate.MaxInFlight,
		Received: f.Metrics.Received, Acked: f.Metrics.Acknowledged, Empty: f.Metrics.EmptyReceives, Findings: []queueFinding{}, facts: f,
	}
	d.State, _ = queuestate.State(f)
	if f.DeadLetters {
		d.MaxReceives = f.MaxReceiveCount
	}
	if len(about.Streams) > 0 {
		start := about.Streams[0].Start
		d.From = map[string]string{"TRIM_HORIZON": "oldest", "LATEST": "latest", "AT_TIMESTAMP": "time"}[start.Type]
		if !start.At.IsZero() {
			at := start.At.UTC()
			d.Start = &at
		}
	}
	m := f.Metrics
	if !m.At.IsZero() {
		at := m.At.UTC()
		d.At = &at
	}
	known := func(n int64) *int64 {
		if n == queuestate.Unknown {
			return nil
		}
		return &n
	}
	d.Visible, d.InFlight, d.Dead = known(m.Visible), known(m.InFlight), known(m.DeadLetters)
	for _, f := range queuestate.Judge(f) {
		d.Findings = append(d.Findings, queueFinding{severityNames[f.Severity], f.Code, f.Text, f.Do, f.Command})
	}
	return d
}

// peek receives visible records and gives them back.
func peek(ctx context.Context, client *queue.Client, arn string) (*peeked, error) {
	out, err := client.Receive(ctx, queue.ReceiveInput{QueueARN: arn, Limit: 10, Wait: time.Second, Hold: 20 * time.Second})
	if err != nil {
		return nil, err
	}
	p := &peeked{Records: len(out.Records)}
	var back []queue.Visibility
	for _, r := range out.Records {
		back = append(back, queue.Visibility{ReceiptHandle: r.ReceiptHandle})
		p.Receives = max(p.Receives, r.ReceiveCount)
		if p.Oldest == nil || r.Arrived.Before(*p.Oldest) {
			at := r.Arrived.UTC()
			p.Oldest = &at
		}
	}
	if len(back) > 0 {
		_, err = client.SetVisibility(context.WithoutCancel(ctx), arn, back)
	}
	return p, err
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
