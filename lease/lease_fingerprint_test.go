package lease

import (
	"fmt"
	"hash/fnv"
	"testing"
)

// The fingerprint must never change, because workers and leaders of other versions compute it too.
func TestFingerprintIsTheSumOfHashes(t *testing.T) {
	held := []Lease{
		{Key: Key{"orders", "shardId-000000000000"}, Epoch: 1, Owner: "a"},
		{Key: Key{"orders", "shardId-000000000001"}, Epoch: 1<<64 - 1, Heir: "b:2"},
		{Key: Key{"ö", ""}},
	}
	var want uint64
	for _, l := range held {
		h := fnv.New64a()
		_, _ = fmt.Fprintf(h, "%s\x00%s\x00%d\x00%s", l.Stream, l.Shard, l.Epoch, l.Heir)
		want += h.Sum64()
	}
	if got := Fingerprint(held); got != want {
		t.Errorf("%x, want %x", got, want)
	}
	if n := testing.AllocsPerRun(100, func() { Fingerprint(held) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
