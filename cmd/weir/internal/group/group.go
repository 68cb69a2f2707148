// Package group implements the command "weir group". The command shows the state of an
// application's workers and leases, and changes it.
package group

import (
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
)

func Command(t cli.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "group",
		Short: "Show and change the progress of an application",
		Long: `Shows the workers and the progress of an application: the owner of each shard,
its checkpoint and its lag. Other commands change them.

The commands that can lose or repeat records (reset, delete, import) refuse
while workers run, write the progress to a file first, show what they will do,
and ask for confirmation. "weir doctor" says what is wrong with an application.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddGroup(&cobra.Group{ID: "look", Title: "Looking:"}, &cobra.Group{ID: "run", Title: "With running workers:"},
		&cobra.Group{ID: "change", Title: "Changing progress:"})
	in := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			cmd.AddCommand(c)
		}
	}
	in("look", listCommand(t), describeCommand(t), lagCommand(t), planCommand(t))
	in("run", pauseCommand(t, true), pauseCommand(t, false), drainCommand(t))
	in("change", resetCommand(t), pruneCommand(t), deleteCommand(t), exportCommand(t), importCommand(t))
	return cmd
}
