package foreign

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/shard"
)

var now = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

const (
	seqA = "49590338271490256608559692538361571095921575989136588898"
	seqB = "49590338271490256608559692538361571095921575989136588899"
)

func id(n int) string { return fmt.Sprintf("shardId-%012d", n) }

// family returns a stream in which 0 was split into 1 and 2, and 1 and 3 were merged into 4. Shard
// 5 has no relatives. Shard 6 is closed and has none either.
func family() change.Stream {
	all := shard.HashRange{End: shard.MaxHashKey}
	sh := func(n int, closed bool, parents ...string) shard.Shard {
		return shard.Shard{ID: id(n), Closed: closed, Parents: parents, Range: all}
	}
	return change.Stream{Name: "orders", Now: now, Born: 7000, Shards: []shard.Shard{
		sh(6, true), sh(5, false), sh(4, false, id(1), id(3)), sh(3, true), sh(2, false, id(0)),
		sh(1, true, id(0)), sh(0, true),
	}}
}

func short(shardID string) string { return strings.TrimLeft(shardID[len("shardId-"):], "0") }

func planLines(p change.Plan) string {
	var b strings.Builder
	for _, w := range p.Leases {
		fmt.Fprintf(&b, "%1s %s", "0"[:max(0, 1-len(short(w.Lease.Shard)))]+short(w.Lease.Shard), w.Lease.Position)
		if w.Why != "" {
			fmt.Fprintf(&b, " (%s)", w.Why)
		}
		b.WriteString("\n")
	}
	for _, n := range p.Notes {
		b.WriteString(n + "\n")
	}
	return b.String()
}

// rows returns a state with rows in the form of a shard's number and a position.
func rows(t *testing.T, text ...string) State {
	t.Helper()
	var s State
	for _, line := range text {
		var n int
		var at string
		if _, err := fmt.Sscan(line, &n, &at); err != nil {
			t.Fatal(err)
		}
		r := Row{Shard: id(n), Raw: at}
		if at != "none" {
			p, err := shard.Parse(at)
			if err != nil {
				t.Fatal(err)
			}
			r.At = p
		}
		s.add(r)
	}
	s.sort()
	return s
}
