package keyed

import (
	"testing"

	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/proof/pooled"
	"github.com/weir-go/weir/internal/source"
)

// A reused lane equals a new one. The memory that a closed span leaves to the next span equals new
// memory.
func TestWhatIsUsedAgainIsAsGoodAsNew(t *testing.T) {
	s := NewSpan(2, 10)
	records := make([]source.Record, 6)
	for i, key := range []string{"a", "b", "a", "b", "", "a"} {
		records[i].Key, records[i].SequenceNumber = key, string(rune('1'+i))
	}
	s.Add(records, 60, records[5].After(), mono.Now(), nil)
	memory := s.arena
	for {
		l, _ := s.MayBegin()
		if l == nil {
			break
		}
		s.Begin(l)
		l.call = new(Call)
		s.Done(l, len(l.Records))
		s.Return(l)
	}
	for l := s.spare; l != nil; l = l.next {
		for _, d := range pooled.Differences(l, new(Lane), "next") {
			t.Errorf("%s of a lane is not reset", d)
		}
	}
	for _, some := range s.gathered {
		for _, d := range pooled.Differences(&some, new([]source.Record)) {
			t.Errorf("gathered records are not reset %s", d)
		}
	}
	if s.Close(); memory.lanes.n != 0 || s.arena != nil {
		t.Errorf("%d lanes are left for the next span", memory.lanes.n)
	}
	for _, l := range memory.lanes.lists {
		if l != nil {
			t.Error("a lane is left for the next span")
		}
	}
}
