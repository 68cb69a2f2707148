// Command first is the program of docs/guide/first-consumer.md: a worker on one machine that prints
// the records of a stream. Run as many of these processes as you like, they share the shards.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/store/sqlstore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "leases.db")
	if err != nil {
		return err
	}
	defer db.Close()
	store, err := sqlstore.New(db, sqlstore.Options{Dialect: sqlstore.SQLite})
	if err != nil {
		return err
	}
	if err := store.Migrate(ctx); err != nil { // makes the tables, unless they are there
		return err
	}
	options := weir.Options{Streams: []string{"flights"}, App: "first"}
	c, err := weir.New(kinesis.NewFromConfig(cfg), store, options)
	if err != nil {
		return err
	}
	return c.Run(ctx, weir.HandlerFunc(handle))
}

func handle(_ context.Context, b *weir.Batch) error {
	for _, r := range b.Records {
		fmt.Printf("%s %s %s\n", b.Shard, r.PartitionKey, r.Data)
	}
	return nil // the whole batch is done
}
