package dead

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/deadletters"
)

func createCommand(t cli.Terminal) *cobra.Command {
	var l Flags
	print := false
	cmd := &cobra.Command{
		Use:   "create --dead PLACE",
		Short: "Create the table for dead letters in a database",
		Long: `Creates the table for dead letters in Postgres, MySQL, MariaDB or a SQLite file.
A table that exists is not changed, so the command can be repeated. Workers do
not create tables on a server: they need INSERT, UPDATE and SELECT, and no
permission to create tables. A SQLite file is also created by the first worker
that uses it.

A URL may set ?weir_prefix=P. The name of the table is P followed by "letters"
(by default "weir_letters").`,
		Example: `  weir dead create --dead postgres://weir@db/shop
  weir dead create --dead postgres://weir@db/shop --print | psql
  weir dead create --dead sqlite:letters.db`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			ctx := cmd.Context()
			if err := cli.Require(cmd, "dead"); err != nil {
				return err
			}
			place, err := deadletters.Parse(l.Dead)
			switch {
			case err != nil:
				return err
			case place.Kind != deadletters.Server && place.Kind != deadletters.SQLite:
				return cli.Usagef("there is nothing to make for %s: tables of databases are made", place)
			case print && place.Kind == deadletters.SQLite:
				return cli.Usagef("--print applies only to Postgres and MySQL: a SQLite file gets its table when it is used")
			}
			letters, err := place.Open(ctx, t, &l.AWS, true)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, letters.Close()) }()
			if print {
				_, err := fmt.Fprintf(t.Out, "%s;\n", letters.Table.Schema())
				return err
			}
			err = letters.Check(ctx, false, func(ctx context.Context) error {
				return errors.Join(letters.Table.Migrate(ctx), letters.Table.Writable(ctx))
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(t.Out, "%s is ready\n", place)
			return err
		},
	}
	l.registerPlace(cmd)
	cmd.Flags().BoolVar(&print, "print", false, "print the statement that creates it, and do nothing")
	return cmd
}
