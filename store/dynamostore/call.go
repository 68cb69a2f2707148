package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/internal/guard"
)

const (
	// withoutDeadline is the time limit of a call whose context has no deadline.
	withoutDeadline = 30 * time.Second
	// An attempt may take half of the remaining time, but at least shortestAttempt and at most
	// longestAttempt. After an attempt over a dead connection, there is then time for an attempt
	// over a new one.
	shortestAttempt = 500 * time.Millisecond
	longestAttempt  = 5 * time.Second
	// firstPause is the maximum pause after the first attempt. Each further pause is twice as long,
	// up to longestPause. Half of each pause is random.
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
	// inParallel is the maximum number of concurrent requests of one call. The SDK's default client
	// keeps the same number of connections.
	inParallel = 10
)

var retryable = retry.IsErrorRetryables(retry.DefaultRetryables)

// own gives the store private connections and disables retries.
func (s *Store) own(o *dynamodb.Options) { o.HTTPClient, o.Retryer = s.pool.client, aws.NopRetryer{} }

// call sends a request. It retries errors that a retry may fix, until ctx ends. A request without
// an answer may have taken effect, so every request must be repeatable.
func call[In, Out any](
	ctx context.Context, s *Store, what string, in *In, send func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error),
) (*Out, error) {
	for attempt := 0; ; attempt++ {
		bound := s.pool.longest
		if end, ok := ctx.Deadline(); ok {
			bound = max(shortestAttempt, min(bound, time.Until(end)/2))
		}
		one, cancel := context.WithTimeout(ctx, bound)
		out, err := send(one, in, s.own)
		timedOut := one.Err() != nil
		if errors.Is(one.Err(), context.DeadlineExceeded) {
			s.pool.closeIdle()
		}
		cancel()
		if err == nil {
			return out, nil
		}
		again := retryable.IsErrorRetryable(err).Bool()
		var answer smithy.APIError
		if errors.As(err, &answer) && !again {
			return nil, s.explain(ctx, what, err)
		}
		if ctx.Err() == nil && !timedOut && !again {
			return nil, fmt.Errorf("dynamostore: %s: %w", what, err)
		}
		if ctx.Err() == nil {
			pause := min(longestPause, firstPause<<min(attempt, 10))
			select {
			case <-ctx.Done():
			case <-time.After(pause/2 + rand.N(pause/2+1)):
				continue
			}
		}
		return nil, fmt.Errorf("dynamostore: %s: %w (%w)", what, ctx.Err(), err)
	}
}

// update executes c and returns the attributes that answer selects. It returns false if the
// condition is false.
func (s *Store) update(ctx context.Context, what string, c *change, answer types.ReturnValue) (item, bool, error) {
	out, err := call(ctx, s, what, c.updateInput(s.table, answer), s.client.UpdateItem)
	if conditionFailed(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return out.Attributes, true, nil
}

// put writes a whole row unless the row exists.
func (s *Store) put(ctx context.Context, what string, it item) (bool, error) {
	_, err := call(ctx, s, what, &dynamodb.PutItemInput{
		TableName: &s.table, Item: it,
		ConditionExpression: aws.String("attribute_not_exists(#r)"), ExpressionAttributeNames: map[string]string{"#r": attrRow},
	}, s.client.PutItem)
	if conditionFailed(err) {
		return false, nil
	}
	return err == nil, err
}

// replace replaces a row if the conditions of c are true.
func (s *Store) replace(ctx context.Context, what string, it item, c *change) (bool, error) {
	_, err := call(ctx, s, what, c.putInput(s.table, it), s.client.PutItem)
	if conditionFailed(err) {
		return false, nil
	}
	return err == nil, err
}

func (s *Store) delete(ctx context.Context, what string, c *change) (bool, error) {
	_, err := call(ctx, s, what, c.deleteInput(s.table), s.client.DeleteItem)
	if conditionFailed(err) {
		return false, nil
	}
	return err == nil, err
}

func conditionFailed(err error) bool {
	var failed *types.ConditionalCheckFailedException
	return errors.As(err, &failed)
}

// get reads one row. It returns nil if the row is absent.
func (s *Store) get(ctx context.Context, what, app, row string) (item, error) {
	out, err := call(ctx, s, what, &dynamodb.GetItemInput{
		TableName: &s.table, Key: newChange(app, row).key(), ConsistentRead: aws.Bool(true),
	}, s.client.GetItem)
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// query reads the rows of an application whose sort key begins with prefix. If session is not "",
// it only returns rows with that session as owner or revoked session. DynamoDB charges for all rows
// with the prefix, even if they are not returned. One answer of DynamoDB contains at most 1 MB.
func (s *Store) query(ctx context.Context, what, app, prefix, session string) ([]item, error) {
	in := &dynamodb.QueryInput{
		TableName: &s.table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression:    aws.String("#app = :app AND begins_with(#row, :prefix)"),
		ExpressionAttributeNames:  map[string]string{"#app": attrApp, "#row": attrRow},
		ExpressionAttributeValues: item{":app": text(app), ":prefix": text(prefix)},
	}
	if session != "" {
		in.FilterExpression = aws.String("#owner = :session OR #revoked = :session")
		in.ExpressionAttributeNames["#owner"] = attrOwner
		in.ExpressionAttributeNames["#revoked"] = attrRevoked
		in.ExpressionAttributeValues[":session"] = text(session)
	}
	var all []item
	for {
		out, err := call(ctx, s, what, in, s.client.Query)
		if err != nil {
			return nil, err
		}
		all = append(all, out.Items...)
		if len(out.LastEvaluatedKey) == 0 {
			return all, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// parallel calls do for 0 to n-1, several at a time. After an error it starts no further call. It
// waits for the running calls and returns the first error.
func parallel(n int, do func(i int) error) error {
	if n == 1 {
		return do(0)
	}
	var (
		wg    sync.WaitGroup
		next  atomic.Int64
		once  sync.Once
		first error
		stop  atomic.Bool
	)
	for range min(n, inParallel) {
		wg.Go(func() {
			for !stop.Load() {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := guard.Call(func() error { return do(i) }); err != nil {
					once.Do(func() { first = err })
					stop.Store(true)
				}
			}
		})
	}
	wg.Wait()
	return first
}
