package dynamo_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/internal/proof/integration/capacity"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/dynamostore"
)

func TestTableThatIsMissingIsToldAndCreatedOnce(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			s := kind.start(t)
			store := dynamostore.New(s.DynamoDB(), dynamostore.Options{})
			_, err := store.Heartbeat(t.Context(), "app", lease.Report{Session: "a", First: true})
			if !errors.Is(err, lease.ErrSetup) || !strings.Contains(err.Error(), "--table-name weir") {
				t.Fatalf("before the table is there: %v", err)
			}
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if err := dynamostore.New(s.DynamoDB(), dynamostore.Options{}).Migrate(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if _, err := store.Heartbeat(t.Context(), "app", lease.Report{Session: "a", First: true}); err != nil {
				t.Fatal(err)
			}
			if err := store.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
			if v, err := store.View(t.Context(), "app", ""); err != nil || len(v.Workers) != 1 {
				t.Errorf("the table was not left as it is: %+v, %v", v, err)
			}
		})
	}
}

func TestTableOfAnotherShapeIsRefused(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			s := kind.start(t)
			_, err := s.DynamoDB().CreateTable(t.Context(), &dynamodb.CreateTableInput{
				TableName: aws.String("kcl"), BillingMode: types.BillingModePayPerRequest,
				AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("leaseKey"), AttributeType: types.ScalarAttributeTypeS}},
				KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("leaseKey"), KeyType: types.KeyTypeHash}},
			})
			if err != nil {
				t.Fatal(err)
			}
			ready := dynamodb.NewTableExistsWaiter(s.DynamoDB(), func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 20 * time.Millisecond })
			if err := ready.Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String("kcl")}, time.Minute); err != nil {
				t.Fatal(err)
			}
			store := dynamostore.New(s.DynamoDB(), dynamostore.Options{Table: "kcl"})
			if err := store.Migrate(t.Context()); !errors.Is(err, lease.ErrSetup) || !strings.Contains(err.Error(), "leaseKey") {
				t.Errorf("Migrate: %v", err)
			}
			for name, call := range map[string]func() error{
				"Heartbeat": func() error {
					_, err := store.Heartbeat(t.Context(), "app", lease.Report{Session: "a", First: true})
					return err
				},
				"View":  func() error { _, err := store.View(t.Context(), "app", ""); return err },
				"Lead":  func() error { _, err := store.Lead(t.Context(), "app", "a", 0); return err },
				"Leave": func() error { return store.Leave(t.Context(), "app", lease.Report{Session: "a"}) },
			} {
				if err := call(); !errors.Is(err, lease.ErrSetup) || !strings.Contains(err.Error(), "leaseKey") {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// TestMoreThanAPage uses more leases than fit into one answer of a megabyte.
func TestMoreThanAPage(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			s := kind.start(t)
			m := &capacity.Meter{}
			open(t, s, "pages")
			store := dynamostore.New(s.DynamoDB(m.Options), dynamostore.Options{Table: "pages"})
			at, err := shard.After(strings.Repeat("9", 129))
			if err != nil {
				t.Fatal(err)
			}
			long := func(i int) string { return fmt.Sprintf("%0*d", lease.MaxNameBytes, i) }
			who := strings.Repeat("w", lease.MaxSessionBytes)
			var create []lease.Action
			for i := range 1400 {
				create = append(create, lease.Action{Kind: lease.Create, Lease: lease.Lease{
					Key: lease.Key{Stream: long(0), Shard: long(i)}, Parents: []string{long(i), long(i)}, Epoch: 1, Owner: who, Heir: who, Last: who, Position: at}})
			}
			if _, err := store.Apply(t.Context(), "app", create); err != nil {
				t.Fatal(err)
			}
			var v lease.View
			c := m.Of(func() {
				var err error
				if v, err = store.View(t.Context(), "app", ""); err != nil {
					t.Fatal(err)
				}
			})
			if len(v.Leases) != len(create) {
				t.Errorf("the view has %d leases", len(v.Leases))
			}
			if c.Requests < 5 { // the group twice, and three pages
				t.Errorf("%d requests read %d leases: this was one page", c.Requests, len(v.Leases))
			}
			o, err := store.Heartbeat(t.Context(), "app", lease.Report{Session: who, First: true})
			if err != nil || len(o.Held) != len(create) {
				t.Errorf("the orders have %d leases, %v", len(o.Held), err)
			}
			if err := store.Remove(t.Context(), "app"); err != nil {
				t.Error(err)
			}
			if v, err := store.View(t.Context(), "app", ""); err != nil || len(v.Leases)+len(v.Workers) != 0 {
				t.Errorf("%d leases are left, %v", len(v.Leases), err)
			}
		})
	}
}

// DynamoDB Local supports capacity and protection. It ignores keys and classes, accepts tags but
// does not return them, and has no recovery.
func TestATableIsMadeWithItsSettings(t *testing.T) {
	s := kinds[0].start(t)
	open := func(settings dynamostore.Settings) *dynamostore.Store {
		return dynamostore.New(s.DynamoDB(), dynamostore.Options{Table: "settled", Settings: settings})
	}
	want := dynamostore.Settings{ReadCapacity: 5, WriteCapacity: 7, DeletionProtection: true, Tags: map[string]string{"team": "billing"}}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if err := open(want).Migrate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	const untold = "this server does not say which tags it has"
	if told, err := open(want).Differences(t.Context()); err != nil || strings.Join(told, "; ") != untold {
		t.Errorf("as wanted: %q, %v", told, err)
	}
	if _, err := s.DynamoDB().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: aws.String("settled")}); err == nil {
		t.Error("it is not protected from being deleted")
	}
	other := open(dynamostore.Settings{ReadCapacity: 1, WriteCapacity: 1, Tags: map[string]string{"team": "other", "stage": "test"}})
	if err := other.Migrate(t.Context()); err != nil {
		t.Error(err)
	}
	told, err := other.Differences(t.Context())
	if got := strings.Join(told, "; "); err != nil || got != "it has 5 read and 7 write units a second, not 1 and 1; "+untold {
		t.Errorf("as not wanted: %s, %v", got, err)
	}
	if _, err := other.Heartbeat(t.Context(), "app", lease.Report{Session: "a", First: true}); err != nil {
		t.Errorf("it cannot be used: %v", err)
	}
	keyed := open(dynamostore.Settings{KMSKey: "alias/weir", InfrequentAccess: true})
	if told, err := keyed.Differences(t.Context()); err != nil || len(told) != 2 {
		t.Errorf("what this server ignores: %q, %v", told, err)
	}
}
