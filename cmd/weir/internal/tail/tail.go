// Package tail implements the command "weir tail".
package tail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/codecs"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/fanout"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/filter"
	"github.com/weir-go/weir/shard"
)

type tailOptions struct {
	aws       awsconf.Flags
	out       cli.Format
	stream    string
	from      string
	shards    []string
	limit     int64
	untilTip  bool
	until     string
	before    time.Time // parsed from until; zero without a limit
	fanOut    fanout.Flags
	share     float64
	filter    records.FilterFlags
	decode    codecs.Decode
	transport weir.Transport
}

func Command(t cli.Terminal) *cobra.Command {
	var o tailOptions
	cmd := &cobra.Command{
		Use:   "tail --stream NAME",
		Short: "Print the records of a stream",
		Long: `Prints the records of a stream as they arrive, one per line, parents before
children where shards were split or merged. It keeps no checkpoint and shares
no work: use "weir consume" to read a stream with several workers that continue
where they stopped.

Reads count against the throughput that all readers of the stream share. With
--fan-out, records are instead pushed to the registered consumer --fan-out-name,
which must have no other reader. With the mode "temporary", weir tail registers
the consumer if it does not exist, and then removes it at the end. With the mode
"register", the consumer stays. AWS bills a consumer by the shard and hour while
it is registered: "weir fanout" lists and removes consumers.

` + records.AboutFilters + ` --limit counts printed records.

` + codecs.About + ` A
record that cannot be decoded is printed as it is, with a note.

` + records.AboutBinary,
		Example: `  weir tail --stream flights                          what arrives from now on
  weir tail --stream flights --from oldest --limit 10
  weir tail --stream flights --from 15m --until-tip   the last quarter of an hour, then end
  weir tail --stream flights --from 2h --until 1h     the hour before the last one
  weir tail --stream flights -o json | jq .key
  weir tail --stream flights --filter '{"data":{"carrier":["LX",{"prefix":"U"}]}}'
  weir tail --stream flights --fan-out temporary --fan-out-name me`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Require(cmd, "stream"); err != nil {
				return err
			}
			if o.from == "" {
				o.from = "latest"
				if o.untilTip || o.until != "" {
					o.from = "oldest" // from the tip to the tip there is nothing to read
				}
			}
			if cmd.Flags().Changed("until") {
				if o.untilTip {
					return cli.Usagef("--until-tip and --until are two ends: give one of them")
				}
				var err error
				if o.before, err = records.ParseUntil(o.until, time.Now(), "run weir tail after that time, or use --until-tip"); err != nil {
					return err
				}
			}
			if o.limit < 0 {
				return cli.Usagef("--limit %d: want 1 or more, or 0 for no limit", o.limit)
			}
			for i, named := range o.shards {
				id, err := records.ParseShardOf(o.stream, named)
				if err != nil {
					return err
				}
				o.shards[i] = id
			}
			from, err := o.start(time.Now())
			if err != nil {
				return err
			}
			by, err := o.filter.Compiled()
			if err != nil {
				return err
			}
			return explain.Orderly(cmd.Context(), o.run(cmd.Context(), t, from, by))
		},
	}
	cmd.Flags().StringVar(&o.stream, "stream", "", "stream, by `NAME` or ARN")
	cmd.Flags().StringVar(&o.from, "from", "", "`WHERE` to start: "+records.FromHelp+"; or, with one --shard, at a sequence number (default latest; oldest with --until-tip or --until)")
	cmd.Flags().StringArrayVar(&o.shards, "shard", nil, "only this shard and its descendants, by `ID` "+records.ShardHelp+"; may be repeated")
	cmd.Flags().Int64Var(&o.limit, "limit", 0, "end after this number of records")
	cmd.Flags().BoolVar(&o.untilTip, "until-tip", false, "end when the records that are in the stream at the start are printed")
	cmd.Flags().StringVar(&o.until, "until", "", "end when records from before `TIME` are printed, and print no others: "+records.UntilHelp)
	o.fanOut.Register(cmd, "required unless --fan-out-arn is given")
	o.filter.Register(cmd, "nothing more is printed")
	o.decode.Register(cmd)
	records.RegisterReadShare(cmd, &o.share)
	records.RegisterTransport(cmd, &o.transport)
	cli.MustComplete(cmd, "from", "oldest\tthe oldest record in the stream", "latest\trecords that arrive from now on", "15m\tthe last quarter of an hour")
	o.out.Register(cmd, "text prints the data, json an object about each record")
	o.aws.Register(cmd, false)
	o.aws.Role.Register(cmd)
	return cmd
}

