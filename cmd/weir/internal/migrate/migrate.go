// Package migrate is the command "weir migrate": it moves the progress of an application between
// weir and another client.
package migrate

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/internal/kcl"
)

// Command returns the command "weir migrate", with a subcommand for each client.
func Command(t cli.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Move progress between weir and another client",
		Long: `Moves the progress of an application from another client of Kinesis to weir, and
back. The checkpoints of each shard are translated, so that no record is lost.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(kclCommand(t))
	for _, c := range clients {
		cmd.AddCommand(foreignCommand(t, c))
	}
	return cmd
}

type kclOptions struct {
	move
	table   string
	streams []string
	at      string
	latest  string
	several bool

	starts kcl.Starts
}

func kclCommand(t cli.Terminal) *cobra.Command {
	o := kclOptions{move: move{client: "the KCL"}}
	cmd := &cobra.Command{
		Use:   "kcl --table TABLE --app NAME --to URL | --from URL",
		Short: "Move progress from the KCL for Java to weir, and back",
		Long: `Moves the progress of an application of the Kinesis Client Library (KCL) to weir
(--to), and back (--from). It reads and writes the lease table of KCL 1, 2 or 3,
of one stream or of several: checkpoints inside aggregates, finished shards, and
shards that are not begun.

The command refuses while workers of either side run. It reads the table until
every lease was still for the failover time and a margin, and names the worker
whose lease changes. With --watch it waits for the end of the old side instead.
With --to and --watch it also pauses the new application: start its workers at
any time, and they begin when the leases are there. Start workers of the KCL
after the command has ended.

Without --yes it shows the plan and changes nothing. With --yes it carries the
plan out, and compares the result with the plan. It can be run again: leases
that are in place stay, and newer progress is moved back only with --replace.

A lease at LATEST begins at the time when the command started, unless --latest
names another place. The KCL does not store the time of AT_TIMESTAMP, so leases
there need --at, and so do leases of weir at a time: start the KCL with that
time in its configuration.`,
		Example: `  weir migrate kcl --table billing --stream orders --to dynamodb:weir --app billing
  weir migrate kcl --table billing --stream orders --to dynamodb:weir --app billing --yes
  weir migrate kcl --table billing --stream orders --to dynamodb:weir --app billing --watch --yes
  weir migrate kcl --table billing --from dynamodb:weir --app billing --watch --yes`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			if o.from != "" {
				return o.back(cmd.Context(), t)
			}
			return o.there(cmd.Context(), t)
		},
	}
	o.register(cmd)
	return cmd
}

// register registers the flags.
func (o *kclOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(
		&o.table,
		"table",
		"",
		"lease `TABLE` of the KCL in DynamoDB; its default is the application's name",
	)
	f.StringArrayVar(
		&o.streams,
		"stream",
		nil,
		"stream of the application, by `NAME` or ARN; may be repeated (default: the streams "+
			"that the table or the store names)",
	)
	f.BoolVar(
		&o.several,
		"multi-stream",
		false,
		"with --from, make a new table for an application of several streams",
	)
	f.StringVar(
		&o.at,
		"at",
		"",
		"`WHERE` leases at AT_TIMESTAMP, or with --from at a time, begin: a time "+
			"(2026-01-31T12:00:00Z) or oldest",
	)
	f.StringVar(
		&o.latest,
		"latest",
		"",
		"`WHERE` leases at LATEST begin: a time or oldest (default: when the command started)",
	)
	f.DurationVar(
		&o.failover,
		"failover",
		kcl.DefaultFailover,
		"failoverTimeMillis of the KCL's configuration",
	)
	o.move.register(cmd)
}

// check checks the command line.
func (o *kclOptions) check(cmd *cobra.Command) (err error) {
	if err := cli.Require(cmd, "table", "app"); err != nil {
		return err
	}
	if err := o.move.check(cmd); err != nil {
		return err
	}
	if o.from == "" && o.several {
		return cli.Usagef(
			"--multi-stream is for --from: the table says whether it has several streams",
		)
	}
	if !stores.TableForm.MatchString(o.table) {
		return cli.Usagef(
			"--table %.140q is not the name of a DynamoDB table: use 3 to 255 of a-z, A-Z, 0-9, "+
				"_ . -",
			o.table,
		)
	}
	for _, s := range o.streams {
		if _, err := kcl.ParseStreamID(s); err == nil {
			continue // account:name:epoch, which chooses among streams of one name
		}
		if err := awsconf.CheckStreams(s); err != nil {
			return err
		}
	}
	if o.failover < time.Second || o.failover > time.Hour {
		return cli.Usagef(
			"--failover %v: want 1s to 1h, as failoverTimeMillis of the KCL",
			o.failover,
		)
	}
	if o.starts.AtTimestamp, err = parseStart("--at", o.at); err != nil {
		return err
	}
	o.starts.Latest, err = parseStart("--latest", o.latest)
	o.starts.LatestGiven = o.latest != ""
	return err
}
