package weir

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/shard"
)

// births are when streams were created, so that one that was deleted and made anew under its name
// is recognized. Asking takes a call of its own, so it is done before the first listing and after
// the second, and again when a listing shows other shards under the names of those before.
type births struct {
	mu      sync.Mutex
	streams map[string]birth
	refused bool // that was said
}

type birth struct {
	born  int64     // Unix milliseconds, 0 when it is not known
	asked time.Time // zero: ask with the next listing
	// that starts are of the stream that was created then: the answer was the same before and after
	sure   bool
	starts map[string]source.Start // of its shards, by ID
}

// askAgain is after how long it is asked again without a reason.
const askAgain = time.Hour

// list lists a stream for the leader; with a start, for an application that has not seen the
// stream.
func (r *run) list(ctx context.Context, name string, start shard.Position) (group.Listing, error) {
	s := r.naming.source(name)
	b := r.births.of(name)
	var err error
	asks := b.asked.IsZero() || time.Since(b.asked) >= askAgain
	if asks {
		if b, err = r.ask(ctx, s, b); err != nil {
			return group.Listing{}, noStream(name, err)
		}
	}
	listing, starts, err := list(ctx, r.client, s, start)
	if other := others(b.starts, starts); err == nil && (other || !b.sure && !asks) {
		before := b.born
		b, err = r.ask(ctx, s, b)
		b.sure = err == nil && b.born == before && !other
		if err == nil && !b.sure {
			// After it was asked, so that what is listed is of that birth or a later one, which is
			// asked for after the next listing.
			listing, starts, err = list(ctx, r.client, s, start)
		}
	}
	if errors.Is(err, source.ErrNoStream) {
		b.asked = time.Time{}
	}
	if err == nil {
		b.starts, listing.Born = starts, b.born
	}
	r.births.set(name, b)
	return listing, noStream(name, err)
}

// ask asks when the stream was created. That the service will not say does not keep the stream from
// being read.
func (r *run) ask(ctx context.Context, s source.Stream, b birth) (birth, error) {
	born, err := source.Born(ctx, r.client, s)
	switch {
	case err == nil:
		return birth{born, time.Now(), b.sure && born == b.born, b.starts}, nil
	case source.Refused(err) && !unsigned(err): // else it mends itself, or nothing works
		r.births.mu.Lock()
		said := r.births.refused
		r.births.refused = true
		r.births.mu.Unlock()
		if !said {
			r.opts.Logger.Warn("no permission to ask when a stream was created (kinesis:DescribeStreamSummary): one that is deleted and made "+
				"anew under its name will only be noticed by checkpoints that are refused", "stream", s.Name, "err", err)
		}
		return birth{0, time.Now(), true, b.starts}, nil // nobody will say more
	default:
		return birth{b.born, time.Time{}, false, b.starts}, fmt.Errorf("asking when the stream was created: %w", err)
	}
}

// unsigned reports whether err says that a call was not signed as it should be: by a clock that is
// off, or with credentials that are over.
func unsigned(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "InvalidSignatureException", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture", "AuthFailure",
		"ExpiredTokenException", "ExpiredToken", "UnrecognizedClientException", "InvalidClientTokenId", "IncompleteSignature", "IncompleteSignatureException":
		return true
	}
	return false
}

func (all *births) of(name string) birth {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.streams[name]
}

func (all *births) set(name string, b birth) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.streams == nil {
		all.streams = map[string]birth{}
	}
	all.streams[name] = b
}

// others reports whether a listing shows other shards than one before: a shard's first sequence
// number never changes, and not all of them leave a stream at once.
func others(before, now map[string]source.Start) bool {
	same := 0
	for id, start := range before {
		switch s, here := now[id]; {
		case !here:
		case s != start:
			return true
		default:
			same++
		}
	}
	return len(before) > 0 && same == 0
}
