package source

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// gone tells a shard that has left from a stream that has, and both from an answer that was merely
// out of date.
func (p *Poll) gone(ctx context.Context) error {
	shards, _, err := List(ctx, p.Client, p.Stream)
	switch {
	case errors.Is(err, ErrNoStream):
		return err
	case err != nil:
		return nil // not known: go on trying
	case slices.ContainsFunc(shards, func(s shard.Shard) bool { return s.ID == p.Shard }):
		return nil
	default:
		return &GoneError{p.Stream.Name, p.Shard, childrenOf(p.Shard, shards)}
	}
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
