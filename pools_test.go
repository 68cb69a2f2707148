package weir

import (
	"context"
	"testing"

	"github.com/weir-go/weir/internal/group"
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
		b := s.newKeyDelivery()
		// The constructor sets these for good. They are compared, so a reset may not change them.
		identity := []string{"loop", "from", "parallel", "ctx", "of", "end", "idle", "tip", "until", "pulled", "puller", "use"}
		pooled.Fill(b, identity...)
		b.Attempts, b.calls = 0, 1 // as after a call in which no record failed
		b.reset()
		fresh := s.newKeyDelivery()
		fresh.parallel = b // each delivery points to itself
		complain(t, pooled.Differences(&b.attempts, &fresh.attempts))
		complain(t, pooled.Differences(&b.progress, &fresh.progress))
		complain(t, pooled.Differences(&b.keyCall, &fresh.keyCall))
		complain(t, pooled.Differences(b, fresh, "use"))
		if b.use != 1 || b.parallel != b {
			t.Error("an old batch would count as one of the new records")
		}
	})
	t.Run("an unpacker", func(t *testing.T) {
		u := new(unpacker)
		pooled.Fill(u, "parsed") // package aggregate tests its own reset
		u.reset()
		complain(t, pooled.Differences(u, new(unpacker)))
	})
	t.Run("records that are kept for another attempt", func(t *testing.T) {
		k := new(kept)
		pooled.Fill(k)
		memory := k.pooled
		k.release()
		complain(t, pooled.Differences(k, new(kept)))
		complain(t, pooled.Differences(memory, new([]source.Record)))
	})
	t.Run("records for a handler that keeps none", func(t *testing.T) {
		d := &delivery{loop: &shardLoop{in: &run{}}}
		pooled.Fill(&d.copies)
		memory := d.copies
		d.close()
		complain(t, pooled.Differences(memory, new([]Record)))
		if d.copies != nil {
			t.Error("two deliveries would share the records")
		}
	})
}
