package queuecmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/deadletters"
	"github.com/weir-go/weir/cmd/weir/internal/queues"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/queue"
)

func copyDeadCommand(t cli.Terminal) *cobra.Command {
	var (
		f    queues.Flags
		c    chosen
		app  string
		to   string
		drop bool
	)
	cmd := &cobra.Command{
		Use:   "copy-dead --queue NAME --dead PLACE (--all | RECORD ...)",
		Short: "Copy dead letters of a queue to a place that keeps them",
		Long: `Copies dead letters that a queue keeps itself to a place of dead letters, where
they outlive the retention of the stream. "weir dead" lists them there and
handles them again. The queue has no reason and no error, so the copies say only
how often the record was received.

With --drop, a dead letter is removed from the queue when its copy is durable.
Otherwise it stays in the queue. Two copies of a dead letter have the same ID, so
most places keep one of them.`,
		Example: `  weir queue copy-dead --queue billing --dead file:dead.ndjson --all
  weir queue copy-dead --queue billing --dead s3://my-bucket/dead --all --drop`,
		RunE: func(cmd *cobra.Command, ids []string) (err error) {
			if err := cli.Require(cmd, "queue", "dead"); err != nil {
				return err
			}
			if err := c.check(cmd, ids); err != nil {
				return err
			}
			place, err := deadletters.Parse(to)
			if err != nil {
				return err
			}
			return withLook(cmd, t, &f, func(ctx context.Context, q *queues.Queue, l *queues.Look) (err error) {
				letters, err := place.Open(ctx, t, &f.AWS, true, queues.StreamOf(q.Stream()))
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, letters.Close()) }()
				if err := letters.Check(ctx, false, letters.Writable); err != nil {
					return err
				}
				if app == "" {
					app = q.Name
				}
				n := 0
				_, err = c.each(ctx, l, ids, func(some []queue.Delivery) error {
					all := make([]deadletter.Letter, len(some))
					for i := range some {
						all[i] = copyOf(&some[i], q, app, time.Now())
					}
					if err := letters.Put(ctx, all); err != nil {
						return err
					}
					n += len(some)
					if !drop {
						return nil
					}
					_, err := l.Settle(ctx, q.AcknowledgeDeadLetters, some)
					return err
				})
				how := "copied to " + place.String()
				if drop {
					how += " and removed from the queue"
				}
				return said(t, err, n, how)
			})
		},
	}
	f.Register(cmd)
	deadletters.Register(cmd, &to, "where the copies are written")
	cmd.Flags().StringVar(&app, "app", "", "application `NAME` in the copies (default: the name of the queue)")
	cmd.Flags().BoolVar(&drop, "drop", false, "remove each dead letter from the queue when its copy is durable")
	c.register(cmd, "copy")
	return cmd
}

// copyOf returns the dead letter of weir for a dead letter of a queue.
func copyOf(d *queue.Delivery, q *queues.Queue, app string, now time.Time) deadletter.Letter {
	host, _ := os.Hostname() // only a hint for operators
	l := deadletter.Letter{
		Version: deadletter.Version, Stream: q.ARN, Shard: "queue", Position: d.RecordID,
		PartitionKey: d.PartitionKey, Arrived: d.Arrived, Data: d.Data,
		App: app, Worker: host + "/" + strconv.Itoa(os.Getpid()),
		GivenUp: now, Reason: deadletter.Attempts, Attempts: d.ReceiveCount, FirstFailure: d.FirstReceived, LastFailure: now, Together: 1,
	}
	l.ID = deadletter.ID(l.App, l.RecordID())
	l.Describe(fmt.Errorf("the queue delivered the record %s without an acknowledgement", cli.Count(d.ReceiveCount, "time")), "")
	return l
}
