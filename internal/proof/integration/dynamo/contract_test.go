// Package dynamo_test runs the contract of stores with dynamostore on DynamoDB Local and dynalite.
// It also measures the cost.
package dynamo_test

import (
	"context"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/dynamostore"
	"github.com/weir-go/weir/store/storetest"
)

// kinds contains the servers for all tests of this package.
var kinds = []struct {
	name  string
	start func(testing.TB) *servers.Server
}{
	{"dynamodb-local", servers.DynamoDBLocal},
	{"dynalite", servers.Dynalite},
}

// open returns a store on s whose table exists.
func open(t testing.TB, s *servers.Server, table string) *dynamostore.Store {
	t.Helper()
	store := dynamostore.New(s.DynamoDB(), dynamostore.Options{Table: table})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := store.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	return store
}

func TestContract(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			s := kind.start(t)
			storetest.Run(t, storetest.Harness{
				Open:  func(t testing.TB) lease.Store { return open(t, s, "contract") },
				Again: func(t testing.TB, _ lease.Store) lease.Store { return open(t, s, "contract") },
				Steps: 100,
			})
		})
	}
}
