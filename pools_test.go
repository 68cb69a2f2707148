package weir

import (
	"context"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/group"
	"github.com/weir-go/weir/internal/lanes"
	"github.com/weir-go/weir/internal/proof/pooled"
	"github.com/weir-go/weir/internal/source"
)

// A reused object is as good as a new one: each subtest fills every field, resets the object and
// compares it with a new one.
func TestWhatIsUsedAgainIsAsGoodAsNew(t *testing.T) {
	complain := func(t *testing.T, differences []string) {
		t.Helper()
		for _, d := range differences {
			t.Errorf("%s is not reset", d)
		}
	}
	t.Run("the delivery of a key", func(t *testing.T) {
		l := &shardLoop{in: &run{values: context.Background()}, term: new(group.Term), handles: &handling{from: &origin{Shard: "a"}}}
		s := &dispatcher{l: l}
		lane := func() *lanes.Lane {
			return &lanes.Lane{Records: []source.Record{{SequenceNumber: "1", Data: []byte("x")}}}
		}
		b := s.newKeyDelivery()
		// The constructor sets these for good. They are compared: a new batch may not change them.
		pooled.Fill(b, "loop", "From", "key", "ctx", "of", "pulled", "puller", "until", "use")
		mine, fresh := lane(), s.newKeyDelivery()
		b.begin(mine, time.Second)
		fresh.key = b // each delivery points to itself
		fresh.begin(mine, time.Second)
		complain(t, pooled.Differences(b, fresh, "use", "Of"))
		if mine.Of != fresh || b.use != 1 || b.key != b {
			t.Error("the lane or the batch is of another delivery")
		}
	})
	t.Run("records for a handler that keeps none", func(t *testing.T) {
		d := &handover{loop: &shardLoop{in: &run{}}}
		pooled.Fill(&d.copies)
		memory := d.copies
		d.close()
		complain(t, pooled.Differences(memory, new([]Record)))
		if d.copies != nil {
			t.Error("two deliveries would share the records")
		}
	})
}
