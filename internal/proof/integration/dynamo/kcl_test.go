package dynamo_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/kcl"
	"github.com/weir-go/weir/internal/kcl/leasetable"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/shard"
)

// The test creates, writes and reads a lease table of the KCL on each server. The table has more
// leases than fit into one answer of Scan.
func TestALeaseTableOfTheKCL(t *testing.T) {
	longform.Only(t)
	const leases = 1600
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			client := kind.start(t).DynamoDB()
			for range 2 {
				if err := leasetable.Create(t.Context(), client, "billing"); err != nil {
					t.Fatal(err)
				}
			}
			write := func(id string, isNew bool, counter int64, at string) bool {
				t.Helper()
				ok, err := leasetable.Write(
					t.Context(),
					client,
					"billing",
					kcl.Write{New: isNew, Lease: kcl.Lease{
						Key: id, Shard: id, Counter: counter, At: kcl.Checkpoint{Value: at, Sub: 1}, Range: &shard.HashRange{End: shard.MaxHashKey},
						Parents: []string{
							strings.Repeat("p", 200),
							strings.Repeat("q", 200),
						}, Children: []string{"c"},
					}},
				)
				if err != nil {
					t.Fatal(err)
				}
				return ok
			}
			id := func(n int) string { return fmt.Sprintf("shardId-%012d", n) }
			for n := range leases {
				if !write(id(n), true, 0, "17") {
					t.Fatalf("%s is not new", id(n))
				}
			}
			if write(id(0), true, 0, "18") || write(id(0), false, 5, "18") {
				t.Error("a lease was written without its condition")
			}
			for counter, at := range []string{"18", "19"} {
				if !write(id(0), false, int64(counter), at) {
					t.Errorf("a lease was not written at counter %d", counter)
				}
			}
			table, err := leasetable.Scan(t.Context(), client, "billing")
			if err != nil || len(table.Leases) != leases {
				t.Fatalf("%d leases, %v", len(table.Leases), err)
			}
			if l := table.Leases[0]; l.Counter != 2 ||
				l.At != (kcl.Checkpoint{Value: "19", Sub: 1}) ||
				len(l.Parents) != 2 ||
				l.Range == nil ||
				l.Worker() != "" {
				t.Errorf("read as %+v", l)
			}
		})
	}
}
