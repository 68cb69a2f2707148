package stores

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/redact"
	"github.com/weir-go/weir/cmd/weir/internal/serverstore"
)

func Command(t cli.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Create the tables in which applications keep progress",
		Long:  "Prepares the places where applications keep their leases and progress.",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(createCommand(t))
	return cmd
}

func createCommand(t cli.Terminal) *cobra.Command {
	var url string
	var f awsconf.Flags
	var print bool
	var since int
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create the tables or the file for applications",
		Long: `Creates the tables or the file in which applications keep their leases and
progress. One table or file serves many applications. What already exists is not
changed, so the command can be repeated. Tables of an older version of weir are
upgraded. Workers of that version may keep running, and may also be restarted
afterwards.

A DynamoDB table has on-demand billing, unless its URL says otherwise. A
Postgres or MySQL database gets four tables. Workers create none of them, except
a DynamoDB table with --create-store, so they need no permission for it. A
SQLite file is also created by the first worker that uses it. For Redis nothing
is created, but its settings are checked.

` + aboutTable + `

A Postgres or MySQL URL may have ?weir_prefix=P for the names of the tables
("weir_" by default) and ?weir_schema=S for their schema or database. A Redis
URL may have ?weir_prefix=P ("weir:" by default) and ?weir_replicas=N, the
number of replicas that must confirm a write. Further servers of
redis-cluster:// and redis-sentinel:// are added with &addr=HOST:PORT.
redis-sentinel:// names sentinels and needs ?master_name=NAME. The user and
password before the @ are then those of the sentinels, and ?username= and
?password= those of the servers.`,
		Example: `  weir store create --store dynamodb:weir
  weir store create --store sqlite:weir.db
  weir store create --store 'dynamodb:weir?kms_key=alias/weir&point_in_time_recovery=true&tag=team=billing'
  weir store create --store dynamodb:weir --print
  weir store create --store postgres://weir@db/shop
  weir store create --store postgres://weir@db/shop --print | psql
  weir store create --store postgres://weir@db/shop --print --since 1 | psql`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Require(cmd, "store"); err != nil {
				return err
			}
			u, err := Parse(url)
			if err != nil {
				return err
			}
			if u.Kind == Memory {
				return cli.Usagef("memory: exists only inside a worker: leave out this command, because there is nothing to create")
			}
			if since != 0 && !print {
				return cli.Usagef("--since applies only to --print: without --print, the command finds out what is missing")
			}
			if print {
				return printSchema(t, u, since)
			}
			store, err := u.Open(cmd.Context(), t, &f, true, true)
			if err != nil {
				return err
			}
			err = store.ready(cmd.Context(), t)
			if err := errors.Join(err, store.Close()); err != nil {
				return err
			}
			_, err = fmt.Fprintf(t.Out, "%s is ready\n", redact.URL(url))
			return err
		},
	}
	Register(cmd, &url)
	cmd.Flags().BoolVar(&print, "print", false, "print the definition and do nothing: statements for Postgres or MySQL; for DynamoDB, commands for the AWS CLI, Terraform and CloudFormation")
	cmd.Flags().IntVar(&since, "since", 0, "with --print: only the statements that upgrade tables of this older version")
	f.Register(cmd, true)
	return cmd
}

// printSchema prints the statements that update the tables from a version. If since is 0, it prints
// the statements that create the tables, or the definitions of a DynamoDB table.
func printSchema(t cli.Terminal, u URL, since int) error {
	switch {
	case u.Kind == Dynamo && since == 0:
		_, err := fmt.Fprintln(t.Out, u.settings().Definitions(u.name[strings.LastIndex(u.name, "/")+1:]))
		return err
	case u.Kind == Dynamo:
		return cli.Usagef("--since applies only to Postgres and MySQL: a DynamoDB table has no versions")
	case u.Kind != Server:
		return cli.Usagef("--print applies only to Postgres, MySQL and DynamoDB: the other stores need no statements")
	}
	place, err := serverstore.Parse(u.name)
	if err != nil {
		return err
	}
	store, err := openServer(place)
	if err != nil {
		return err
	}
	schema := store.Schema()
	var bad error
	if since != 0 && schema != "" {
		schema, bad = store.SchemaSince(since)
	}
	if err := store.Close(); err != nil {
		return err
	}
	if bad != nil {
		return cli.Usagef("--since: %v", bad)
	}
	if schema == "" {
		return cli.Usagef("--print does not apply to Redis, which needs no tables")
	}
	_, err = fmt.Fprint(t.Out, schema)
	return err
}
