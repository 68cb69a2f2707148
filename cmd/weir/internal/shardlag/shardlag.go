// Package shardlag queries Kinesis for the lag of an application's shards behind their checkpoints.
package shardlag

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/internal/observe"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Lag is the lag of a shard behind its checkpoint, or the reason why it is not known.
type Lag struct {
	Age time.Duration
	Err error
	// Waits means that a record is not handled yet.
	Waits bool
	// Expired means that the record at the checkpoint and all earlier records have left the shard.
	// Later records may have expired too.
	Expired bool
}

// atOnce is the number of shards that are queried at the same time. Usually each shard is read only
// once, because all readers of a shard share five reads a second.
const atOnce = 16

// Ask queries the lag of every unfinished lease of a stream, atOnce of them at the same time. An
// empty stream means all streams.
func Ask(ctx context.Context, t cli.Terminal, client *kinesis.Client, leases []lease.Lease, stream string) map[lease.Key]Lag {
	var (
		mu    sync.Mutex
		asked sync.WaitGroup
		lags  = map[lease.Key]Lag{}
		turns = make(chan struct{}, atOnce)
		shown = cli.NewBar(t, "asking shards", len(leases))
	)
	for _, l := range leases {
		if l.Finished() || (stream != "" && l.Stream != stream) {
			shown.Advance(1)
			continue
		}
		turns <- struct{}{}
		asked.Go(func() {
			defer func() { <-turns }()
			found := askLag(ctx, client, l)
			shown.Advance(1)
			mu.Lock()
			defer mu.Unlock()
			lags[l.Key] = found
		})
	}
	asked.Wait()
	shown.Done()
	return lags
}

func askLag(ctx context.Context, client *kinesis.Client, l lease.Lease) Lag {
	if err := ctx.Err(); err != nil {
		return Lag{Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	// Read at the record of the checkpoint, not after it. If that record still exists, no record
	// after it can have expired.
	in := IteratorAt(l.Position)
	handled := ""
	if l.Position.Kind() == shard.Sequence && l.Position.Done() == shard.Whole {
		in.ShardIteratorType, handled = types.ShardIteratorTypeAtSequenceNumber, l.Position.SequenceNumber()
	}
	in.StreamName, in.ShardId = aws.String(l.Stream), aws.String(l.Shard)
	it, err := client.GetShardIterator(ctx, in)
	if err != nil {
		return Lag{Err: err}
	}
	page, err := client.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: it.ShardIterator, Limit: aws.Int32(2)})
	if err != nil {
		return Lag{Err: err}
	}
	found := Lag{Age: time.Duration(aws.ToInt64(page.MillisBehindLatest)) * time.Millisecond}
	found.Waits = found.Age > 0
	records := page.Records
	if handled != "" && len(records) > 0 {
		if aws.ToString(records[0].SequenceNumber) == handled {
			records = records[1:]
		} else {
			found.Expired = oldestIsAfter(ctx, client, l, handled)
		}
	}
	if len(records) > 0 { // this record is not handled, but the answer counts it as read
		now, dated := awsmiddleware.GetServerTime(page.ResultMetadata)
		if !dated {
			now = time.Now()
		}
		found.Waits = true
		found.Age = max(found.Age, now.Sub(aws.ToTime(records[0].ApproximateArrivalTimestamp)), time.Millisecond)
	}
	return found
}

// oldestIsAfter reports whether the oldest record in the shard came after seq. Only this proves
// that records have expired. A shard without a record with the number seq proves nothing, because
// the number in a fan-out position may belong to no record.
func oldestIsAfter(ctx context.Context, client *kinesis.Client, l lease.Lease, seq string) bool {
	in := IteratorAt(shard.Oldest)
	in.StreamName, in.ShardId = aws.String(l.Stream), aws.String(l.Shard)
	it, err := client.GetShardIterator(ctx, in)
	if err != nil {
		return false
	}
	page, err := client.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: it.ShardIterator, Limit: aws.Int32(1)})
	return err == nil && len(page.Records) > 0 && shard.CompareSequence(aws.ToString(page.Records[0].SequenceNumber), seq) > 0
}

// LookAt converts a view and lags to the input for computing the health of an application.
func LookAt(at time.Time, v lease.View, lags map[lease.Key]Lag) observe.Look {
	l := observe.Look{At: at, View: v, Lags: map[lease.Key]observe.Lag{}}
	for k, found := range lags {
		if found.Err == nil {
			l.Lags[k] = observe.Lag{Behind: found.Age, Expired: found.Expired}
		}
	}
	return l
}

