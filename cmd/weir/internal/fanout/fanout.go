// Package fanout implements the command "weir fanout" and the flags of fan-out of other commands.
package fanout

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
)

// Flags are the values of the flags --fan-out, --fan-out-name and --fan-out-arn. Every command that
// reads by fan-out has the same flags, with the names of the fields of weir.FanOut.
type Flags struct{ weir.FanOut }

// On reports whether the flags ask for fan-out.
func (f *Flags) On() bool { return f.Mode != weir.FanOutOff }

// Register adds the flags to a command. unnamed says which consumer is used without a name.
func (f *Flags) Register(cmd *cobra.Command, unnamed string) {
	(*Mode)(&f.Mode).Register(cmd, "read by enhanced fan-out, with a registered consumer. `MODE` is "+
		"existing (never registers a consumer), register (registers a missing consumer), "+
		"temporary (registers a missing consumer, and deregisters it at the end) or off; "+
		"\"weir fanout\" describes the cost (default off)")
	cmd.Flags().Var((*name)(&f.Name), "fan-out-name", "`NAME` of the consumer of --fan-out ("+unnamed+")")
	cmd.Flags().StringArrayVar(&f.ARNs, "fan-out-arn", nil,
		"`ARN` of a registered consumer, which stays registered; once for each stream")
}

// Mode is the value of the flag --fan-out.
type Mode weir.FanOutMode

// modes are the values of the flag, with what the completion says about them.
var modes = map[weir.FanOutMode]string{
	weir.FanOutOff:       "poll (the default)",
	weir.FanOutExisting:  "use a registered consumer",
	weir.FanOutRegister:  "register a missing consumer",
	weir.FanOutTemporary: "register a missing consumer, and deregister it at the end",
}

// Register adds the flag --fan-out to a command.
func (m *Mode) Register(cmd *cobra.Command, usage string) {
	cmd.Flags().Var(m, "fan-out", usage)
	var words []string
	for mode, about := range modes {
		words = append(words, mode.String()+"\t"+about)
	}
	slices.Sort(words)
	cli.MustComplete(cmd, "fan-out", words...)
}

func (m *Mode) String() string { return weir.FanOutMode(*m).String() }

// Type returns the word for a value in the help.
func (m *Mode) Type() string { return "mode" }

// Set parses a value of the flag.
func (m *Mode) Set(s string) error {
	for mode := range modes {
		if mode.String() == s {
			*m = Mode(mode)
			return nil
		}
	}
	return fmt.Errorf("%.140q is not a mode of fan-out: use existing, register, temporary or off", s)
}

// name is the value of the flag --fan-out-name.
type name string

func (n *name) String() string { return string(*n) }

// Type returns the word for a value in the help.
func (n *name) Type() string { return "name" }

// Set checks a value of the flag.
func (n *name) Set(s string) error {
	if !awsconf.NameForm.MatchString(s) {
		return fmt.Errorf("%.140q is not the name of a consumer: use 1 to 128 of a-z, A-Z, 0-9, _ . -", s)
	}
	*n = name(s)
	return nil
}

func Command(t cli.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fanout",
		Short: "List and remove consumers for enhanced fan-out",
		Long: `Lists and removes the consumers of a stream that are registered for enhanced
fan-out.

With --fan-out register, a worker registers a consumer with the name of its
application, or with that of --fan-out-name. The other workers and later starts
use the same consumer, so it stays registered. With --fan-out temporary, the last
worker that stops removes it. With --fan-out existing, a worker uses a consumer
that you have registered. AWS bills each consumer for every shard and hour until
it is removed.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(listCommand(t), removeCommand(t))
	return cmd
}

// Consumer is a consumer of a stream in the output of list.
type Consumer struct {
	Name    string    `json:"name"`
	Status  string    `json:"status"` // CREATING, ACTIVE or DELETING
	Created time.Time `json:"created"`
	ARN     string    `json:"arn"`
}

func listCommand(t cli.Terminal) *cobra.Command {
	var (
		f      awsconf.Flags
		out    cli.Format
		stream string
	)
	cmd := &cobra.Command{
		Use:   "list --stream NAME",
		Short: "List the registered consumers of a stream",
		Long:  "Shows the consumers that are registered with a stream for enhanced fan-out, of all applications. It changes nothing.",
		Example: `  weir fanout list --stream flights
  weir fanout list --stream flights -o json | jq -r '.consumers[].name'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Require(cmd, "stream"); err != nil {
				return err
			}
			if err := awsconf.CheckStreams(stream); err != nil {
				return err
			}
			client, err := f.Kinesis(cmd.Context(), t)
			if err != nil {
				return err
			}
			_, all, err := List(cmd.Context(), client, stream)
			if err != nil {
				return err
			}
			if out == cli.FormatJSON {
				return json.NewEncoder(t.Out).Encode(consumerList{stream, all})
			}
			_, err = io.WriteString(t.Out, consumersText(stream, all))
			return err
		},
	}
	cmd.Flags().StringVar(&stream, "stream", "", "stream, by `NAME` or ARN")
	out.Register(cmd, "output format")
	f.Register(cmd, false)
	f.Role.Register(cmd)
	return cmd
}

