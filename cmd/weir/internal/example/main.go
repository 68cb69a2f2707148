// Command example is a worker on AWS that prints the records of a stream: run as many of these
// processes as you like, they share the shards. The table is made once, by `weir store create`.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/store/dynamostore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	store := dynamostore.New(dynamodb.NewFromConfig(cfg), dynamostore.Options{Table: "weir"})
	options := weir.Options{Streams: []string{"orders"}, App: "billing"}
	c, err := weir.New(kinesis.NewFromConfig(cfg), store, options)
	if err != nil {
		log.Fatal(err)
	}
	err = c.Run(ctx, weir.HandlerFunc(func(ctx context.Context, b *weir.Batch) error {
		for _, r := range b.Records {
			fmt.Printf("%s %s\n", r.PartitionKey, r.Data)
		}
		return nil // the whole batch is done
	}))
	if err != nil {
		log.Fatal(err)
	}
}
