package change

import (
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

func TestPrune(t *testing.T) {
	leases := append(progress(t),
		lease.Lease{Key: key("90"), Epoch: 3, Position: at(t, "end")},
		lease.Lease{Key: key("91"), Epoch: 4, Position: at(t, "17")},
		lease.Lease{Key: key("92"), Epoch: 5, Position: at(t, "18"), Owner: "A"},
		lease.Lease{Key: lease.Key{Stream: "other", Shard: "90"}, Epoch: 1, Position: at(t, "end")})
	steps := Prune(family(), leases)
	const want = `90 end>end delete@3 (its shard has left the stream)
91 17>end delete@4 (its shard has left the stream before it was read to its end)
92 18>18 (it has an owner: stop its worker first)
`
	if got := lines(steps); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := len(Prune(Stream{Name: "other"}, leases)); got != 1 {
		t.Errorf("a stream that is gone: %d steps", got)
	}

	// If the store did not answer, the view shows whether the lease is gone.
	store := memstore.New()
	if _, err := store.Apply(t.Context(), "a", []lease.Action{{Kind: lease.Create, Lease: leases[6]}}); err != nil {
		t.Fatal(err)
	}
	for _, done := range []bool{false, true} {
		v, err := store.View(t.Context(), "a", "")
		if err != nil {
			t.Fatal(err)
		}
		if got := steps[0].Happened(v); got != done {
			t.Errorf("it happened: %t, want %t", got, done)
		}
		if _, err := store.Apply(t.Context(), "a", steps[0].Actions); err != nil {
			t.Fatal(err)
		}
	}
}
