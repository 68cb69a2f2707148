package streams

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/shard"
)

// maxShards limits a listing, in case a server's paging never ends. It is more than twice the
// largest quota, including closed shards.
const maxShards = 400_000

// mostPages limits the number of pages, in case a server returns empty pages. A page has up to
// 1,000 shards.
const mostPages = 10_000

// everything makes list read all pages.
const everything = 0

// Lister can list shards, like a *kinesis.Client.
type Lister interface {
	ListShards(context.Context, *kinesis.ListShardsInput, ...func(*kinesis.Options)) (*kinesis.ListShardsOutput, error)
}

// List returns all shards of a stream that can still be read, from all pages. It also returns the
// service's time in its first answer, or zero if the answer had none.
func List(ctx context.Context, client Lister, s Stream) ([]shard.Shard, time.Time, error) {
	l, err := list(ctx, client, s, nil, everything)
	return l.shards, l.date, err
}

// Start is a hash of the first sequence number of a shard. It is only valid in this process. It
// needs less memory than the number, which matters for thousands of shards. If the Start of a shard
// ID changes, the stream was deleted and created again.
type Start uint64

var startSeed = maphash.MakeSeed()

// Open returns the open shards, and the service's time of that state in seconds. The time is zero
// if the service sent none.
//
// Each page of a listing shows the stream at a different time. A shard of a later page may be split
// after the first page was read. The listing then contains its children, but not the shard itself.
// If the shards do not fit on one page, Open therefore lists the shards that were open at the time
// of the first page. That set no longer changes.
func Open(ctx context.Context, client Lister, s Stream) ([]shard.Shard, time.Time, error) {
	now, err := list(ctx, client, s, &types.ShardFilter{Type: types.ShardFilterTypeAtLatest}, 1)
	if err != nil || !now.more || now.date.IsZero() {
		return now.shards, now.date, err
	}
	then, err := list(ctx, client, s, &types.ShardFilter{Type: types.ShardFilterTypeAtTimestamp, Timestamp: aws.Time(now.date)}, everything)
	if err != nil {
		return nil, now.date, err
	}
	if len(shard.Holes(rangesOf(then.shards))) == 0 {
		return then.shards, now.date, nil
	}
	// The timestamp has only seconds. The stream was created within that second, so the listing has
	// holes.
	all, err := list(ctx, client, s, &types.ShardFilter{Type: types.ShardFilterTypeAtLatest}, everything)
	return all.shards, now.date, err
}

func rangesOf(shards []shard.Shard) []shard.HashRange {
	all := make([]shard.HashRange, 0, len(shards))
	for _, s := range shards {
		all = append(all, s.Range)
	}
	return all
}

// Now returns the service's time, or zero if its answer had none.
func Now(ctx context.Context, client wire.Kinesis, s Stream) (time.Time, error) {
	l, err := list(ctx, client, s, &types.ShardFilter{Type: types.ShardFilterTypeAtLatest}, 1)
	return l.date, err
}

// Listing describes a stream for an application's leader, which creates leases from it.
type Listing struct {
	Shards []shard.Shard
	// Begin maps shards to the positions where the application begins. It is set only for a listing
	// with a start. Descendants of these shards are read from their beginning. Ancestors are not
	// read. With a nil map, every shard is read from [shard.Oldest].
	Begin map[string]shard.Position
	// Born is the creation time of the stream in Unix milliseconds, or 0 if unknown.
	Born int64
}

// ListFrom lists a stream for a reader that begins at start.
func ListFrom(ctx context.Context, client wire.Kinesis, s Stream, start shard.Position) (Listing, error) {
	l, _, err := listFrom(ctx, client, s, start)
	return l, err
}

