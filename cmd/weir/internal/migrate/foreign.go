package migrate

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/redact"
	"github.com/weir-go/weir/cmd/weir/internal/serverstore"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/internal/foreign"
	"github.com/weir-go/weir/shard"
)

// other describes a client other than the KCL.
type other struct {
	client  foreign.Client
	name    string // of the command
	where   string // where the client keeps its checkpoints
	every   time.Duration
	setting string // the client's setting for every
	example string
}

// clients are the clients that have a command of the same form.
var clients = []other{
	{foreign.Harlow, "harlow", `The positions are in the DynamoDB table --table, or with --source in a
table of Postgres or MySQL, or in Redis. --group-table names the lease table of
a consumer group. Without a group, running workers show only by positions that
move, so the command watches the positions for --failover. A shard counts as
finished if a later shard has a position, as in the library itself. A position
may be inside an aggregate of the KPL; --repeat-last repeats the last record of
each shard.`,
		foreign.HarlowFlush, "WithMaxInterval, or LeaseDuration of a group",
		`  weir migrate harlow --table kinesis_consumer --stream orders --app billing --to dynamodb:weir
  weir migrate harlow --source postgres://db/app --table kinesis_consumer \
    --stream orders --app billing --to postgres://db/app --yes
  weir migrate harlow --source redis://cache --stream orders --app billing --from dynamodb:weir --yes`},
	{foreign.VMware, "vmware", `Reads and writes the DynamoDB table of vmware-go-kcl 1 and 2, whose default name
is that of the application.`,
		foreign.VMwareFailover, "FailoverTimeMillis",
		`  weir migrate vmware --stream orders --app billing --to dynamodb:weir
  weir migrate vmware --table billing-leases --stream orders --app billing --to dynamodb:weir --watch --yes
  weir migrate vmware --stream orders --app billing --from dynamodb:weir --yes`},
	{foreign.Kinsumer, "kinsumer", `Reads and writes the DynamoDB tables NAME_checkpoints, NAME_clients and
NAME_metadata, where NAME is the application of kinsumer. kinsumer counts a record
as done when it delivers it, so a record in progress may be lost when a process
dies; --rewind moves positions back in time.`,
		foreign.KinsumerCheck, "WithShardCheckFrequency",
		`  weir migrate kinsumer --stream orders --app billing --to dynamodb:weir
  weir migrate kinsumer --stream orders --app billing --to dynamodb:weir --rewind 1m --yes
  weir migrate kinsumer --stream orders --app billing --from dynamodb:weir --yes`},
	{foreign.Lifion, "lifion", `Reads and writes the item of a consumer group in the DynamoDB table of
lifion-kinesis 1, whose default name is ` + foreign.LifionTable + `. With
useAutoCheckpoints, lifion stores a position before your listener gets the
records, so records in memory are lost when a process dies; --rewind moves
positions back in time.`,
		foreign.LifionHeartbeat, "the heartbeat, which is fixed",
		`  weir migrate lifion --stream orders --app billing --to dynamodb:weir
  weir migrate lifion --stream orders --old-app @acme/billing --app billing --to dynamodb:weir --rewind 30s --yes
  weir migrate lifion --stream orders --app billing --from dynamodb:weir --yes`},
}

type foreignOptions struct {
	move
	of         other
	table      string
	groupTable string
	source     string
	oldApp     string
	stream     string
	initial    string
	latest     string
	rewind     time.Duration
	repeat     bool

	starts foreign.Starts
}

