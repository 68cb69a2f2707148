package worker

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/queue"
	"github.com/weir-go/weir/sink/sqlsink"
)

// applyQueue inserts each record of a queue once, as a row of the table effects.
func (s Setup) applyQueue(ctx context.Context) error {
	db, err := sql.Open(s.Sink, s.Place)
	if err != nil {
		return err
	}
	defer db.Close()
	sink, err := sqlsink.NewQueue(db, sqlsink.QueueOptions{Dialect: sqlsink.Dialect(s.SinkDialect), App: s.App})
	if err != nil {
		return err
	}
	cfg := (&servers.Server{URL: s.Kinesis}).Config()
	cfg.Region = "us-east-1" // of kinesistest
	c, err := queue.New(cfg, queue.Options{
		Queue: s.Queue, App: s.App, Hold: 5 * time.Second, MinBackoff: 10 * time.Millisecond, MaxBackoff: 100 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	return c.Run(ctx, sink.Handler(func(ctx context.Context, tx *sql.Tx, records []queue.Record) error {
		for _, r := range records {
			if _, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO effects (shard, what) VALUES ('', '%s')", r.Data)); err != nil {
				return err
			}
		}
		return nil
	}))
}
