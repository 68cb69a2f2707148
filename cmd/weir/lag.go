package main

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

// lag is how far a shard is behind its checkpoint, or why that is not known.
type lag struct {
	age time.Duration
	err error
	// waits says that a record is there that is not handled.
	waits bool
	// expired says that everything up to the checkpoint has left the shard, so records that came
	// after it may have, too.
	expired bool
}

// atOnce is how many shards are asked at once. Each is asked once: all readers of a shard share
// five reads a second.
const atOnce = 16

// askLags asks Kinesis about every lease that is not finished, a few at a time.
func askLags(ctx context.Context, t cli.Terminal, client *kinesis.Client, leases []lease.Lease, stream string) map[lease.Key]lag {
	var (
		mu    sync.Mutex
		asked sync.WaitGroup
		lags  = map[lease.Key]lag{}
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

func askLag(ctx context.Context, client *kinesis.Client, l lease.Lease) lag {
	if err := ctx.Err(); err != nil {
		return lag{err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	// At the record of the checkpoint, not after it: whether it is still there shows whether any
	// that follow can have expired.
	in := iteratorAt(l.Position)
	handled := ""
	if l.Position.Kind() == shard.Sequence && l.Position.Done() == shard.Whole {
		in.ShardIteratorType, handled = types.ShardIteratorTypeAtSequenceNumber, l.Position.SequenceNumber()
	}
	in.StreamName, in.ShardId = aws.String(l.Stream), aws.String(l.Shard)
	it, err := client.GetShardIterator(ctx, in)
	if err != nil {
		return lag{err: err}
	}
	page, err := client.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: it.ShardIterator, Limit: aws.Int32(2)})
	if err != nil {
		return lag{err: err}
	}
	found := lag{age: time.Duration(aws.ToInt64(page.MillisBehindLatest)) * time.Millisecond}
	found.waits = found.age > 0
	records := page.Records
	if handled != "" && len(records) > 0 {
		if aws.ToString(records[0].SequenceNumber) == handled {
			records = records[1:]
		} else {
			found.expired = oldestIsAfter(ctx, client, l, handled)
		}
	}
	if len(records) > 0 { // behind by this record too, which the answer counts as read
		now, dated := awsmiddleware.GetServerTime(page.ResultMetadata)
		if !dated {
			now = time.Now()
		}
		found.waits = true
		found.age = max(found.age, now.Sub(aws.ToTime(records[0].ApproximateArrivalTimestamp)), time.Millisecond)
	}
	return found
}

// oldestIsAfter reports whether the oldest record that the shard still keeps came after seq. A
// position by fan-out need not be the number of any record, so that seq is not there proves nothing
// by itself.
func oldestIsAfter(ctx context.Context, client *kinesis.Client, l lease.Lease, seq string) bool {
	in := iteratorAt(shard.Oldest)
	in.StreamName, in.ShardId = aws.String(l.Stream), aws.String(l.Shard)
	it, err := client.GetShardIterator(ctx, in)
	if err != nil {
		return false
	}
	page, err := client.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: it.ShardIterator, Limit: aws.Int32(1)})
	return err == nil && len(page.Records) > 0 && shard.CompareSequence(aws.ToString(page.Records[0].SequenceNumber), seq) > 0
}

// lookAt is what was seen at a moment, as it is judged.
func lookAt(at time.Time, v lease.View, lags map[lease.Key]lag) observe.Look {
	l := observe.Look{At: at, View: v, Lags: map[lease.Key]observe.Lag{}}
	for k, found := range lags {
		if found.err == nil {
			l.Lags[k] = observe.Lag{Behind: found.age, Expired: found.expired}
		}
	}
	return l
}

// askRetentions asks for how long streams keep records, but of those that are known; it hardly ever
// changes. Of streams that cannot be asked about it stays unknown.
func askRetentions(ctx context.Context, client *kinesis.Client, streams []string, known map[string]time.Duration) map[string]time.Duration {
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

// firstTrouble is an error among lags, always the same one, and how many there are.
func firstTrouble(lags map[lease.Key]lag) (n int, err error) {
	var keys []lease.Key
	for k, l := range lags {
		if l.err != nil && !errors.Is(l.err, context.Canceled) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return 0, nil
	}
	return len(keys), lags[slices.MinFunc(keys, lease.Key.Compare)].err
}

// worst is the largest lag that is known, and whose it is.
func worst(lags map[lease.Key]lag) (k lease.Key, most time.Duration) {
	most = -1
	for key, l := range lags {
		if l.err == nil && cmp.Or(cmp.Compare(most, l.age), key.Compare(k)) < 0 {
			k, most = key, l.age
		}
	}
	return k, max(most, 0)
}

// iteratorAt says where reading resumes at a position.
func iteratorAt(p shard.Position) *kinesis.GetShardIteratorInput {
	in := &kinesis.GetShardIteratorInput{}
	switch p.Kind() {
	case shard.Tip:
		in.ShardIteratorType = types.ShardIteratorTypeLatest
	case shard.Time:
		in.ShardIteratorType, in.Timestamp = types.ShardIteratorTypeAtTimestamp, aws.Time(p.Time())
	case shard.Sequence:
		in.StartingSequenceNumber = aws.String(p.SequenceNumber())
		in.ShardIteratorType = types.ShardIteratorTypeAfterSequenceNumber
		if p.Done() != shard.Whole { // a part of that record is still to be handled
			in.ShardIteratorType = types.ShardIteratorTypeAtSequenceNumber
		}
	default:
		in.ShardIteratorType = types.ShardIteratorTypeTrimHorizon
	}
	return in
}

// lagsFrom asks shards how far they are behind, by one read of each.
func lagsFrom(client *kinesis.Client) func(context.Context, []lease.Lease) (map[lease.Key]dashboard.Lag, error) {
	return func(ctx context.Context, leases []lease.Lease) (map[lease.Key]dashboard.Lag, error) {
		lags := askLags(ctx, cli.Silent, client, leases, "")
		known := map[lease.Key]dashboard.Lag{}
		for key, l := range lags {
			if l.err == nil {
				known[key] = dashboard.Lag{Behind: l.age, Expired: l.expired}
			}
		}
		if n, err := firstTrouble(lags); n > 0 {
			return known, fmt.Errorf("%s: %s", cli.Count(n, "shard"), explain.Error(err))
		}
		return known, nil
	}
}

// silentIn are the sessions that have not beaten for their failover time.
func silentIn(v lease.View, beats map[string]bool, length time.Duration) map[string]bool {
	silent := map[string]bool{}
	for _, w := range v.Workers {
		if beats != nil && !beats[w.Session] && length >= min(w.Times.Or(lease.DefaultTimes).Failover, time.Minute) {
			silent[w.Session] = true
		}
	}
	return silent
}
