// Package recipe applies the effects of records in DynamoDB exactly once. It is the program of the
// guide's recipe.
package recipe

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/shard"
)

// Counter counts the records of each partition key, in a table with the string key "id". The
// position of each shard is in a separate item.
type Counter struct {
	Client *dynamodb.Client
	Table  string
}

// most is the maximum number of effects in a transaction. A transaction has at most 100 actions,
// and one of them moves the position.
const most = 99

// Handlers returns handlers for [weir.Consumer.RunShards].
func (c *Counter) Handlers() weir.ShardHandlers {
	return weir.ShardHandlers{
		Position: c.Position,
		Open: func(context.Context, weir.Term) (weir.ShardHandler, error) {
			return handler{c}, nil
		},
	}
}

// handler makes a Counter a [weir.ShardHandler]. It has no state for a shard.
type handler struct{ *Counter }

// Close does nothing.
func (handler) Close(context.Context, event.EndReason) {}

func id(name string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"id": text(name)}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number[N int | uint64](n N) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

func place(stream, shard string) string { return "position " + stream + " " + shard }

// Position returns the position up to which the effects of a shard are applied.
func (c *Counter) Position(ctx context.Context, stream, shardID string) (weir.Position, error) {
	out, err := c.Client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &c.Table, Key: id(place(stream, shardID)), ConsistentRead: aws.Bool(true),
	})
	if err != nil || out.Item == nil {
		return weir.Position{}, err
	}
	at, _ := out.Item["at"].(*types.AttributeValueMemberS)
	if at == nil {
		return weir.Position{}, errors.New("the item of the position has no \"at\"")
	}
	return shard.Parse(at.Value)
}

// Handle counts the records of a batch, in transactions of up to 99 keys.
func (c *Counter) Handle(ctx context.Context, b *weir.Batch) error {
	for todo := b.Records; len(todo) > 0; {
		counts, n := map[string]int{}, 0
		for ; n < len(todo); n++ { // a transaction allows one action per item
			key := todo[n].PartitionKey
			if counts[key] == 0 && len(counts) == most {
				break
			}
			counts[key]++
		}
		reached, err := c.apply(ctx, b, todo[:n], counts)
		if err != nil {
			return err
		}
		for len(todo) > 0 && todo[0].Position().SortKey() <= reached {
			todo = todo[1:]
		}
	}
	return nil
}

// apply counts records in one transaction. It returns the position up to which effects are applied.
// The transaction requires that the position in the table is before the first record. If it is not,
// apply returns the position in the table, which may be among the records, because an earlier owner
// may have divided the batches differently. After a later owner, apply returns weir.ErrLeaseLost.
func (c *Counter) apply(ctx context.Context, b *weir.Batch, records []weir.Record, counts map[string]int) (reached string, err error) {
	last := records[len(records)-1].Position()
	actions := []types.TransactWriteItem{{Update: &types.Update{
		TableName: &c.Table, Key: id(place(b.Stream, b.Shard)),
		ConditionExpression: aws.String("attribute_not_exists(epoch) OR (epoch <= :epoch AND pos < :first)"),
		UpdateExpression:    aws.String("SET epoch = :epoch, pos = :last, #at = :at"),

		ExpressionAttributeNames: map[string]string{"#at": "at"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":epoch": number(b.Epoch), ":first": text(records[0].Position().SortKey()), ":last": text(last.SortKey()), ":at": text(last.String()),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}}
	for key, n := range counts {
		actions = append(actions, types.TransactWriteItem{Update: &types.Update{
			TableName: &c.Table, Key: id("key " + key), UpdateExpression: aws.String("ADD n :n"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":n": number(n)},
		}})
	}
	_, err = c.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: actions})
	var cancelled *types.TransactionCanceledException
	switch {
	case err == nil:
		return last.SortKey(), nil
	case !errors.As(err, &cancelled), len(cancelled.CancellationReasons) == 0,
		aws.ToString(cancelled.CancellationReasons[0].Code) != "ConditionalCheckFailed":
		return "", err // also for a conflict, so that the batch is handled again
	}
	is := cancelled.CancellationReasons[0].Item
	epoch, _ := is["epoch"].(*types.AttributeValueMemberN)
	pos, _ := is["pos"].(*types.AttributeValueMemberS)
	if epoch == nil || pos == nil {
		return "", fmt.Errorf("the condition failed without an item: %w", err)
	}
	theirs, err := strconv.ParseUint(epoch.Value, 10, 64)
	if err != nil {
		return "", err
	}
	if theirs > b.Epoch {
		return "", weir.ErrLeaseLost
	}
	return pos.Value, nil
}
