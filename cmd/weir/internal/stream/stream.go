// Package stream implements the command "weir stream" and the flag --create-stream.
package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/provision"
)

func Command(t cli.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stream",
		Short: "Create a stream",
		Long:  "Creates streams. \"weir consume\" does so only with --create-stream, and \"weir put\" with --create.",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(createCommand(t))
	return cmd
}

func createCommand(t cli.Terminal) *cobra.Command {
	var (
		f    awsconf.Flags
		out  cli.Format
		want provision.Stream
		mode Mode
	)
	cmd := &cobra.Command{
		Use:   "create --stream NAME",
		Short: "Create a stream if it does not exist",
		Long: `Creates a stream, unless one with its name exists, and waits until it is active.
The command can be repeated, and several may run at once. A stream that exists
is not changed: each difference from the flags is reported on standard error.

Encryption and a longer retention are set after the stream was created, which
takes a few seconds more. Do not write data that has to be encrypted before the
command has ended.

An on-demand stream is billed by the hour and by throughput, a provisioned
stream by its shards. A retention of more than 24 h and your own KMS key cost
extra.`,
		Example: `  weir stream create --stream flights --shards 4
  weir stream create --stream flights --shards on-demand --kms-key alias/aws/kinesis
  weir stream create --stream flights --shards 4 --retention 168h --tag team=billing --tag stage=test
  weir stream create --stream flights --shards 4 -o json | jq -r .arn`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Require(cmd, "stream", "shards"); err != nil {
				return err
			}
			want.Shards = mode.shards
			if err := awsconf.CheckNewStreams(want.Name); err != nil {
				return err
			}
			client, err := f.Kinesis(cmd.Context(), t)
			if err != nil {
				return err
			}
			made, err := makeStream(cmd.Context(), t, client, want)
			if err != nil {
				return err
			}
			if out == cli.FormatJSON {
				differences := made.Differences
				if differences == nil {
					differences = []string{}
				}
				return json.NewEncoder(t.Out).Encode(map[string]any{"stream": want.Name, "arn": made.ARN, "created": made.Created, "differences": differences})
			}
			said := "exists already"
			if made.Created {
				said = "is made"
			}
			return cli.Textf(t.Out, "stream %s %s: %s\n", want.Name, said, made.ARN)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&want.Name, "stream", "", "stream, by `NAME`")
	fl.Var(&mode, "shards", "how many shards it begins with, `N` or on-demand")
	cli.MustComplete(cmd, "shards", "on-demand\tthe service decides", "1", "4")
	fl.StringVar(&want.KMSKey, "kms-key", "", "encrypt the records in the stream with this `KEY`: an ARN, an ID or an alias, such as AWS's own alias/aws/kinesis")
	fl.Var(&cli.Span{To: &want.Retention}, "retention", "how long records are kept, 24h to 8760h in whole hours (default 24h)")
	fl.Var(&cli.Number[int]{To: &want.MaxRecordSize, Parse: cli.ParseSize, Low: 1 << 20, High: 10 << 20, Want: "1MiB to 10MiB"}, "max-record-size", "bytes that a record may have, 1MiB to 10MiB (default 1MiB)")
	fl.Var(&cli.TagsFlag{To: &want.Tags}, "tag", "a tag of the stream; may be repeated")
	out.Register(cmd, "output format")
	f.Register(cmd, false)
	f.Role.Register(cmd)
	return cmd
}

// makeStream creates a stream unless it exists. It prints how an existing stream differs from the
// wanted one.
func makeStream(ctx context.Context, t cli.Terminal, client *kinesis.Client, want provision.Stream) (provision.Result, error) {
	made, err := provision.CreateStream(ctx, client, want)
	if err != nil {
		if own := provisionForm(err); own != nil {
			return made, own
		}
		return made, err
	}
	for _, d := range made.Differences {
		t.Note("stream %s is left as it is, although %s", want.Name, cli.Visible(d))
	}
	return made, nil
}

// provisionFlags replaces the fields in errors of package provision by the flags that set them.
var provisionFlags = strings.NewReplacer(
	"provision: ", "", "Stream.Name", "--stream", "Stream.Shards", "--shards", "Stream.KMSKey", "--kms-key", "Stream.Retention", "--retention",
	"Stream.MaxRecordSize", "--max-record-size", "Stream.Tags", "--tag", "\n", "; ")

// provisionForm returns err as a usage error if it is about the requested settings of the stream.
// Otherwise it returns nil.
func provisionForm(err error) error {
	if !strings.HasPrefix(err.Error(), "provision: Stream.") {
		return nil
	}
	return cli.Usage(errors.New(provisionFlags.Replace(err.Error())))
}

// Mode is the value of a flag: a number of shards, or on-demand.
type Mode struct {
	shards int
	Given  bool
}

const onDemand = "on-demand"

func (m *Mode) Type() string { return "N" }

func (m *Mode) String() string {
	switch {
	case !m.Given:
		return ""
	case m.shards == 0:
		return onDemand
	}
	return strconv.Itoa(m.shards)
}

func (m *Mode) Set(s string) error {
	if s == onDemand {
		*m = Mode{Given: true}
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 10_000 {
		return fmt.Errorf("%.40q: want 1 to 10000, or on-demand", s)
	}
	*m = Mode{n, true}
	return nil
}

// MakeAll creates those streams of a worker that do not exist.
func (m *Mode) MakeAll(ctx context.Context, t cli.Terminal, client *kinesis.Client, streams []string) error {
	for _, s := range streams {
		made, err := makeStream(ctx, t, client, provision.Stream{Name: s, Shards: m.shards})
		if err != nil {
			return err
		}
		if made.Created {
			t.Note("stream %s is made", s)
		}
	}
	return nil
}
