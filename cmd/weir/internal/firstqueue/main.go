// The program of the guide's page about queues.
package main

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/weir-go/weir/queue"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
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
	c, err := queue.New(cfg, queue.Options{Queue: "orders"})
	if err != nil {
		return err
	}
	return c.Run(ctx, queue.RecordFunc(handle))
}

// handle handles one record. Nil acknowledges it. After an error it is handled again.
func handle(ctx context.Context, r queue.Record) error {
	log.Printf("%s: %s", r.Key(), r.Data)
	return ctx.Err()
}
