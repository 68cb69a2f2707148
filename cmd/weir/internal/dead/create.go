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
		Short: "Make the table for letters in a database",
		Long: `Makes the table in which letters are kept, in Postgres, MySQL, MariaDB or a SQLite file. What exists already is left as it
is, so the command may be repeated. Workers do not make tables of a server by themselves: they need no permission for it,
only INSERT, UPDATE and SELECT. A SQLite file is also made by the first worker that names it.

A URL may have ?weir_prefix=P for the name of the table, which is P and "letters" ("weir_letters" by default).`,
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
				return cli.Usagef("--print is for Postgres and MySQL: a SQLite file gets its table when it is named")
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
				return errors.Join(letters.Table.Create(ctx), letters.Table.Writable(ctx))
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(t.Out, "%s is ready\n", place)
			return err
		},
	}
	l.registerPlace(cmd)
	cmd.Flags().BoolVar(&print, "print", false, "print the statement that makes it instead of doing so")
	return cmd
}
