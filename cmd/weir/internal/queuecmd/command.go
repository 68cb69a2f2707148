// Package queuecmd implements the command "weir queue".
package queuecmd

import (
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/consume"
)

// Command returns the command "weir queue".
func Command(t cli.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "queue",
		SuggestFor: []string{"queues", "q"},
		Short:      "Create, watch and consume queues of a stream",
		Long: `Works with the queues of Kinesis. A queue hands the records of an on-demand
stream to any number of consumers, without shards, leases or a store. It delivers
a record again if no consumer acknowledges it in time, and keeps records that
were received too often as dead letters.

Records stay in the stream. Queues of the same stream are independent of each
other, and of applications that read the shards.

A queue needs an on-demand stream: "weir stream create --shards on-demand". The
calls go to other hosts than those of streams.`,
		Example: `  weir queue create --queue billing --stream orders
  weir queue consume --queue billing --exec ./load
  weir queue describe --queue billing --watch
  weir queue dead list --queue billing`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(createCommand(t), listCommand(t), describeCommand(t), updateCommand(t), deleteCommand(t),
		consume.QueueCommand(t), deadCommand(t), copyDeadCommand(t))
	return cmd
}
