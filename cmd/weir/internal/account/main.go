// Command account is a worker that assumes a role of another account to read a stream there. The
// store's table is in the worker's account.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/store/dynamostore"
)

const (
	stream = "arn:aws:kinesis:eu-west-1:123456789012:stream/orders"
	role   = "arn:aws:iam::123456789012:role/reads-orders"
)

// consumer reads the stream as the role, and keeps its leases with the credentials of cfg.
func consumer(cfg aws.Config) (*weir.Consumer, error) {
	assumed := stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), role, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = "billing"
		o.ExternalID = aws.String("weir-42") // if the role's trust policy asks for one
	})
	client := kinesis.NewFromConfig(cfg, func(o *kinesis.Options) {
		o.Region = "eu-west-1" // the stream's
		o.Credentials = aws.NewCredentialsCache(assumed)
	})
	store := dynamostore.New(dynamodb.NewFromConfig(cfg), dynamostore.Options{Table: "weir"})
	return weir.New(client, store, weir.Options{Streams: []string{stream}, App: "billing"})
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	c, err := consumer(cfg)
	if err != nil {
		log.Fatal(err)
	}
	err = c.Run(ctx, weir.RecordFunc(func(ctx context.Context, r weir.Record) error {
		fmt.Printf("%s %s\n", r.PartitionKey, r.Data)
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
}
