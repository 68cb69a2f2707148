package costs_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/capacity"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/store/dynamostore"
)

var full = flag.Bool("full", false, "the sizes and lengths of the documentation, which take minutes")

// dynamo opens a store with a new table.
func dynamo(t testing.TB, s *servers.Server, table string) (measured, *capacity.Meter) {
	t.Helper()
	m := &capacity.Meter{}
	store := dynamostore.New(s.DynamoDB(m.Options), dynamostore.Options{Table: table})
	if err := store.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return measured{t, store, func(do func()) cost { return ofCapacity(m.Of(do)) }}, m
}

func ofCapacity(c capacity.Cost) cost { return cost{c.Requests, c.Kinds, c.Writes, c.Reads} }

// javaPerHour returns the cost of the Java KCL 3 per hour, with formulas from its source. The cost
// contains renewals of each lease, assignments, the auditor, metrics and the lock. Metrics and the
// lock are new in version 3.
func javaPerHour(leases, workers int) (writes, reads float64) {
	l, w := float64(leases), float64(workers)
	return 1088*l + 120*w + 120, 9.9*l + 420*w
}

// TestDynamoDB prints request units, and checks the documented cost of an idle group.
func TestDynamoDB(t *testing.T) {
	s := servers.DynamoDBLocal(t)
	sizes := [][2]int{{100, 5}, {100, 20}, {1000, 5}, {1000, 20}}
	if *full {
		sizes = append(sizes, [2]int{1000, 50}, [2]int{1000, 100}, [2]int{10_000, 100})
	}
	costs := map[[2]int]idle{}
	for _, size := range sizes {
		leases, workers := size[0], size[1]
		m, _ := dynamo(t, s, fmt.Sprintf("costs-%d-%d", leases, workers))
		g := assemble(m, leases, workers)
		c := g.idling()
		costs[size] = c
		t.Logf("%d leases, %d workers", leases, workers)
		show(t, "  an idle heartbeat", c.beat, "WU", "RU")
		show(t, "  an idle heartbeat of the leader", c.leads, "WU", "RU")
		show(t, "  a look with nothing new", c.look, "WU", "RU")
		show(t, "  a full look", c.full, "WU", "RU")
		// Reading all rows of the group costs a read unit for each 4 KB. No row is larger than 600
		// bytes here.
		if most := 1 + float64(workers*600/4096); c.beat.writes != 1 || c.beat.reads > most || c.beat.requests > 2 || c.leads.writes != 1 {
			t.Errorf("an idle heartbeat costs %v writes and %v reads in %d requests, the leader's %v writes",
				c.beat.writes, c.beat.reads, c.beat.requests, c.leads.writes)
		}
		for _, idle := range []cost{c.beat, c.leads} {
			for kind := range idle.kinds {
				if kind != "UpdateItem" && kind != "Query" {
					t.Errorf("an idle heartbeat is %s: it asks for more than the rows of the group", idle.said())
				}
			}
		}
		if c.look.said() != "1 Query" || c.look.writes+c.full.writes > 0 || c.full.kinds["Scan"] > 0 {
			t.Errorf("a look with nothing new is %s, a full one %s", c.look.said(), c.full.said())
		}
		if leases == 1000 && workers == 20 {
			for _, e := range g.events() {
				show(t, "  "+e.name, g.meter(e.do), "WU", "RU")
			}
		}
	}
	grows(t, "an hour of nothing", func(leases, workers int) float64 {
		requests, writes, reads := costs[[2]int{leases, workers}].perHour(workers, 1)
		return requests + writes + reads
	})
	t.Log("per hour, idle: (W-1)·3600/(0.95·B)·heartbeat + 3600/(0.95·B)·leader's heartbeat + (7200/B-120)·look + 120·full look, for W workers and a heartbeat interval B")
	t.Log("a read unit costs a fifth of a write unit; all is in write units")
	t.Logf("%7s %7s %4s %10s %10s %10s %10s   %12s %10s %10s", "leases", "workers", "beat", "requests", "writes", "reads", "all",
		"Java: writes", "reads", "all")
	for _, size := range sizes {
		for _, interval := range []float64{1, 3} {
			requests, writes, reads := costs[size].perHour(size[1], interval)
			javaWrites, javaReads := javaPerHour(size[0], size[1])
			t.Logf("%7d %7d %3.0fs %10.0f %10.0f %10.0f %10.0f   %12.0f %10.0f %10.0f", size[0], size[1], interval, requests, writes, reads, writes+reads/5,
				javaWrites, javaReads, javaWrites+javaReads/5)
		}
	}
	if _, writes, _ := costs[[2]int{1000, 20}].perHour(20, 1); writes > 80_000 {
		t.Errorf("20 idle workers write %.0f times an hour", writes)
	}
}