// listFrom lists a stream for an application that begins at start. If start is zero, the
// application has already begun. listFrom also returns the Start of each shard.
func listFrom(ctx context.Context, client wire.Kinesis, s Stream, start shard.Position) (Listing, map[string]Start, error) {
	if start.Kind() == shard.Tip {
		// First list the tip, and then everything. If a shard is split in between, its children are
		// read.
		before := time.Now()
		open, date, err := Open(ctx, client, s)
		if err != nil {
			return Listing{}, nil, err
		}
		if date.IsZero() && wire.Real(client) == nil {
			date = before // only the SDK can put the service's date into an output
		}
		if date.IsZero() {
			return Listing{}, nil, fmt.Errorf("the service's answer has no date, which is needed to start at the tip of stream %s", s.Name)
		}
		all, err := list(ctx, client, s, nil, everything)
		return Listing{Shards: all.shards, Begin: beginAt(open, shard.At(date))}, all.starts, err
	}
	all, err := list(ctx, client, s, nil, everything)
	if err != nil || start.Kind() != shard.Time {
		return Listing{Shards: all.shards}, all.starts, err
	}
	if !all.date.IsZero() && start.Time().After(all.date.Add(time.Second)) {
		return Listing{}, nil, fmt.Errorf("Options.Start %s is in the future for stream %s, whose clock shows %s",
			start, s.Name, all.date.UTC().Format(time.RFC3339))
	}
	// Return every shard, including closed ones. Only a read shows whether a closed shard ended
	// before the start time. Reading such a shard for nothing is cheaper than skipping records
	// because of a wrong guess.
	return Listing{Shards: all.shards, Begin: beginAt(all.shards, start)}, all.starts, nil
}

func beginAt(shards []shard.Shard, at shard.Position) map[string]shard.Position {
	begin := make(map[string]shard.Position, len(shards))
	for _, sh := range shards {
		begin[sh.ID] = at
	}
	return begin
}

// FirstNumbers returns the first sequence numbers of a stream's shards by ID, as far as Kinesis
// returns them.
func FirstNumbers(ctx context.Context, client wire.Kinesis, s Stream) (map[string]string, error) {
	numbers := map[string]string{}
	_, err := listEach(ctx, client, s, nil, everything, func(id, first string) { numbers[id] = strings.Clone(first) })
	return numbers, err
}

// listing contains the result of the pages that were read.
type listing struct {
	shards []shard.Shard
	starts map[string]Start
	date   time.Time // date of the first page
	more   bool      // there are further pages
}

// list lists the shards that filter selects, on at most the given number of pages. listing.more
// reports whether there are further pages. With everything, list reads all pages. A nil filter
// selects all shards that can still be read. If the service sends more pages or shards than a
// stream can have, list returns an error, because a truncated listing would look as if shards were
// gone.
func list(ctx context.Context, client Lister, s Stream, filter *types.ShardFilter, pages int) (listing, error) {
	return listEach(ctx, client, s, filter, pages, nil)
}

// listEach is like list. If each is not nil, it also calls each with every shard and its first
// sequence number. After a retry it may call each again for the same shards.
func listEach(ctx context.Context, client Lister, s Stream, filter *types.ShardFilter, pages int, each func(id, first string)) (listing, error) {
	backoff := retry.Backoff{Low: 100 * time.Millisecond, High: 5 * time.Second}
	for {
		l, err := listOnce(ctx, client, s, filter, pages, each)
		switch {
		case err == nil:
			return l, nil
		case ctx.Err() != nil:
			return listing{}, context.Cause(ctx)
		case Code(err) == "ResourceNotFoundException":
			return listing{}, fmt.Errorf("%w: %w", ErrNoStream, err)
		case Code(err) == "ExpiredNextTokenException", Throttled(err):
		case backoff.Failures >= 2:
			return listing{}, err
		}
		if backoff.Failures >= 8 {
			return listing{}, err
		}
		if err := retry.Wait(ctx, backoff.Next()); err != nil {
			return listing{}, err
		}
	}
}

