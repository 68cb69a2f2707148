package queuecmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/queues"
	"github.com/weir-go/weir/queue"
)

func updateCommand(t cli.Terminal) *cobra.Command {
	var f queues.Flags
	var s settings
	cmd := &cobra.Command{
		Use:   "update --queue NAME",
		Short: "Change the settings of a queue",
		Long: `Changes the settings of a queue, and waits until they are in effect. Settings that
are not given stay as they are. Consumers continue meanwhile. Records in flight
keep their visibility timeout.

The stream of a queue and its start never change: create another queue.`,
		Example: `  weir queue update --queue billing --max-receives 50
  weir queue update --queue billing --visibility 2m`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.Check(cmd); err != nil {
				return err
			}
			a, err := s.attributes()
			if err != nil {
				return err
			}
			if a == (queue.Attributes{}) {
				return cli.Usagef("weir queue update changes nothing: add --max-receives, --no-dead-letters or --visibility")
			}
			q, err := f.Open(cmd.Context(), t)
			if err != nil {
				return err
			}
			d, err := q.UpdateQueue(cmd.Context(), q.ARN, a)
			if err != nil {
				return err
			}
			if _, err := awaitActive(cmd.Context(), q.Client, d); err != nil {
				return err
			}
			return cli.Textf(t.Out, "queue %s is changed\n", q.Name)
		},
	}
	f.Register(cmd)
	s.register(cmd, "default: as before")
	return cmd
}

func deleteCommand(t cli.Terminal) *cobra.Command {
	var f queues.Flags
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete --queue NAME",
		Short: "Delete a queue with its dead letters",
		Long: `Deletes a queue. Its consumers receive nothing more, and its dead letters cannot
be received any more. The records stay in the stream, and other queues and
applications still get them. If a queue with the same name is created later, it
does not continue where this one has stopped.

"weir queue copy-dead" saves the dead letters first.`,
		Example: `  weir queue delete --queue billing
  weir queue delete --queue billing --yes     without being asked`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.Check(cmd); err != nil {
				return err
			}
			if err := cli.CanConfirm(cmd, t, yes); err != nil {
				return err
			}
			q, err := f.Open(cmd.Context(), t)
			if err != nil {
				return err
			}
			return remove(cmd.Context(), t, q, yes)
		},
	}
	f.Register(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func remove(ctx context.Context, t cli.Terminal, q *queues.Queue, yes bool) error {
	if !yes {
		question := fmt.Sprintf("Delete queue %s of stream %s, with its dead letters?", q.Name, queues.StreamOf(q.Stream()))
		if err := cli.Confirm(ctx, t, question, q.Name); err != nil {
			return err
		}
	}
	if err := q.DeleteQueue(ctx, q.ARN); err != nil {
		return err
	}
	return cli.Textf(t.Out, "queue %s is being deleted\n", q.Name)
}