// Historian is a store that may return the history of an application.
type Historian interface {
	RecentHistory(ctx context.Context, app string, since int64) ([]lease.HistoryChunk, error)
}

// Past returns the reports of workers about the shards of an application. If the store keeps no
// history, it returns nil and no error.
func Past(ctx context.Context, store Historian, app string, now time.Time) (observe.Past, error) {
	chunks, err := store.RecentHistory(ctx, app, now.Add(-lease.HistoryKept).Unix()/60)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	return observe.PastOf(chunks), err
}

// Retentions returns the retention of each stream. It queries only streams that are not in known,
// because a retention rarely changes. It omits streams that cannot be described.
func Retentions(ctx context.Context, client *kinesis.Client, streams []string, known map[string]time.Duration) map[string]time.Duration {
	kept := map[string]time.Duration{}
	for _, stream := range streams {
		if d, has := known[stream]; has {
			kept[stream] = d
			continue
		}
		call, cancel := context.WithTimeout(ctx, 10*time.Second)
		about, err := client.DescribeStreamSummary(call, &kinesis.DescribeStreamSummaryInput{StreamName: &stream})
		cancel()
		if err == nil && about.StreamDescriptionSummary != nil && about.StreamDescriptionSummary.RetentionPeriodHours != nil {
			kept[stream] = time.Duration(*about.StreamDescriptionSummary.RetentionPeriodHours) * time.Hour
		}
	}
	return kept
}

// FirstError returns the number of errors in lags and the error of the first lease. It ignores
// canceled queries.
func FirstError(lags map[lease.Key]Lag) (n int, err error) {
	var keys []lease.Key
	for k, l := range lags {
		if l.Err != nil && !errors.Is(l.Err, context.Canceled) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return 0, nil
	}
	return len(keys), lags[slices.MinFunc(keys, lease.Key.Compare)].Err
}

// Worst returns the largest known lag and its lease.
func Worst(lags map[lease.Key]Lag) (k lease.Key, most time.Duration) {
	most = -1
	for key, l := range lags {
		if l.Err == nil && cmp.Or(cmp.Compare(most, l.Age), key.Compare(k)) < 0 {
			k, most = key, l.Age
		}
	}
	return k, max(most, 0)
}

// IteratorAt returns the request for the iterator with which reading resumes at a position.
func IteratorAt(p shard.Position) *kinesis.GetShardIteratorInput {
	in := &kinesis.GetShardIteratorInput{}
	switch p.Kind() {
	case shard.Tip:
		in.ShardIteratorType = types.ShardIteratorTypeLatest
	case shard.Time:
		in.ShardIteratorType, in.Timestamp = types.ShardIteratorTypeAtTimestamp, aws.Time(p.Time())
	case shard.Sequence:
		in.StartingSequenceNumber = aws.String(p.SequenceNumber())
		in.ShardIteratorType = types.ShardIteratorTypeAfterSequenceNumber
		if p.Done() != shard.Whole { // part of that record is not handled yet
			in.ShardIteratorType = types.ShardIteratorTypeAtSequenceNumber
		}
	default:
		in.ShardIteratorType = types.ShardIteratorTypeTrimHorizon
	}
	return in
}

// Asker returns a function that queries the lag of shards for the dashboard.
func Asker(client *kinesis.Client) func(context.Context, []lease.Lease) (map[lease.Key]dashboard.Lag, error) {
	return func(ctx context.Context, leases []lease.Lease) (map[lease.Key]dashboard.Lag, error) {
		lags := Ask(ctx, cli.Silent, client, leases, "")
		known := map[lease.Key]dashboard.Lag{}
		for key, l := range lags {
			if l.Err == nil {
				known[key] = dashboard.Lag{Behind: l.Age, Expired: l.Expired}
			}
		}
		if n, err := FirstError(lags); n > 0 {
			return known, fmt.Errorf("%s: %s", cli.Count(n, "shard"), explain.Error(err))
		}
		return known, nil
	}
}

// SilentIn returns the sessions that had no heartbeat during an observation of the given length. It
// omits sessions whose failover time is longer, but no session if length is at least a minute.
// beats contains the sessions with a heartbeat; if it is nil, nobody watched.
func SilentIn(v lease.View, beats map[string]bool, length time.Duration) map[string]bool {
	silent := map[string]bool{}
	for _, w := range v.Workers {
		if beats != nil && !beats[w.Session] && length >= min(w.Times.Or(lease.DefaultTimes).Failover, time.Minute) {
			silent[w.Session] = true
		}
	}
	return silent
}
