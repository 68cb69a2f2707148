package kcl

import (
	"fmt"
	"maps"
	"strconv"
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

func text(s string) Value     { return Value{Type: Text, Text: s} }
func number(n int64) Value    { return Value{Type: Number, Text: strconv.FormatInt(n, 10)} }
func texts(s ...string) Value { return Value{Type: Texts, Texts: s} }
func id(n int) string         { return fmt.Sprintf("shardId-%012d", n) }

// item returns an item like the ones that KCL 1 writes, with the fields of more.
func item(key, checkpoint string, sub int64, more ...Item) Item {
	it := Item{
		attrKey: text(
			key,
		), attrCounter: number(4711), attrSwitches: number(0), attrCheckpoint: text(checkpoint), attrSub: number(sub),
	}
	for _, m := range more {
		maps.Copy(it, m)
	}
	return it
}

func ownedBy(worker string) Item { return Item{attrOwner: text(worker)} }

func ranged(start, end string) Item { return Item{attrStart: text(start), attrEnd: text(end)} }

func parents(ids ...string) Item { return Item{attrParents: texts(ids...)} }

const (
	middle = "170141183460469231731687303715884105728"
	below  = "170141183460469231731687303715884105727"
	top    = "340282366920938463463374607431768211455"
)

// family returns a stream in which 0 was split into 1 and 2, and 1 and 3 were merged into 4. Shard
// 5 has no relatives.
func family() change.Stream {
	all := shard.HashRange{End: shard.MaxHashKey}
	sh := func(n int, closed bool, parents ...string) shard.Shard {
		return shard.Shard{ID: id(n), Closed: closed, Parents: parents, Range: all}
	}
	return change.Stream{Name: "orders", Now: now, Born: 7000, Shards: []shard.Shard{
		sh(
			5,
			false,
		), sh(4, false, id(1), id(3)), sh(3, true), sh(2, false, id(0)), sh(1, true, id(0)), sh(0, true),
	}}
}

func read(t *testing.T, items ...Item) Table {
	t.Helper()
	table, err := Read(items)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func planLines(p change.Plan) string {
	var b strings.Builder
	for _, w := range p.Leases {
		fmt.Fprintf(&b, "%s %s", short(w.Lease.Shard), w.Lease.Position)
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
