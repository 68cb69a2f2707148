package lease

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-go/weir/shard"
)

// Leases that move again and again need the memory of at most three movements each.
func TestAWatchKeepsTheLastMovesAlone(t *testing.T) {
	const leases = 1000
	w, now := NewWatch(DefaultTimes, Leader{}), time.Unix(1000, 0)
	w.See(View{}, now, now)
	for epoch := range uint64(20) {
		var v View
		for i := range leases {
			v.Leases = append(v.Leases, Lease{Key: Key{"s", fmt.Sprint(i)}, Epoch: epoch + 1, Position: shard.Oldest})
		}
		now = now.Add(time.Second)
		if f := w.See(v, now, now); len(f.Cooling) != leases || len(f.Recent) != leases {
			t.Fatalf("%d cool down, %d moved just now", len(f.Cooling), len(f.Recent))
		}
	}
	if n := cap(w.moves); n > 3*leases {
		t.Errorf("there is room for %d movements of %d leases", n, leases)
	}
}
