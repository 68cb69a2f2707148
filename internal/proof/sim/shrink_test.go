package sim

import (
	"slices"
	"testing"
	"time"
)

func TestHistoriesAreShrunkToWhatMatters(t *testing.T) {
	p, _ := ProfileNamed("crashes")
	o := Options{Workers: 3, Lasts: 15 * time.Minute, Breaks: func(struck []string) string {
		if slices.Contains(struck, "split#2") && slices.Contains(struck, "crash#1") {
			return "planted: a crash and a split"
		}
		return ""
	}}
	r := Run(t, 7, p, o)
	if r.Wrong == "" || len(r.Struck) < 10 {
		t.Fatalf("the plant does not show among enough faults: %q after %d", r.Wrong, len(r.Struck))
	}
	small := Shrink(t, r, p, o, 60)
	slices.Sort(small.Struck)
	if !slices.Equal(small.Struck, []string{"crash#1", "split#2"}) {
		t.Errorf("of %d faults are left %q", len(r.Struck), small.Struck)
	}
	if len(small.Story(20)) == 0 || len(small.Story(20)) > 20 {
		t.Error("there is no story")
	}
}

func TestAKindOfWrongHasNoNumbers(t *testing.T) {
	a := kind("6m0s after the last fault 49 records are not handled, such as 1:k16/78 of 1/shardId-000000000002")
	if b := kind("6m0s after the last fault 3 records are not handled, such as 2:k1/7 of 2/shardId-000000000001"); a != b {
		t.Errorf("%q and %q", a, b)
	}
	if b := kind("the lease of 1/shardId-000000000001 is valid for two workers at once"); a == b {
		t.Errorf("%q is the kind of everything", a)
	}
}
