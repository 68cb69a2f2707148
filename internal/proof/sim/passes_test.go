package sim

import (
	"testing"

	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/internal/proof/sim/model"
)

// TestReadingDroppedRecordsIsProgress checks which answers of a series count as progress. Record 4
// of 5 must get to a handler.
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

// TestLeaseOfACall checks that the lease is derived from the name of a shard.
func TestLeaseOfACall(t *testing.T) {
	for _, stream := range []string{firstStream, "other"} {
		key := leaseAbout(about(stream, "shard"))
		if key.Stream != stream || key.Shard != "shard" {
			t.Errorf("the lease of a shard of %s is %s", stream, key)
		}
	}
}

// TestHandlingAgainIsProgress checks the rule of noteFinished. After the end of the faults, a
// record counts as progress once for each life, also if an earlier life has handled it.
func TestHandlingAgainIsProgress(t *testing.T) {
	id := func(n int) judge.ID { return judge.ID{Key: "k", N: n} }
	one, two := &life{}, &life{}
	for _, step := range []struct {
		what     string
		stage    int
		without  bool // without dead letters and killing records
		by       *life
		records  []judge.ID
		progress bool
	}{
		{"before the end of the faults", faulty, false, one, []judge.ID{id(1)}, false},
		{"if no record takes long", settling, true, one, []judge.ID{id(1)}, false},
		{"a record", settling, false, one, []judge.ID{id(1)}, true},
		{"the same again", settling, false, one, []judge.ID{id(1)}, false},
		{"the same and another one", settling, false, one, []judge.ID{id(1), id(2)}, true},
		{"both by another life", settling, false, two, []judge.ID{id(1), id(2)}, true},
		{"both by the first life again", settling, false, one, []judge.ID{id(1), id(2)}, false},
	} {
		w := &world{shared: &shared{stage: step.stage, instant: 7}, letters: &letters{}}
		if step.without {
			w.letters = nil
		}
		w.noteFinished(step.by, step.records)
		if got := w.duties.late == 7; got != step.progress {
			t.Errorf("%s: progress is %v, want %v", step.what, got, step.progress)
		}
	}
}
