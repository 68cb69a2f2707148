package streams

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/shard"
)

// GoneError says that a stream exists and a shard has left it. It wraps [ErrNoShard].
type GoneError struct {
	Stream, Shard string
	// Children are those of the shard that the listing still names which showed that it has left,
	// as many as there may be: their leases need not wait for another listing. None when they have
	// left too. The slice is the caller's.
	Children []shard.Shard
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("%v: %s of stream %s", ErrNoShard, e.Shard, e.Stream)
}

// Unwrap returns [ErrNoShard].
func (e *GoneError) Unwrap() error { return ErrNoShard }

// Gone says what it means that the service does not know a shard: a [*GoneError] when the shard has
// left the stream, one that wraps [ErrNoStream] when the stream does not exist. It returns nil when
// the shard is listed, so that the answer was merely out of date, and when listing fails.
func Gone(ctx context.Context, client *kinesis.Client, s Stream, id string) error {
	shards, _, err := List(ctx, client, s)
	switch {
	case errors.Is(err, ErrNoStream):
		return err
	case err != nil:
		return nil // not known: go on trying
	case slices.ContainsFunc(shards, func(s shard.Shard) bool { return s.ID == id }):
		return nil
	default:
		return &GoneError{s.Name, id, childrenOf(id, shards)}
	}
}

// Closed asks the listing whether a shard is closed, and for its children.
func Closed(ctx context.Context, client *kinesis.Client, s Stream, id string) (bool, []shard.Shard, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	shards, _, err := List(ctx, client, s)
	if err != nil {
		return false, nil, err
	}
	closed := slices.ContainsFunc(shards, func(s shard.Shard) bool { return s.ID == id && s.Closed })
	return closed, childrenOf(id, shards), nil
}

// mostChildren is of how many children one shard is believed. The service has two at most; a report
// with more than 100 is refused by every store, and with it the whole beat.
const mostChildren = 100

// childrenOf returns the children of a shard that a listing names. None of more than there may be:
// the leader's listing makes their leases too.
func childrenOf(id string, listed []shard.Shard) (kids []shard.Shard) {
	for _, s := range listed {
		if slices.Contains(s.Parents, id) {
			kids = append(kids, s)
		}
	}
	if len(kids) > mostChildren {
		return nil
	}
	return kids
}
