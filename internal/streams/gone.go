package streams

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/shard"
)

// GoneError is returned if a stream exists but a shard has left it. It wraps [ErrNoShard].
type GoneError struct {
	Stream, Shard string
	// Children are the shard's children, from the listing that showed that the shard has left.
	// Their leases can be created without another listing. The slice is empty if the children have
	// left too, or if there are more than mostChildren. It belongs to the caller.
	Children []shard.Shard
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("%v: %s of stream %s", ErrNoShard, e.Shard, e.Stream)
}

// Unwrap returns [ErrNoShard].
func (e *GoneError) Unwrap() error { return ErrNoShard }

// Gone determines why Kinesis does not know a shard. It returns a [*GoneError] if the shard has
// left the stream, and an error that wraps [ErrNoStream] if the stream does not exist. It returns
// nil if the shard is listed, because then Kinesis' earlier answer was out of date. It also returns
// nil if the listing fails.
func Gone(ctx context.Context, client wire.Kinesis, s Stream, id string) error {
	shards, _, err := List(ctx, client, s)
	switch {
	case errors.Is(err, ErrNoStream):
		return err
	case err != nil:
		return nil // the reason is unknown, so the caller retries
	case slices.ContainsFunc(shards, func(s shard.Shard) bool { return s.ID == id }):
		return nil
	default:
		return &GoneError{s.Name, id, childrenOf(id, shards)}
	}
}

// Closed lists the stream. It reports whether a shard is closed, and returns its children.
func Closed(ctx context.Context, client wire.Kinesis, s Stream, id string) (bool, []shard.Shard, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	shards, _, err := List(ctx, client, s)
	if err != nil {
		return false, nil, err
	}
	closed := slices.ContainsFunc(shards, func(s shard.Shard) bool { return s.ID == id && s.Closed })
	return closed, childrenOf(id, shards), nil
}

// mostChildren is the maximum number of children of a shard. Kinesis has at most two. A worker
// reports the children of a shard with its heartbeat. Every store rejects a report with more than
// 100 children, and then the whole heartbeat fails.
const mostChildren = 100

// childrenOf returns the children of a shard in a listing. It returns nil if there are more than
// mostChildren. The leader creates the leases of such children from its own listing.
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
