// Package queues finds the Kinesis queue that a command is about, and reads its dead letters.
package queues

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/queue"
)

// Flags are the flags that select a queue.
type Flags struct {
	AWS  awsconf.Flags
	Name string // name or ARN
}

// Register adds the flags to a command.
func (f *Flags) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Name, "queue", "", "queue, by `NAME` or ARN; \"weir queue list\" shows them")
	f.RegisterService(cmd)
	err := cmd.RegisterFlagCompletionFunc("queue", func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return f.complete(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag does not exist, which every test finds
	}
}

// complete returns the names of the queues, for shell completion.
func (f *Flags) complete(ctx context.Context) (names []cobra.Completion) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	client, _, err := f.AWS.KinesisQueues(ctx, cli.Silent)
	if err != nil {
		return nil
	}
	all, _ := List(ctx, client, "") // an error means no completion
	for _, q := range all {
		names = append(names, q.Name)
	}
	return names
}

// RegisterService adds the flags for the service, without the name of a queue.
func (f *Flags) RegisterService(cmd *cobra.Command) {
	f.AWS.Register(cmd, false)
	f.AWS.Role.Register(cmd)
}

// Check returns an error if the name is missing or wrong.
func (f *Flags) Check(cmd *cobra.Command) error {
	if err := cli.Require(cmd, "queue"); err != nil {
		return err
	}
	return awsconf.CheckQueue(f.Name)
}

// Queue is a queue that exists.
type Queue struct {
	*queue.Client
	Config aws.Config
	queue.Description
}

// Open creates a client and finds the queue.
func (f *Flags) Open(ctx context.Context, t cli.Terminal) (*Queue, error) {
	client, cfg, err := f.AWS.KinesisQueues(ctx, t)
	if err != nil {
		return nil, err
	}
	d, err := Find(ctx, client, f.Name)
	if err != nil {
		return nil, err
	}
	return &Queue{client, cfg, d}, nil
}

// Find returns the description of a queue that is given by name or ARN. If there is none, the error
// has the names of the queues that exist.
func Find(ctx context.Context, client *queue.Client, name string) (queue.Description, error) {
	if strings.HasPrefix(name, "arn:") {
		return client.DescribeQueue(ctx, name)
	}
	arn, err := client.Find(ctx, name)
	switch {
	case errors.Is(err, queue.ErrQueueNotFound) && !strings.Contains(err.Error(), "is being deleted"):
		all, listErr := List(ctx, client, "")
		if listErr != nil {
			return queue.Description{}, err
		}
		var names []string
		for _, q := range all {
			names = append(names, q.Name)
		}
		if len(names) == 0 {
			return queue.Description{}, fmt.Errorf("there is no queue %s, and no other queue in this account and region: check --region and --endpoint, or create it with \"weir queue create\"", name)
		}
		return queue.Description{}, fmt.Errorf("there is no queue %s; this account and region have %s: check --queue and --region", name, cli.List(names))
	case err != nil:
		return queue.Description{}, err
	}
	return client.DescribeQueue(ctx, arn)
}

// mostPages is the maximum number of pages of a listing. It guards against a server whose listing
// never ends.
const mostPages = 1000

// List returns the queues of the account and region, or of one stream, sorted by name.
func List(ctx context.Context, client queue.API, streamARN string) ([]queue.Summary, error) {
	all := []queue.Summary{}
	in := queue.ListQueuesInput{StreamARN: streamARN}
	for range mostPages {
		page, err := client.ListQueues(ctx, in)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Queues...)
		if page.NextToken == "" {
			slices.SortFunc(all, func(a, b queue.Summary) int { return strings.Compare(a.Name+a.ARN, b.Name+b.ARN) })
			return all, nil
		}
		if page.NextToken == in.NextToken {
			break
		}
		in.NextToken = page.NextToken
	}
	return nil, errors.New("the service's listing of queues does not end")
}

// StreamOf returns the name of the stream of a queue.
func StreamOf(arns ...string) string {
	var names []string
	for _, arn := range arns {
		names = append(names, awsconf.StreamName(arn))
	}
	return strings.Join(names, ", ")
}

// Stream returns the ARN of the queue's stream.
func (q *Queue) Stream() string {
	if len(q.Streams) == 0 {
		return ""
	}
	return q.Streams[0].StreamARN
}
