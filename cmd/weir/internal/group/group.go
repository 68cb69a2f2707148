// Package group is the command "weir group": it shows how the workers and the leases of an
// application stand, and changes that.
package group

import (
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
)

func Command(t cli.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "group",
		Short: "Look after the workers and the progress of an application",
		Long: `Looks after the group of workers that make an application: who holds which shard, how far it got and how far it is
behind; and changes that, for those who know why.

What can lose or repeat records (reset, delete, import) refuses to while workers run, writes the progress to a file
first, shows what it will do and asks. "weir doctor" says what is wrong with an application.`,
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
	in("change", resetCommand(t), deleteCommand(t), exportCommand(t), importCommand(t))
	return cmd
}
