package producer

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/shard"
)

// look starts a goroutine that looks up the stream, if a lookup is wanted and due. It returns when
// to call it again. The caller holds the mutex.
func (p *Producer) look(now time.Time) (again time.Time) {
	want := p.core.lookUp
	switch {
	case p.looking || p.aborted || !want.shards && !want.facts:
		return time.Time{}
	case now.Before(p.lookAgain):
		return p.lookAgain
	}
	p.looking = true
	p.calls.Go(func() { p.lookUp(want) })
	return time.Time{}
}

// lookUp requests the facts of the stream, its shards, or both.
func (p *Producer) lookUp(want lookUp) {
	var failed error
	if want.facts {
		f, err := describe(p.ctx, p.client, p.stream)
		failed = errors.Join(failed, p.learnFacts(f, err))
	}
	if want.shards {
		listed, err := p.list(want.all)
		failed = errors.Join(failed, p.learnShards(listed, want.all, err))
	}
	p.mu.Lock()
	p.looking = false
	if failed != nil {
		p.lookFails++
		p.core.startBy = time.Time{} // do not wait for the next attempt
	} else {
		p.lookFails = 0
	}
	// Pause after a success as well, because a listing may be older than the answer of a new shard.
	p.lookAgain = time.Now().Add(retry.Pause(100*time.Millisecond, 10*time.Second, p.lookFails+1))
	p.finish()
	p.mu.Unlock()
	p.signal()
	if failed != nil && p.ctx.Err() == nil {
		p.repeated.Warn("could not look up the stream; the producer retries", "err", failed)
	}
}

// learnFacts passes an answer on to the core. It returns the error if another attempt may succeed.
func (p *Producer) learnFacts(f facts, err error) error {
	if err != nil && classifyCall(err) != refused {
		return err
	}
	p.mu.Lock()
	auto := p.core.learnFacts(f)
	p.mu.Unlock()
	if err != nil {
		p.log.Info("no permission to describe the stream; records of up to 1 MiB are accepted", "err", err)
	}
	if auto {
		p.log.Info("the stream distributes records itself (AUTO); keys have no order, and records are not packed")
	}
	return nil
}

// list returns the open shards, or all shards.
func (p *Producer) list(all bool) ([]shard.Shard, error) {
	if all {
		listed, _, err := streams.List(p.ctx, p.client, p.stream)
		return listed, err
	}
	listed, _, err := streams.Open(p.ctx, p.client, p.stream)
	return listed, err
}

// learnShards passes a listing on to the core. It returns the error if another attempt may succeed.
func (p *Producer) learnShards(listed []shard.Shard, all bool, err error) error {
	denied := err != nil && !errors.Is(err, streams.ErrNoStream) && classifyCall(err) == refused
	switch {
	case denied:
		listed = nil
	case err != nil:
		return err
	case listed == nil:
		listed = []shard.Shard{}
	}
	p.mu.Lock()
	learned := p.core.learnShards(listed, all)
	known, shards := p.core.shards.known(), len(p.core.queues)
	p.mu.Unlock()
	if denied {
		p.log.Warn("no permission to list the shards of the stream; records are not packed", "err", err)
	}
	if learned == nil && known {
		p.tellShards(shards)
	}
	return learned
}

// describe returns the facts of the stream.
func describe(ctx context.Context, client Client, s streams.Stream) (facts, error) {
	ctx, cancel := context.WithTimeout(ctx, streams.CallTimeout)
	defer cancel()
	in := &kinesis.DescribeStreamSummaryInput{}
	in.StreamName, in.StreamARN = s.NameAndARN()
	out, err := client.DescribeStreamSummary(ctx, in, streams.Once)
	if err != nil {
		return facts{}, err
	}
	f := facts{known: true, maxRecord: usualRecord}
	if d := out.StreamDescriptionSummary; d != nil {
		f.auto = d.RecordDistributionStrategy == types.RecordDistributionStrategyAuto
		f.shards = int(aws.ToInt32(d.OpenShardCount))
		if kib := aws.ToInt32(d.MaxRecordSizeInKiB); kib > 0 {
			f.maxRecord = int(min(kib, largestRecord>>10)) << 10
		}
	}
	return f, nil
}
