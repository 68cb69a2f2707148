package sim

import (
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/internal/proof/sim/model"
)

// TestBackupsThatTellWhatIsLost checks tellsLost with a sink that has, has lost, or never had a
// record.
func TestBackupsThatTellWhatIsLost(t *testing.T) {
	id := judge.ID{Key: "k", N: 1}
	for _, tt := range []struct {
		what  string
		sink  sink
		known string // the shard whose position the backup contains
		tells bool
	}{
		{"it has the record", sink{effects: []judge.ID{id}}, "", false},
		{"… and the backup knows the shard", sink{effects: []judge.ID{id}}, "child", true},
		{"… or its parent", sink{effects: []judge.ID{id}}, "parent", true},
		{"it lost the record before", sink{lost: map[judge.ID]bool{id: true}}, "", false},
		{"… and the backup knows the shard", sink{lost: map[judge.ID]bool{id: true}}, "child", true},
		{"it never had the record", sink{}, "", true},
	} {
		parent := &model.Shard{ID: "parent", Name: "1/parent"}
		child := &model.Shard{ID: "child", Name: "1/child", Parents: []*model.Shard{parent}}
		st := &stream{name: firstStream, now: &model.Stream{Shards: []*model.Shard{parent, child}}}
		w := &world{sink: &tt.sink, shared: &shared{}}
		w.streams = []*stream{st}
		w.books.home = map[judge.ID]string{id: child.Name}
		at := map[string]weir.Position{}
		if tt.known != "" {
			at[tt.known] = weir.Oldest
		}
		if got := w.tellsLost(backup{at: at}); got != tt.tells {
			t.Errorf("%s: the backup tells: %v, want %v", tt.what, got, tt.tells)
		}
	}
}
