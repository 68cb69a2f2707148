package queuecmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/queues"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/queue"
)

// defaultReceives is the MaxReceiveCount of a queue that the command creates. The service's default
// is 6.
const defaultReceives = 20

// settings are the flags for the settings of a queue.
type settings struct {
	receives   int
	noDead     bool
	visibility time.Duration
}

func (s *settings) register(cmd *cobra.Command, unset string) {
	cmd.Flags().Var(&cli.Number[int]{To: &s.receives, Parse: strconv.Atoi, Low: 1, High: 1000, Want: "1 to 1000"}, "max-receives",
		"how often a record is delivered before it becomes a dead letter, 1 to 1000; crashes and restarts count, too ("+unset+")")
	cmd.Flags().BoolVar(&s.noDead, "no-dead-letters", false, "keep no dead letters: a record is delivered until it is acknowledged or leaves the stream")
	cmd.Flags().Var(&cli.Span{To: &s.visibility}, "visibility", "how long a received record is hidden from other consumers by default, 1s to 12h; weir's consumers set their own time")
}

// attributes returns the settings that the flags change.
func (s *settings) attributes() (a queue.Attributes, err error) {
	switch {
	case s.noDead && s.receives > 0:
		return a, cli.Usagef("--no-dead-letters and --max-receives exclude each other: a queue without dead letters counts no receives")
	case s.noDead:
		a.DeadLetters = "NONE"
	case s.receives > 0:
		a.DeadLetters, a.MaxReceiveCount = "BUILT_IN", s.receives
	}
	if v := s.visibility; v != 0 {
		if v < time.Second || v > 12*time.Hour || v%time.Second != 0 {
			return a, cli.Usagef("--visibility %v: want 1s to 12h, in whole seconds", v)
		}
		a.Visibility = &s.visibility
	}
	return a, nil
}

func createCommand(t cli.Terminal) *cobra.Command {
	var (
		f      queues.Flags
		s      settings
		out    cli.Format
		tags   map[string]string
		stream string
	)
	from := "latest"
	cmd := &cobra.Command{
		Use:   "create --queue NAME --stream NAME",
		Short: "Create a queue if it does not exist",
		Long: `Creates a queue of an on-demand stream, unless one with its name exists, and waits
until it is active. The command can be repeated. A queue that exists is not
changed: each difference from the flags is reported on standard error.

With --from latest, records that arrive before the queue is active can be
missed. --from 1m is safe.

A stream has 20 places for queues and fan-out consumers together, or 50 in
On-demand Advantage mode. A stream with queues cannot be deleted or switched to
provisioned mode.`,
		Example: `  weir queue create --queue billing --stream orders
  weir queue create --queue billing --stream orders --from oldest --max-receives 50
  weir queue create --queue billing --stream orders -o json | jq -r .arn`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Require(cmd, "queue", "stream"); err != nil {
				return err
			}
			if len(f.Name) > 4 && f.Name[:4] == "arn:" {
				return cli.Usagef("--queue %.200q is an ARN: a queue is made by its name, in the account and the region of the credentials", f.Name)
			}
			if err := errors.Join(awsconf.CheckQueue(f.Name), awsconf.CheckStreams(stream)); err != nil {
				return err
			}
			start, err := startOf(from, time.Now())
			if err != nil {
				return err
			}
			a, err := s.attributes()
			if err != nil {
				return err
			}
			given := a
			if a.DeadLetters == "" {
				a.DeadLetters, a.MaxReceiveCount = "BUILT_IN", defaultReceives
			}
			d, made, err := create(cmd.Context(), t, &f, stream, queue.CreateInput{Name: f.Name, Start: start, Attributes: a, Tags: tags}, given)
			if err != nil {
				return err
			}
			if out == cli.FormatJSON {
				return json.NewEncoder(t.Out).Encode(map[string]any{"queue": d.Name, "arn": d.ARN, "created": made})
			}
			said := "exists already"
			if made {
				said = "is made"
			}
			return cli.Textf(t.Out, "queue %s %s: %s\n", d.Name, said, d.ARN)
		},
	}
	cmd.Flags().StringVar(&f.Name, "queue", "", "queue, by `NAME`")
	cmd.Flags().StringVar(&stream, "stream", "", "on-demand stream of the queue, by `NAME` or ARN")
	cmd.Flags().StringVar(&from, "from", from, "where the queue begins: "+records.FromHelp)
	cli.MustComplete(cmd, "from", "oldest\tthe oldest record in the stream", "latest\trecords that arrive from now on", "15m\tthe last quarter of an hour")
	s.register(cmd, fmt.Sprintf("default %d", defaultReceives))
	cmd.Flags().Var(&cli.TagsFlag{To: &tags}, "tag", "a tag of the queue; may be repeated")
	out.Register(cmd, "output format")
	f.RegisterService(cmd)
	return cmd
}

