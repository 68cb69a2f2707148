package main

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/store/dynamostore"
)

func (o *consumeOptions) registerWait(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.aws.wait, "wait", false, "go on until the service and the store answer, however long that takes, instead of ending after --connect-timeout")
}

// begin asks the streams and the store, and returns the store. A worker goes on whatever fails, for
// as long as it takes. So what is wrong from the start shows here; with --wait an outage is not
// wrong.
func (o *consumeOptions) begin(ctx context.Context, t terminal, client *kinesis.Client, url storeURL) (openStore, error) {
	if o.new.given {
		err := persist(ctx, o.aws.wait, o.aws.service, func() error { return o.new.makeAll(ctx, t, o.aws.patient(client), o.streams) })
		if err != nil {
			return openStore{}, err
		}
	}
	if err := o.aws.greet(ctx, client, o.streams...); err != nil {
		return openStore{}, err
	}
	store, err := url.open(ctx, t, &o.aws, true, false)
	if err != nil {
		return store, err
	}
	err = persist(ctx, o.aws.wait, store.peer, func() error {
		if o.newTable {
			if err := store.create(ctx); err != nil {
				return err
			}
			if table, ok := store.Store.(*dynamostore.Store); ok {
				if err := store.tellDifferences(ctx, t, table); err != nil {
					return err
				}
			}
		}
		_, err := store.view(ctx, o.app)
		return err
	})
	if err != nil {
		err = errors.Join(err, store.Close())
	}
	return store, err
}
