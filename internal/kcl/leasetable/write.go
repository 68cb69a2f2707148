package leasetable

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/internal/kcl"
)

// Write carries out one write. It returns false if the lease has changed since it was read: the
// lease was created meanwhile, or its counter is different.
func Write(ctx context.Context, client *dynamodb.Client, table string, w kcl.Write) (bool, error) {
	if w.Stays {
		return true, nil
	}
	var err error
	if w.New {
		_, err = client.PutItem(ctx, putInput(table, w))
	} else {
		_, err = client.UpdateItem(ctx, updateInput(table, w))
	}
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return false, nil
	}
	return err == nil, err
}

func putInput(table string, w kcl.Write) *dynamodb.PutItemInput {
	return &dynamodb.PutItemInput{
		TableName: &table, Item: attributes(w.Item()),
		ConditionExpression:      aws.String("attribute_not_exists(#key)"),
		ExpressionAttributeNames: map[string]string{"#key": kcl.KeyAttribute},
	}
}

func updateInput(table string, w kcl.Write) *dynamodb.UpdateItemInput {
	names := map[string]string{"#counter": kcl.CounterAttribute}
	values := map[string]types.AttributeValue{
		":seen": &types.AttributeValueMemberN{Value: strconv.FormatInt(w.Lease.Counter, 10)},
		":next": &types.AttributeValueMemberN{Value: strconv.FormatInt(w.Lease.Counter+1, 10)},
	}
	sets, removes := []string{"#counter = :next"}, []string{}
	for name, v := range attributes(w.Sets()) {
		names["#"+name], values[":"+name] = name, v
		sets = append(sets, "#"+name+" = :"+name)
	}
	for _, name := range kcl.Removes {
		names["#"+name] = name
		removes = append(removes, "#"+name)
	}
	return &dynamodb.UpdateItemInput{
		TableName: &table, Key: map[string]types.AttributeValue{kcl.KeyAttribute: &types.AttributeValueMemberS{Value: w.Lease.Key}},
		ConditionExpression: aws.String("#counter = :seen"),
		UpdateExpression: aws.String(
			"SET " + strings.Join(sets, ", ") + " REMOVE " + strings.Join(removes, ", "),
		),
		ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	}
}

// attributes translates an item.
func attributes(it kcl.Item) map[string]types.AttributeValue {
	out := make(map[string]types.AttributeValue, len(it))
	for name, v := range it {
		switch v.Type {
		case kcl.Text:
			out[name] = &types.AttributeValueMemberS{Value: v.Text}
		case kcl.Number:
			out[name] = &types.AttributeValueMemberN{Value: v.Text}
		case kcl.Texts:
			out[name] = &types.AttributeValueMemberSS{Value: v.Texts}
		}
	}
	return out
}

// createBound is the time limit for a new table to become active. The KCL has the same limit.
const createBound = 10 * time.Minute

// Create creates the table like the KCL does, with on-demand billing, and waits until it is active.
// A table that exists already is not an error.
func Create(ctx context.Context, client *dynamodb.Client, table string) error {
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &table,
		AttributeDefinitions: []types.AttributeDefinition{
			{
				AttributeName: aws.String(kcl.KeyAttribute),
				AttributeType: types.ScalarAttributeTypeS,
			},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String(kcl.KeyAttribute), KeyType: types.KeyTypeHash},
		},
		BillingMode: types.BillingModePayPerRequest,
	})
	var exists *types.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("table %s could not be made: %w", table, err)
	}
	waiter := dynamodb.NewTableExistsWaiter(
		client,
		func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay, o.MaxDelay = time.Second, 10*time.Second },
	)
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &table}, createBound); err != nil {
		return fmt.Errorf("table %s did not become active: %w", table, err)
	}
	return nil
}
