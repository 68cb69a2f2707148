package filled_test

import (
	"testing"

	"github.com/weir-go/weir/internal/filled"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestNoFieldIsLeftOut(t *testing.T) {
	r := filled.Value[lease.Report](t)
	if r.Session == "" || !r.First || r.Weight == 0 || r.MaxLeases == 0 || r.Holds == 0 || r.Times.Heartbeat == 0 || len(r.Progress) != 1 {
		t.Errorf("fields are zero: %+v", r)
	}
	if p := r.Progress[0]; p.Shard == "" || p.Position != shard.Oldest || len(p.Children) != 1 || p.Children[0].Range.End.Lo == 0 {
		t.Errorf("fields are zero: %+v", p)
	}
	if m := filled.Value[map[string]*uint64](t); len(m) != 1 || *m["x"] != 1 {
		t.Errorf("the map is %v", m)
	}
}