// consumerList is the output of fanout list for programs.
type consumerList struct {
	Stream    string     `json:"stream"`
	Consumers []Consumer `json:"consumers"`
}

func consumersText(stream string, all []Consumer) string {
	if len(all) == 0 {
		return fmt.Sprintf("No consumer is registered with stream %s.\n", cli.Visible(stream))
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATUS\tSINCE\tARN")
	for _, c := range all {
		_ = cli.Textf(w, "%s\t%s\t%s\t%s\n", c.Name, c.Status, c.Created.UTC().Format(time.RFC3339), c.ARN)
	}
	_ = w.Flush() // cannot fail: it writes to memory
	return b.String()
}

func removeCommand(t cli.Terminal) *cobra.Command {
	var (
		f            awsconf.Flags
		stream, name string
		yes          bool
	)
	cmd := &cobra.Command{
		Use:   "remove --stream NAME --name NAME",
		Short: "Remove a consumer from a stream",
		Long: `Removes a consumer that is registered with a stream for enhanced fan-out, so
that AWS no longer bills it. The progress of the application is not affected: it
is in the application's store.

First stop the workers that use the consumer, or start them without fan-out. A
running worker loses its subscriptions and registers the consumer again.`,
		Example: `  weir fanout remove --stream flights --name billing
  weir fanout remove --stream flights --name billing --yes     without being asked`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Require(cmd, "stream", "name"); err != nil {
				return err
			}
			if err := awsconf.CheckStreams(stream); err != nil {
				return err
			}
			if err := cli.CanConfirm(cmd, t, yes); err != nil {
				return err
			}
			client, err := f.Kinesis(cmd.Context(), t)
			if err != nil {
				return err
			}
			return removeConsumer(cmd.Context(), t, client, stream, name, yes)
		},
	}
	cmd.Flags().StringVar(&stream, "stream", "", "stream, by `NAME` or ARN")
	cmd.Flags().StringVar(&name, "name", "", "the consumer's `NAME`; \"weir fanout list\" shows them")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	f.Register(cmd, false)
	f.Role.Register(cmd)
	return cmd
}

func removeConsumer(ctx context.Context, t cli.Terminal, client *kinesis.Client, stream, name string, yes bool) error {
	arn, all, err := List(ctx, client, stream)
	if err != nil {
		return err
	}
	var names []string
	found := false
	for _, c := range all {
		names = append(names, c.Name)
		found = found || c.Name == name
	}
	switch {
	case len(all) == 0:
		return fmt.Errorf("stream %s has no consumer at all", stream)
	case !found:
		return fmt.Errorf("stream %s has no consumer %s: there is %s", stream, name, strings.Join(names, ", "))
	}
	if !yes {
		if err := cli.Confirm(ctx, t, fmt.Sprintf("Remove consumer %s from stream %s?", name, stream), name); err != nil {
			return err
		}
	}
	if _, err := client.DeregisterStreamConsumer(ctx, &kinesis.DeregisterStreamConsumerInput{StreamARN: &arn, ConsumerName: &name}); err != nil {
		return err
	}
	err = cli.Textf(t.Out, "consumer %s of stream %s is being removed\n", name, stream)
	return err
}

// mostPages is the maximum number of pages of a listing. It guards against a server whose listing
// never ends. AWS allows 50 consumers, which fit on one page.
const mostPages = 100

// List returns the ARN of a stream and its consumers.
func List(ctx context.Context, client *kinesis.Client, stream string) (arn string, all []Consumer, err error) {
	if name, given := awsconf.NameOrARN(stream); given != nil {
		arn = *given
	} else {
		out, err := client.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: name})
		if err != nil {
			return "", nil, err
		}
		if out.StreamDescriptionSummary == nil {
			return "", nil, fmt.Errorf("the service returned no description of stream %s", stream)
		}
		arn = aws.ToString(out.StreamDescriptionSummary.StreamARN)
	}
	all = []Consumer{}
	in := &kinesis.ListStreamConsumersInput{StreamARN: &arn}
	for range mostPages {
		out, err := client.ListStreamConsumers(ctx, in)
		if err != nil {
			return "", nil, err
		}
		for _, c := range out.Consumers {
			all = append(all, Consumer{
				aws.ToString(c.ConsumerName), string(c.ConsumerStatus), aws.ToTime(c.ConsumerCreationTimestamp).UTC(), aws.ToString(c.ConsumerARN),
			})
		}
		if aws.ToString(out.NextToken) == "" {
			return arn, all, nil
		}
		if aws.ToString(out.NextToken) == aws.ToString(in.NextToken) {
			break
		}
		in.NextToken = out.NextToken
	}
	return "", nil, fmt.Errorf("the service's listing of the consumers of stream %s does not end", stream)
}
