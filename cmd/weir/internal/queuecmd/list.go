package queuecmd

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/queues"
	"github.com/weir-go/weir/queue"
)

// listed is a queue in the output of list.
type listed struct {
	Name    string    `json:"name"`
	Status  string    `json:"status"` // CREATING, ACTIVE, UPDATING or DELETING
	Stream  string    `json:"stream"`
	Created time.Time `json:"created"`
	ARN     string    `json:"arn"`
}

func listCommand(t cli.Terminal) *cobra.Command {
	var (
		f      queues.Flags
		out    cli.Format
		stream string
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the queues of the account and region",
		Long:  "Lists the queues of the account and region, or those of one stream. It changes nothing.",
		Example: `  weir queue list
  weir queue list --stream orders -o json | jq -r '.queues[].name'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if stream != "" {
				if err := awsconf.CheckStreams(stream); err != nil {
					return err
				}
			}
			all, err := list(cmd.Context(), t, &f, stream)
			if err != nil {
				return err
			}
			if out == cli.FormatJSON {
				return json.NewEncoder(t.Out).Encode(map[string]any{"queues": all})
			}
			_, err = io.WriteString(t.Out, listText(all, t.Columns()))
			return err
		},
	}
	cmd.Flags().StringVar(&stream, "stream", "", "only queues of this stream, by `NAME` or ARN")
	out.Register(cmd, "output format")
	f.RegisterService(cmd)
	return cmd
}

func list(ctx context.Context, t cli.Terminal, f *queues.Flags, stream string) ([]listed, error) {
	client, _, err := f.AWS.KinesisQueues(ctx, t)
	if err != nil {
		return nil, err
	}
	arn := ""
	if stream != "" {
		about, err := f.AWS.Kinesis(ctx, t)
		if err != nil {
			return nil, err
		}
		answer, err := awsconf.AskStream(ctx, about, stream)
		if err != nil {
			return nil, err
		}
		arn = answer.ARN
	}
	found, err := queues.List(ctx, client, arn)
	all := make([]listed, len(found))
	for i, q := range found {
		all[i] = describeListed(q)
	}
	return all, err
}

func describeListed(q queue.Summary) listed {
	return listed{q.Name, q.Status, queues.StreamOf(q.StreamARNs...), q.Created.UTC(), q.ARN}
}

func listText(all []listed, columns int) string {
	if len(all) == 0 {
		return "There is no queue. \"weir queue create\" makes one.\n"
	}
	table := cli.Table{
		Columns: []cli.Column{{Head: "NAME", Least: 12, Keep: cli.KeepEnds}, {Head: "STATUS"}, {Head: "STREAM", Least: 12, Keep: cli.KeepEnds}, {Head: "CREATED"}, {Head: "ARN", Least: 12, Keep: cli.KeepEnd}},
		Cut:     []int{4, 2, 0},
	}
	for _, q := range all {
		table.Add(q.Name, q.Status, q.Stream, q.Created.Format(time.RFC3339), q.ARN)
	}
	return table.Text(columns)
}
