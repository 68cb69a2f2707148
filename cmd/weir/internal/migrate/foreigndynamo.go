package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/internal/foreign"
)

// scanAll reads a whole table.
func scanAll(
	ctx context.Context, client *dynamodb.Client, table string,
) (items []foreign.Item, err error) {
	in := &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)}
	for {
		out, err := client.Scan(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, it := range out.Items {
			items = append(items, itemOf(it))
		}
		if len(items) > foreign.MaxRows {
			return nil, fmt.Errorf("table %s has more than %d items: check its name", table, foreign.MaxRows)
		}
		if len(out.LastEvaluatedKey) == 0 {
			return items, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// queryAll reads the items of a table with one value of the partition key.
func queryAll(
	ctx context.Context, client *dynamodb.Client, table, name, value string,
) (items []foreign.Item, err error) {
	in := &dynamodb.QueryInput{
		TableName: &table, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("#k = :k"),
		ExpressionAttributeNames:  map[string]string{"#k": name},
		ExpressionAttributeValues: map[string]types.AttributeValue{":k": attributeOf(value)},
	}
	for {
		out, err := client.Query(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, it := range out.Items {
			items = append(items, itemOf(it))
		}
		if len(items) > foreign.MaxRows {
			return nil, fmt.Errorf("table %s has more than %d items of %s", table, foreign.MaxRows, value)
		}
		if len(out.LastEvaluatedKey) == 0 {
			return items, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// getItem reads an item. It returns nil if there is none.
func getItem(
	ctx context.Context, client *dynamodb.Client, table string, key foreign.Item,
) (foreign.Item, error) {
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &table, Key: attributesOf(key), ConsistentRead: aws.Bool(true),
	})
	if err != nil || out.Item == nil {
		return nil, err
	}
	return itemOf(out.Item), nil
}

// putNew writes an item unless it exists.
func putNew(
	ctx context.Context, client *dynamodb.Client, table string, it foreign.Item, key string,
) error {
	_, err := client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &table, Item: attributesOf(it),
		ConditionExpression:      aws.String("attribute_not_exists(#k)"),
		ExpressionAttributeNames: map[string]string{"#k": key},
	})
	var there *types.ConditionalCheckFailedException
	if errors.As(err, &there) {
		return nil
	}
	return err
}

// update carries out an update. It returns false if its condition does not hold.
func update(
	ctx context.Context, client *dynamodb.Client, table string, u foreign.Update,
) (bool, error) {
	_, err := client.UpdateItem(ctx, updateInput(table, u))
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return false, nil
	}
	return err == nil, err
}

// overwrite carries out an update without a condition.
func overwrite(
	ctx context.Context, client *dynamodb.Client, table string, u foreign.Update,
) (bool, error) {
	in := updateInput(table, u)
	in.ConditionExpression = nil
	delete(in.ExpressionAttributeNames, "#k")
	_, err := client.UpdateItem(ctx, in)
	return err == nil, err
}

// updateInput writes an update as expressions.
func updateInput(table string, u foreign.Update) *dynamodb.UpdateItemInput {
	e := expression{names: map[string]string{}, values: map[string]types.AttributeValue{}}
	var sets, removes, conditions []string
	for _, a := range u.Set {
		sets = append(sets, e.path(a.Path)+" = "+e.value(a.Value))
	}
	for _, p := range u.Remove {
		removes = append(removes, e.path(p))
	}
	for _, a := range u.If {
		if a.Value == nil {
			conditions = append(conditions, "attribute_not_exists("+e.path(a.Path)+")")
		} else {
			conditions = append(conditions, e.path(a.Path)+" = "+e.value(a.Value))
		}
	}
	if len(conditions) == 0 {
		e.names["#k"] = slices.Sorted(maps.Keys(u.Key))[0]
		conditions = []string{"attribute_not_exists(#k)"}
	}
	text := ""
	if len(sets) > 0 {
		text = "SET " + strings.Join(sets, ", ")
	}
	if len(removes) > 0 {
		text += " REMOVE " + strings.Join(removes, ", ")
	}
	in := &dynamodb.UpdateItemInput{
		TableName: &table, Key: attributesOf(u.Key), UpdateExpression: &text,
		ConditionExpression:      aws.String(strings.Join(conditions, " AND ")),
		ExpressionAttributeNames: e.names,
	}
	if len(e.values) > 0 {
		in.ExpressionAttributeValues = e.values
	}
	return in
}

// expression collects the names and values of an expression.
type expression struct {
	names  map[string]string
	values map[string]types.AttributeValue
}

func (e *expression) path(p foreign.Path) string {
	var parts []string
	for _, name := range p {
		short := fmt.Sprintf("#n%d", len(e.names))
		for known, n := range e.names {
			if n == name {
				short = known
			}
		}
		e.names[short] = name
		parts = append(parts, short)
	}
	return strings.Join(parts, ".")
}

func (e *expression) value(v any) string {
	short := fmt.Sprintf(":v%d", len(e.values))
	e.values[short] = attributeOf(v)
	return short
}

// createTable makes a table whose key attributes are strings, unless it exists, and waits for it.
func createTable(ctx context.Context, client *dynamodb.Client, table string, keys ...string) error {
	in := &dynamodb.CreateTableInput{TableName: &table, BillingMode: types.BillingModePayPerRequest}
	for i, key := range keys {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(key), AttributeType: types.ScalarAttributeTypeS,
		})
		in.KeySchema = append(in.KeySchema, types.KeySchemaElement{
			AttributeName: aws.String(key),
			KeyType:       []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i],
		})
	}
	_, err := client.CreateTable(ctx, in)
	var exists *types.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("table %s could not be made: %w", table, err)
	}
	waiter := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Second, 10*time.Second
	})
	err = waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &table}, scanBound)
	if err != nil {
		return fmt.Errorf("table %s did not become active: %w", table, err)
	}
	return nil
}

func itemOf(in map[string]types.AttributeValue) foreign.Item {
	it := make(foreign.Item, len(in))
	for name, v := range in {
		it[name] = valueOf(v)
	}
	return it
}

func valueOf(v types.AttributeValue) any {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return foreign.Number(v.Value)
	case *types.AttributeValueMemberBOOL:
		return v.Value
	case *types.AttributeValueMemberNULL:
		return nil
	case *types.AttributeValueMemberM:
		return map[string]any(itemOf(v.Value))
	case *types.AttributeValueMemberL:
		var all []any
		for _, e := range v.Value {
			all = append(all, valueOf(e))
		}
		return all
	}
	return fmt.Sprintf("%T", v) // no client writes other types
}

func attributesOf(it foreign.Item) map[string]types.AttributeValue {
	out := make(map[string]types.AttributeValue, len(it))
	for name, v := range it {
		out[name] = attributeOf(v)
	}
	return out
}

func attributeOf(v any) types.AttributeValue {
	switch v := v.(type) {
	case string:
		return &types.AttributeValueMemberS{Value: v}
	case foreign.Number:
		return &types.AttributeValueMemberN{Value: string(v)}
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}
	case map[string]any:
		return &types.AttributeValueMemberM{Value: attributesOf(v)}
	case foreign.Item:
		return &types.AttributeValueMemberM{Value: attributesOf(v)}
	}
	return &types.AttributeValueMemberNULL{Value: true}
}
