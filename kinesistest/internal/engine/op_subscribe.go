package engine

import (
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// SubscribeToShard would begin an event stream of a shard's records. The
// request is understood, so that calls can be counted and controlled, and then
// refused: event streams are not built.
type SubscribeToShard struct {
	consumerRef
	shard, kind, sequence optText
	at                    codec.Opt[time.Time]
	dryRun                optBool
}

func (r *SubscribeToShard) Fields() codec.Fields {
	return codec.Fields{
		{Name: "ConsumerARN", Into: &r.consumer},
		{Name: "ShardId", Into: &r.shard},
		{Name: "StartingPosition", Into: codec.Fields{
			{Name: "Type", Into: &r.kind},
			{Name: "SequenceNumber", Into: &r.sequence},
			{Name: "Timestamp", Into: &r.at},
		}},
		{Name: "DryRun", Into: &r.dryRun},
	}
}

func (r *SubscribeToShard) target(e *Engine) Target {
	t := r.consumerRef.target(e)
	t.Shard = r.shard.V
	return t
}

func (r *SubscribeToShard) do(*call) error {
	return invalid("SubscribeToShard is not served yet by kinesistest: consumers can be registered, not subscribed. Read with GetShardIterator and GetRecords instead.")
}