var sequenceForm = regexp.MustCompile(`^[0-9]{20,}$`)

// start parses the value of --from, which in this command may also be a sequence number.
func (o *tailOptions) start(now time.Time) (weir.Position, error) {
	if !sequenceForm.MatchString(o.from) {
		return records.ParseFrom(o.from, now)
	}
	if len(o.shards) != 1 {
		return weir.Position{}, cli.Usagef("--from %.40s… is a place in a shard: name that one with --shard", o.from)
	}
	p, err := shard.Before(o.from)
	if err != nil {
		return p, cli.Usagef("--from %.140s: %v", o.from, err)
	}
	return p, nil
}

// reader returns the reader of the records.
func (o *tailOptions) reader(client *kinesis.Client, t cli.Terminal, from weir.Position) (*weir.Reader, error) {
	opts := weir.ReaderOptions{
		Stream: o.stream, Start: from, Shards: o.shards, UntilTip: o.untilTip || !o.before.IsZero(), Polling: weir.Polling{Share: o.share}, FanOut: o.fanOut.FanOut, Transport: o.transport, Logger: slog.New(cli.LogText.Handler(t.Err)),
	}
	return weir.NewReader(client, opts)
}

func (o *tailOptions) run(ctx context.Context, t cli.Terminal, from weir.Position, by *filter.Filter) error {
	o.aws.HTTP2, o.aws.Reads = o.fanOut.On(), true
	client, err := o.aws.Kinesis(ctx, t)
	if err != nil {
		return err
	}
	reader, err := o.reader(client, t, from)
	if err != nil {
		return cli.Usage(explain.InFlags(err))
	}
	if err := o.aws.Greet(ctx, client, o.stream); err != nil {
		return err
	}
	left := o.limit
	var buf []byte
	for b, err := range reader.Batches(ctx) {
		if ctx.Err() != nil {
			return nil // the user ended it
		}
		if errors.Is(err, weir.ErrNoConsumer) && o.fanOut.Name != "" {
			return fmt.Errorf("stream %s has no consumer %s: --fan-out temporary registers it until weir tail ends", o.stream, o.fanOut.Name)
		}
		if err != nil {
			return fmt.Errorf("stream %s: %w", o.stream, err)
		}
		buf = buf[:0]
		failed := error(nil)
		for _, r := range b.Records {
			if o.limit > 0 && left == 0 {
				break
			}
			if !o.before.IsZero() && !r.ArrivalTime().Before(o.before) {
				continue
			}
			if data, err := o.decode.Data(ctx, r.Data); err == nil {
				r.Data = data
			} else {
				t.Note("--decode %s: the record %s is printed as it is: %v", &o.decode, r.ID(), err)
			}
			passes := false
			if passes, failed = o.filter.Passes(by, r); failed != nil {
				break // after printing the earlier records
			}
			if !passes {
				continue
			}
			left--
			if buf, err = records.Append(buf, o.out, b.Shard, r); err != nil {
				return err
			}
		}
		if _, err := t.Out.Write(buf); err != nil {
			if errors.Is(err, syscall.EPIPE) {
				return nil // the reader of the output has closed it
			}
			return fmt.Errorf("standard output cannot be written: %w", err)
		}
		if failed != nil {
			return failed
		}
		if o.limit > 0 && left == 0 {
			return nil
		}
	}
	return nil
}
