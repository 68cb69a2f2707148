package lease_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
)

// A leader reads a view twice per heartbeat interval. See allocates nothing for a view without
// changes.
func TestAQuietLookMakesNothing(t *testing.T) {
	v := lease.View{}
	for i := range 20 {
		session := fmt.Sprint("s", i)
		l := lease.Lease{Key: lease.Key{Stream: "s", Shard: fmt.Sprint(i)}, Epoch: 1, Owner: session}
		v.Leases = append(v.Leases, l)
		v.Workers = append(v.Workers, lease.Worker{Session: session, Heartbeats: 1, Holds: lease.Fingerprint([]lease.Lease{l})})
	}
	times := lease.DefaultTimes
	w := lease.NewWatch(times, lease.Leader{})
	now := time.Unix(0, 0)
	look := func() {
		for i := range v.Workers {
			v.Workers[i].Heartbeats++
		}
		if f := w.See(v, now, now); f.Any() {
			t.Fatalf("%+v", f)
		}
		now = now.Add(times.Heartbeat / 2)
		v.Same = true
	}
	look()
	if n := testing.AllocsPerRun(100, look); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
