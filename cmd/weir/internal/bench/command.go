// Package bench is the command "weir bench", which measures a stream at a stated rate.
package bench

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/records"
)

// Command returns "weir bench" with its commands.
func Command(t cli.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure a stream at a stated rate",
		Long: `Measures how fast records are put into a stream, or read from it, at a stated
rate: throughput, latency, refusals by code, and what it costs.`,
		Example: `  weir bench put --stream flights --rate 500 --duration 30s
  weir bench read --stream flights --duration 30s    in another terminal, at the same time`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(putCommand(t), readCommand(t))
	return cmd
}

// common has the flags that both commands have.
type common struct {
	aws      awsconf.Flags
	out      cli.Format
	stream   string
	rate     float64
	lasts    time.Duration
	maxBytes int
}

// Limits of the flags.
const (
	mostRate = 1_000_000
	longest  = time.Hour
	mostSize = 1 << 20
)

func (c *common) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.stream, "stream", "", "stream, by `NAME` or ARN")
	cmd.Flags().Var(&cli.Span{To: &c.lasts}, "duration", "how long to measure, 1s to 1h")
	cmd.Flags().Var(&cli.Number[int]{
		To: &c.maxBytes, Parse: cli.ParseSize, Low: 1, High: 1 << 40, Want: "a size such as 64MiB",
	}, "max-bytes", "limit for the data and keys of all records")
	c.out.Register(cmd, "format of the result")
	c.aws.Register(cmd, false)
	c.aws.Role.Register(cmd)
}

func (c *common) check(cmd *cobra.Command) error {
	if err := cli.Require(cmd, "stream"); err != nil {
		return err
	}
	if err := awsconf.CheckStreams(c.stream); err != nil {
		return err
	}
	if c.lasts < time.Second || c.lasts > longest {
		return cli.Usagef("--duration %v: want 1s to 1h", c.lasts)
	}
	return nil
}

// rateFlag returns the flag --rate.
func rateFlag(to *float64) *cli.Number[float64] {
	return &cli.Number[float64]{
		To: to, Parse: cli.ParseFloat, Low: 0.1, High: mostRate, Want: "0.1 to 1000000",
	}
}

func putCommand(t cli.Terminal) *cobra.Command {
	o := putOptions{
		common: common{rate: 100, lasts: 10 * time.Second, maxBytes: 64 << 20},
		bytes:  1024, keys: 1000, price: usualPrice,
	}
	cmd := &cobra.Command{
		Use:   "put --stream NAME",
		Short: "Put records at a stated rate, and measure it",
		Long: `Puts records of random data into a stream at a stated rate, with package
producer, and prints the throughput, the latency, and the refusals by code. The
latency of a record is the time from its turn, by the rate, to its confirmation.
So it includes the time for which the stream was too slow for the rate.

A measurement that could put more than --max-bytes does not start. Against AWS
it first says what it costs at most: a provisioned stream is billed by PUT
payload units, 25 KB or a part of it per record of the stream, at about $0.014
per million. Check the price of your region and give it by --price. On-demand
streams are billed by the bytes, each record rounded up to 1 KB. Records that
the service refuses are not billed.

The records stay in the stream and reach its consumers: use a stream for tests.`,
		Example: `  weir bench put --stream test                                 1,000 records in 10 s
  weir bench put --stream test --rate 2000 --duration 1m --bytes 200 --aggregate
  weir bench put --stream test -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.common.check(cmd); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			return o.run(cmd.Context(), t)
		},
	}
	o.register(cmd)
	cmd.Flags().Var(rateFlag(&o.rate), "rate", "records per second")
	number := func(to *int, high int, name, text string) {
		n := &cli.Number[int]{To: to, Parse: strconv.Atoi, Low: 1, High: high}
		n.Want = "1 to " + strconv.Itoa(high)
		cmd.Flags().Var(n, name, text)
	}
	number(&o.bytes, mostSize, "bytes", "size of the data of each record")
	number(&o.keys, 1_000_000, "keys", "how many partition keys take turns")
	cmd.Flags().Var(&cli.Number[float64]{
		To: &o.price, Parse: cli.ParseFloat, Low: 0, High: 1000, Want: "0 to 1000",
	}, "price", "price of a million PUT payload units, in dollars")
	cmd.Flags().BoolVar(&o.pack, "aggregate", false, "pack records, in the format of the KPL")
	cmd.Flags().BoolVar(&o.loose, "no-order", false, "give up the order of each key")
	return cmd
}

func readCommand(t cli.Terminal) *cobra.Command {
	o := readOptions{
		common: common{lasts: 10 * time.Second, maxBytes: 64 << 20}, idle: time.Second, from: "latest",
	}
	cmd := &cobra.Command{
		Use:   "read --stream NAME",
		Short: "Read records, at most at a stated rate, and measure it",
		Long: `Reads a stream by polling and prints the throughput and the latency: the time
from a record's arrival in the stream until it was read. Latency needs correct
clocks, and says little with --from oldest. It ends after --duration, or when
--max-bytes were read. Reads that the service refuses are repeated. They are not
counted, and show as latency.

Polling uses throughput that all readers of the stream share: 2 MiB and 5 reads
per shard and second. It costs nothing on provisioned streams. On-demand streams
are billed by the bytes that are read.`,
		Example: `  weir bench read --stream test --duration 1m
  weir bench read --stream test --from oldest --rate 10000 --max-bytes 1GiB`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.common.check(cmd); err != nil {
				return err
			}
			from, err := records.ParseFrom(o.from, time.Now())
			if err != nil {
				return err
			}
			return explain.Orderly(cmd.Context(), o.run(cmd.Context(), t, from))
		},
	}
	o.register(cmd)
	cmd.Flags().Var(rateFlag(&o.rate), "rate", "most records per second (default no limit)")
	cmd.Flags().StringVar(&o.from, "from", "latest", "`WHERE` to start: "+records.FromHelp)
	cli.MustComplete(cmd, "from", "oldest\tthe oldest record in the stream",
		"latest\trecords that arrive from now on", "15m\tthe last quarter of an hour")
	cmd.Flags().Var(&cli.Span{To: &o.idle}, "idle-interval",
		"how often a shard without new records is read, 200ms or more")
	return cmd
}