func foreignCommand(t cli.Terminal, of other) *cobra.Command {
	o := foreignOptions{of: of, move: move{client: of.client.String()}}
	cmd := &cobra.Command{
		Use:   of.name + " --stream NAME --app NAME --to URL | --from URL",
		Short: "Move progress from " + o.client + " to weir, and back",
		Long: "Moves the progress of an application of " + o.client + " to weir (--to), and back\n" +
			"(--from). " + of.where + `

The command refuses while workers of either side run. With --watch it waits for
the end of the old side instead; with --to it also pauses the new application,
whose workers may already wait. Without --yes it shows the plan and changes
nothing. It can be run again: rows that are in place stay, and newer progress is
moved back only with --replace.`,
		Example: of.example,
		Args:    cli.NoArgs,
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

// register registers the flags, some of which only some clients have.
func (o *foreignOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.stream, "stream", "", "stream of the application, by `NAME` or ARN")
	f.StringVar(&o.oldApp, "old-app", "",
		"`NAME` of the application in the old client (default: that of --app)")
	switch o.of.client {
	case foreign.Harlow:
		f.StringVar(&o.table, "table", "", "`TABLE` with the positions, in DynamoDB or in --source")
		f.StringVar(&o.groupTable, "group-table", "",
			"DynamoDB `TABLE` with the leases of a consumer group")
		f.StringVar(&o.source, "source", "",
			"`URL` of the server with the positions: redis://…, postgres://… or mysql://…")
		f.BoolVar(&o.repeat, "repeat-last", false, "repeat the last record of each shard")
	case foreign.VMware:
		f.StringVar(&o.table, "table", "", "DynamoDB `TABLE` (default: the name of --old-app)")
	case foreign.Lifion:
		f.StringVar(&o.table, "table", foreign.LifionTable, "DynamoDB `TABLE`")
	}
	if o.configured() {
		f.StringVar(&o.initial, "initial", "latest",
			"`WHERE` the old client begins shards without a position: latest, oldest or a time")
	} else {
		f.DurationVar(&o.rewind, "rewind", 0,
			"begin `TIME` before the last sign of life of the old side, if that is earlier")
	}
	f.StringVar(&o.latest, "latest", "",
		"`WHERE` shards at the tip begin: a time or oldest (default: the last sign of life of the "+
			"old side, or when the command started)")
	f.DurationVar(&o.failover, "failover", o.of.every,
		"longest `TIME` without a write of a running worker: "+o.of.setting)
	o.move.register(cmd)
}

// configured reports whether the client has a setting for the initial position.
func (o *foreignOptions) configured() bool {
	return o.of.client == foreign.Harlow || o.of.client == foreign.VMware
}

// check checks the command line.
func (o *foreignOptions) check(cmd *cobra.Command) (err error) {
	if err := cli.Require(cmd, "stream", "app"); err != nil {
		return err
	}
	if err := o.move.check(cmd); err != nil {
		return err
	}
	if err := awsconf.CheckStreams(o.stream); err != nil {
		return err
	}
	o.oldApp = cmp.Or(o.oldApp, o.app)
	odd := func(r rune) bool { return r <= ' ' || r == 0x7f }
	if len(o.oldApp) > 214 || strings.ContainsFunc(o.oldApp, odd) {
		return cli.Usagef("--old-app %.140q is not the name of an application", o.oldApp)
	}
	if o.of.client == foreign.VMware {
		o.table = cmp.Or(o.table, o.oldApp)
	}
	if err := o.checkTables(); err != nil {
		return err
	}
	if o.rewind < 0 || o.rewind > 365*24*time.Hour {
		return cli.Usagef("--rewind %v: want 0s to 8760h", o.rewind)
	}
	if o.initial == "latest" {
		o.starts.Initial = shard.Latest
	} else if o.starts.Initial, err = parseStart("--initial", o.initial); err != nil {
		return err
	}
	o.starts.Tip, err = parseStart("--latest", o.latest)
	return err
}

// checkTables checks where the old client keeps its checkpoints.
func (o *foreignOptions) checkTables() error {
	if o.of.client == foreign.Kinsumer {
		checkpoints, _, _ := foreign.KinsumerTables(o.oldApp)
		return checkTable("--old-app", checkpoints)
	}
	if o.groupTable != "" {
		if err := checkTable("--group-table", o.groupTable); err != nil {
			return err
		}
	}
	if o.source == "" {
		if o.table == "" {
			return cli.Usagef("--table is missing: the table with the positions, in DynamoDB or in " +
				"the database of --source")
		}
		return checkTable("--table", o.table)
	}
	place, err := serverstore.Parse(o.source)
	if err != nil {
		return cli.Usagef("--source %s: %v", redact.URL(o.source), err)
	}
	switch redis := place.Dialect() == 0; {
	case redis && o.table != "":
		return cli.Usagef("--table is for tables, and --source names Redis, which has none")
	case !redis && !sqlTable.MatchString(o.table):
		return cli.Usagef("--table %.140q is not the name of a table: use TABLE or SCHEMA.TABLE, "+
			"with a-z, A-Z, 0-9 and _", o.table)
	}
	return nil
}

func checkTable(flag, name string) error {
	if stores.TableForm.MatchString(name) {
		return nil
	}
	return cli.Usagef("%s: %.300q is not the name of a DynamoDB table: use 3 to 255 of a-z, A-Z, "+
		"0-9, _ . -", flag, name)
}

// place describes where the old client keeps its checkpoints, for people.
func (o *foreignOptions) place() string {
	switch {
	case o.of.client == foreign.Kinsumer:
		checkpoints, _, _ := foreign.KinsumerTables(o.oldApp)
		return checkpoints
	case o.source != "" && o.table == "":
		return redact.URL(o.source)
	case o.source != "":
		return fmt.Sprintf("%s in %s", o.table, redact.URL(o.source))
	}
	return o.table
}
