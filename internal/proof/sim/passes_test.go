package sim

import (
	"testing"

	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/internal/proof/sim/model"
)

// TestReadingDroppedRecordsIsProgress checks for a series of answers whether each is progress.
// Record 4 of 5 should get to a handler.
func TestReadingDroppedRecordsIsProgress(t *testing.T) {
	var kept []container
	for n := range 5 {
		ids := []judge.ID{{Key: "k", N: n + 1}}
		kept = append(kept, container{number: model.Number(uint64(n + 1)), ids: ids})
	}
	handled := false
	wants := func(id judge.ID) bool { return id.N == 4 && !handled }
	var r reading
	for _, step := range []struct {
		what     string
		reached  uint64
		handle   bool
		progress bool
	}{
		{"a dropped record", 1, false, true},
		{"two more", 3, false, true},
		{"the same again", 3, false, false},
		{"an earlier one", 2, false, false},
		{"a record for a handler", 4, false, false},
		{"a dropped record behind it", 5, false, false},
		{"a dropped record when it is handled", 6, true, true},
		{"the last one again", 6, true, false},
	} {
		handled = step.handle
		if got := r.advances(kept, step.reached, wants); got != step.progress {
			t.Errorf("%s: progress is %v, want %v", step.what, got, step.progress)
		}
	}
}

// TestLeaseOfACall derives the lease from the name of a shard.
func TestLeaseOfACall(t *testing.T) {
	for _, stream := range []string{firstStream, "other"} {
		key := leaseAbout(about(stream, "shard"))
		if key.Stream != stream || key.Shard != "shard" {
			t.Errorf("the lease of a shard of %s is %s", stream, key)
		}
	}
}