func listOnce(ctx context.Context, client Lister, s Stream, filter *types.ShardFilter, pages int, each func(id, first string)) (l listing, err error) {
	in := &kinesis.ListShardsInput{ShardFilter: filter}
	in.StreamName, in.StreamARN = s.NameAndARN()
	for n := 1; ; n++ {
		call, cancel := context.WithTimeout(ctx, CallTimeout)
		out, err := client.ListShards(call, in, Once)
		cancel()
		if err != nil {
			return l, err
		}
		if l.date.IsZero() {
			l.date, _ = awsmiddleware.GetServerTime(out.ResultMetadata)
		}
		if l.starts == nil { // usually there is one page
			l.shards, l.starts = make([]shard.Shard, 0, len(out.Shards)), make(map[string]Start, len(out.Shards))
		}
		for _, listed := range out.Shards {
			sh, err := fromSDK(listed)
			if err != nil {
				return l, err
			}
			l.shards = append(l.shards, sh)
			if listed.SequenceNumberRange != nil {
				first := aws.ToString(listed.SequenceNumberRange.StartingSequenceNumber)
				l.starts[sh.ID] = Start(maphash.String(startSeed, first))
				if each != nil {
					each(sh.ID, first)
				}
			}
		}
		if l.more = aws.ToString(out.NextToken) != ""; !l.more || n == pages {
			return l, nil
		}
		if len(l.shards) > maxShards || n == mostPages {
			return l, fmt.Errorf("the listing of stream %s does not end after %d shards on %d pages", s.Name, len(l.shards), n)
		}
		in = &kinesis.ListShardsInput{NextToken: out.NextToken}
	}
}

func fromSDK(in types.Shard) (shard.Shard, error) {
	// Clone the strings, because the SDK's strings refer to the whole answer and would keep it in
	// memory.
	sh := shard.Shard{ID: strings.Clone(aws.ToString(in.ShardId))}
	for _, p := range []*string{in.ParentShardId, in.AdjacentParentShardId} {
		if id := aws.ToString(p); id != "" {
			sh.Parents = append(sh.Parents, strings.Clone(id))
		}
	}
	if !named(sh) {
		return sh, fmt.Errorf("the service listed a shard with the ID %.140q and the parents %.140q", sh.ID, sh.Parents)
	}
	if in.SequenceNumberRange != nil {
		sh.Closed = aws.ToString(in.SequenceNumberRange.EndingSequenceNumber) != ""
	}
	var err error
	if sh.Range, err = hashRange(in.HashKeyRange); err != nil {
		return sh, fmt.Errorf("shard %s: %w", sh.ID, err)
	}
	return sh, nil
}

func hashRange(r *types.HashKeyRange) (shard.HashRange, error) {
	if r == nil {
		return shard.HashRange{End: shard.MaxHashKey}, nil
	}
	return shard.ParseHashRange(aws.ToString(r.StartingHashKey), aws.ToString(r.EndingHashKey))
}

// named reports whether a shard and its parents have valid Kinesis names. Every store then accepts
// the lease.
func named(s shard.Shard) bool {
	odd := func(id string) bool {
		return id == "" || len(id) > 128 || strings.ContainsFunc(id, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
		})
	}
	return !odd(s.ID) && !slices.ContainsFunc(s.Parents, odd)
}

// Children converts the child shards in an answer.
func Children(in []types.ChildShard) ([]shard.Shard, error) {
	if len(in) > mostChildren {
		return nil, fmt.Errorf("the service named %d child shards", len(in))
	}
	all := make([]shard.Shard, 0, len(in))
	for _, c := range in {
		sh := shard.Shard{ID: aws.ToString(c.ShardId), Parents: c.ParentShards}
		if !named(sh) || len(c.ParentShards) > 2 {
			return nil, fmt.Errorf("the service named a child shard %.140q with %d parents", sh.ID, len(c.ParentShards))
		}
		var err error
		if sh.Range, err = hashRange(c.HashKeyRange); err != nil {
			return nil, fmt.Errorf("child shard %s: %w", sh.ID, err)
		}
		all = append(all, sh)
	}
	return all, nil
}