// startOf returns the start of a queue for the value of --from.
func startOf(from string, now time.Time) (queue.Start, error) {
	p, err := records.ParseFrom(from, now)
	switch {
	case err != nil:
		return queue.Start{}, err
	case p == weir.Oldest:
		return queue.Start{Type: "TRIM_HORIZON"}, nil
	case p == weir.Latest:
		return queue.Start{Type: "LATEST"}, nil
	}
	return queue.Start{Type: "AT_TIMESTAMP", At: p.Time()}, nil
}

// create creates a queue unless it exists, and waits until it is active. given are the attributes
// that the user asked for.
func create(ctx context.Context, t cli.Terminal, f *queues.Flags, stream string, in queue.CreateInput, given queue.Attributes) (d queue.Description, made bool, err error) {
	client, _, err := f.AWS.KinesisQueues(ctx, t)
	if err != nil {
		return d, false, err
	}
	if in.StreamARN, err = streamARN(ctx, t, f, stream); err != nil {
		return d, false, err
	}
	arn, err := client.Find(ctx, in.Name)
	switch {
	case err == nil:
		if d, err = client.DescribeQueue(ctx, arn); err != nil {
			return d, false, err
		}
		for _, difference := range differences(&d, &in, given) {
			t.Note("queue %s is left as it is, although %s", in.Name, cli.Visible(difference))
		}
	case errors.Is(err, queue.ErrQueueNotFound):
		if d, err = client.CreateQueue(ctx, in); err != nil {
			return d, false, err
		}
		made = true
	default:
		return d, false, err
	}
	d, err = awaitActive(ctx, client, d)
	return d, made, err
}

// streamARN returns the ARN of a stream, and checks that it is in on-demand mode.
func streamARN(ctx context.Context, t cli.Terminal, f *queues.Flags, stream string) (string, error) {
	client, err := f.AWS.Kinesis(ctx, t)
	if err != nil {
		return "", err
	}
	in := &kinesis.DescribeStreamSummaryInput{}
	in.StreamName, in.StreamARN = awsconf.NameOrARN(stream)
	out, err := client.DescribeStreamSummary(ctx, in)
	if err != nil {
		return "", err
	}
	if out.StreamDescriptionSummary == nil {
		return "", fmt.Errorf("the service returned no description of stream %s", stream)
	}
	s := out.StreamDescriptionSummary
	if m := s.StreamModeDetails; m != nil && m.StreamMode != "" && m.StreamMode != "ON_DEMAND" {
		return "", fmt.Errorf("stream %s is in provisioned mode, and only on-demand streams can have queues: \"aws kinesis update-stream-mode\" switches it", stream)
	}
	return aws.ToString(s.StreamARN), nil
}

// differences describes how an existing queue differs from the wanted one.
func differences(d *queue.Description, in *queue.CreateInput, given queue.Attributes) (all []string) {
	if len(d.Streams) > 0 && d.Streams[0].StreamARN != in.StreamARN {
		all = append(all, "it is a queue of stream "+queues.StreamOf(d.Streams[0].StreamARN)+"; the stream of a queue never changes")
	}
	is := d.Attributes
	if given.MaxReceiveCount != 0 && is.MaxReceiveCount != given.MaxReceiveCount {
		all = append(all, fmt.Sprintf("its --max-receives is %d; \"weir queue update\" changes it", is.MaxReceiveCount))
	}
	if given.DeadLetters == "NONE" && is.DeadLetters != "NONE" {
		all = append(all, "it keeps dead letters; \"weir queue update\" changes that")
	}
	if given.Visibility != nil && is.Visibility != nil && *is.Visibility != *given.Visibility {
		all = append(all, fmt.Sprintf("its --visibility is %v; \"weir queue update\" changes it", *is.Visibility))
	}
	return all
}

const (
	statusEvery = time.Second
	statusFor   = 5 * time.Minute
)

// awaitActive waits until a queue is ACTIVE.
func awaitActive(ctx context.Context, client *queue.Client, d queue.Description) (queue.Description, error) {
	ctx, cancel := context.WithTimeout(ctx, statusFor)
	defer cancel()
	for d.Status != queue.Active {
		if d.Status == queue.Deleting {
			return d, fmt.Errorf("queue %s is being deleted", d.Name)
		}
		timer := time.NewTimer(statusEvery)
		select {
		case <-ctx.Done():
			timer.Stop()
			return d, fmt.Errorf("queue %s is still %s: \"weir queue describe --queue %s\" shows its state", d.Name, d.Status, d.Name)
		case <-timer.C:
		}
		again, err := client.DescribeQueue(ctx, d.ARN)
		if err != nil {
			return d, err
		}
		d = again
	}
	return d, nil
}
