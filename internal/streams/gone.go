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
	// Children are the shard's children in the listing that showed that it has left. Their leases
	// need not wait for another listing. It is empty if they have left too, or if there are more
	// than a report may contain. The slice belongs to the caller.
	Children []shard.Shard
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("%v: %s of stream %s", ErrNoShard, e.Shard, e.Stream)
}

// Unwrap returns [ErrNoShard].
func (e *GoneError) Unwrap() error { return ErrNoShard }

// Gone finds out why the service does not know a shard. It returns a [*GoneError] if the shard has
// left the stream, and an error that wraps [ErrNoStream] if the stream does not exist. It returns
// nil if the shard is listed, which means that the answer was out of date, and also if the listing
// fails.
func Gone(ctx context.Context, client *kinesis.Client, s Stream, id string) error {
	shards, _, err := List(ctx, client, s)
	switch {
	case errors.Is(err, ErrNoStream):
		return err
	case err != nil:
		return nil // unknown: keep trying
	case slices.ContainsFunc(shards, func(s shard.Shard) bool { return s.ID == id }):
		return nil
	default:
		return &GoneError{s.Name, id, childrenOf(id, shards)}
	}
}

// Closed lists the stream and reports whether a shard is closed, and its children.
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

// mostChildren is how many children of one shard are accepted. The service has two at most. Every
// store refuses a report with more than 100, and with it the whole heartbeat.
const mostChildren = 100

// childrenOf returns the children of a shard in a listing. It returns none if there are more than
// mostChildren: the leader's listing makes their leases too.
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
