package kcl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/shard"
)

// The cases contain items as each version of the KCL writes them.
func TestReadKnowsEachVersion(t *testing.T) {
	stream := "123456789012:orders:1690000000"
	for name, c := range map[string]struct {
		items []Item
		want  string
	}{
		"1.x": {[]Item{
			item(id(0), "TRIM_HORIZON", 0),
			item(id(1), seqA, 3, ownedBy("w1"), parents(id(0))),
		}, `shardId-000000000000 0 TRIM_HORIZON
shardId-000000000001 1 w1 ` + seqA + `/3 parents [shardId-000000000000]
`},
		"2.x, a prepared checkpoint, an ended shard": {[]Item{
			item(id(1), seqA, 0, ownedBy("w1"), ranged("0", below), Item{
				attrPending: text(seqB), attrPendingSub: number(2), "pendingCheckpointState": {Type: Other},
			}),
			item(id(0), "SHARD_END", 0, Item{attrChildren: texts(id(2), id(1))}),
		}, `shardId-000000000000 0 SHARD_END children [shardId-000000000001 shardId-000000000002]
shardId-000000000001 1 w1 ` + seqA + ` pending ` + seqB + `/2 range 0-` + below + `
`},
		"3.x, several streams, in the middle of a handoff": {[]Item{
			item(stream+":"+id(7), seqA, 0, ownedBy("w2"), parents(id(1)), ranged("0", below), Item{
				attrStream: text(stream), attrShard: text(id(7)), attrHolder: text("w1"), attrKind: text("LEASE"),
				"throughputKBps": {Type: Number, Text: "1.0E-6"},
			}),
		}, `123456789012:orders:1690000000:shardId-000000000007 7 w1 ` + seqA + ` parents [shardId-000000000001] range 0-` + below + `
`},
		"3.5, with the items of coordination": {[]Item{
			item(id(0), "LATEST", 0, Item{attrKind: text("LEASE")}),
			{attrKey: text("Leader"), attrKind: text("LEADER"), attrLeader: text("w1"), attrVersion: text("5f0c")},
			{attrKey: text("Migration3.0"), attrKind: text("CLIENT_VERSION_MIGRATION")},
			{attrKey: text("TableMigration3.5"), attrKind: text("TABLE_MIGRATION")},
			{attrKey: text("orders"), attrKind: text("STREAM")},
			{attrKey: text("w1"), attrKind: text("WORKER_METRIC_STATS"), attrUpdated: number(1753000000)},
		}, `shardId-000000000000 0 LATEST
pulse Leader w1 5f0c
pulse w1 w1 1753000000
skipped [Migration3.0 TableMigration3.5 orders]
`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tableLines(read(t, c.items...)); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

func tableLines(t Table) string {
	var b strings.Builder
	for _, l := range t.Leases {
		fmt.Fprintf(&b, "%s %s", l.Key, short(l.Shard))
		for _, part := range []string{l.Worker(), l.At.String()} {
			if part != "" {
				b.WriteString(" " + part)
			}
		}
		if !l.Pending.IsZero() {
			fmt.Fprintf(&b, " pending %s", l.Pending)
		}
		if l.Parents != nil {
			fmt.Fprintf(&b, " parents %s", l.Parents)
		}
		if l.Children != nil {
			fmt.Fprintf(&b, " children %s", l.Children)
		}
		if l.Range != nil {
			fmt.Fprintf(&b, " range %s", l.Range)
		}
		b.WriteString("\n")
	}
	for _, p := range t.Pulses {
		fmt.Fprintf(&b, "pulse %s %s %s\n", p.Key, p.Worker, p.Value)
	}
	if t.Skipped != nil {
		fmt.Fprintf(&b, "skipped %s\n", t.Skipped)
	}
	return b.String()
}

func TestReadRefusesOddItems(t *testing.T) {
	stream := "123456789012:orders:1690000000"
	key := stream + ":" + id(7)
	without := func(it Item, name string) Item { delete(it, name); return it }
	for name, c := range map[string]struct {
		it   Item
		want []string
	}{
		"no key":                   {Item{"ShardID": text("x")}, []string{"no attribute leaseKey", "check the name of the table"}},
		"a key that is a number":   {Item{attrKey: number(1)}, []string{"leaseKey has the type N instead of S"}},
		"a key with a line break":  {item("a\nb", "LATEST", 0), []string{`leaseKey is "a\nb"`}},
		"a key that is no shard":   {item("some key", "LATEST", 0), []string{"neither a shard nor a stream"}},
		"a kind that is no text":   {item(id(0), "LATEST", 0, Item{attrKind: number(1)}), []string{"entityType has the type N"}},
		"no counter":               {without(item(id(0), "LATEST", 0), attrCounter), []string{id(0), "leaseCounter is missing", "delete the item"}},
		"no switches":              {without(item(id(0), "LATEST", 0), attrSwitches), []string{"ownerSwitchesSinceCheckpoint is missing"}},
		"no checkpoint":            {without(item(id(0), "LATEST", 0), attrCheckpoint), []string{"checkpoint is missing"}},
		"a counter that is text":   {item(id(0), "LATEST", 0, Item{attrCounter: text("1")}), []string{"leaseCounter has the type S instead of N"}},
		"a negative counter":       {item(id(0), "LATEST", 0, Item{attrCounter: number(-1)}), []string{`leaseCounter is "-1"`}},
		"a broken counter":         {item(id(0), "LATEST", 0, Item{attrCounter: {Type: Number, Text: "1.5"}}), []string{`leaseCounter is "1.5"`}},
		"a counter at the end":     {item(id(0), "LATEST", 0, Item{attrCounter: number(1<<63 - 1)}), []string{"0 to 2^62"}},
		"an owner of no length":    {item(id(0), "LATEST", 0, ownedBy("")), []string{"leaseOwner has 0 bytes"}},
		"an unknown sentinel":      {item(id(0), "NEWEST", 0), []string{`checkpoint "NEWEST" is neither`}},
		"a number with a zero":     {item(id(0), "007", 0), []string{`checkpoint "007"`}},
		"too many digits":          {item(id(0), strings.Repeat("9", 130), 0), []string{"checkpoint"}},
		"a negative sub-sequence":  {item(id(0), seqA, -1), []string{"checkpointSubSequenceNumber"}},
		"a broken pending one":     {item(id(0), seqA, 0, Item{attrPending: text("x")}), []string{`pendingCheckpoint "x"`}},
		"parents that are a list":  {item(id(0), seqA, 0, Item{attrParents: {}}), []string{"parentShardId has the type another type instead of SS"}},
		"a parent with its stream": {item(id(0), seqA, 0, parents(key)), []string{"parentShardId", "is not the ID of a shard"}},
		"too many children":        {item(id(0), seqA, 0, Item{attrChildren: texts(make([]string, 101)...)}), []string{"childShardIds has 101 shards"}},
		"half a range":             {item(id(0), seqA, 0, Item{attrStart: text("0")}), []string{"hash range"}},
		"a range backwards":        {item(id(0), seqA, 0, ranged("5", "3")), []string{"hash range"}},
		"a stream without account": {item("orders:"+id(0), seqA, 0), []string{"account:name:epoch"}},
		"an epoch of 0":            {item("1:orders:0:"+id(0), seqA, 0), []string{"epoch"}},
		"another stream inside":    {item(key, seqA, 0, Item{attrStream: text("1:x:1")}), []string{"name different shards"}},
		"another shard inside":     {item(key, seqA, 0, Item{attrShard: text(id(8))}), []string{"name different shards"}},
		"a stream with one shard":  {item(id(0), seqA, 0, Item{attrStream: text(stream)}), []string{"single stream"}},
		"metrics with a text":      {Item{attrKey: text("w"), attrKind: text("WORKER_METRIC_STATS"), attrUpdated: text("x")}, []string{"lut"}},
		"a leader without a text":  {Item{attrKey: text("Leader"), attrKind: text("LEADER"), attrLeader: number(1)}, []string{"ownerName"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read([]Item{c.it})
			var odd *ItemError
			if !errors.As(err, &odd) {
				t.Fatalf("%v is not about an item", err)
			}
			for _, want := range append(c.want, odd.Remedy) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v: want %q in it", err, want)
				}
			}
		})
	}
	if _, err := Read([]Item{item(id(0), seqA, 0), item(key, seqA, 0)}); err == nil ||
		!strings.Contains(err.Error(), "a single stream and of several") {
		t.Errorf("both kinds of keys: %v", err)
	}
	if _, err := Read([]Item{item(id(0), seqA, 0), item(id(0), seqB, 0)}); err == nil ||
		!strings.Contains(err.Error(), "twice") {
		t.Errorf("the same key: %v", err)
	}
}

func TestCheckpointsAndPositions(t *testing.T) {
	for _, c := range []struct {
		at    Checkpoint
		where string
		back  Checkpoint // if it differs
	}{
		{at: Checkpoint{Value: TrimHorizon}, where: "oldest"},
		{at: Checkpoint{Value: ShardEnd}, where: "end"},
		{at: Checkpoint{Value: Latest}},
		{at: Checkpoint{Value: AtTimestamp}},
		{at: Checkpoint{Value: seqA}, where: seqA + "+1"},
		{at: Checkpoint{seqA, 41}, where: seqA + "+42"},
		{at: Checkpoint{seqA, WholeSub}, where: seqA},
		{at: Checkpoint{seqA, WholeSub + 5}, where: seqA, back: Checkpoint{seqA, WholeSub}},
		{at: Checkpoint{seqA, -1}},
		{at: Checkpoint{}},
	} {
		p, ok := c.at.Position()
		if p.String() != c.where || ok != (c.where != "") {
			t.Errorf("%s becomes %s, %t, want %s", c.at, p, ok, c.where)
		}
		if !ok {
			continue
		}
		want := c.at
		if !c.back.IsZero() {
			want = c.back
		}
		if back, ok := Of(p); back != want || !ok {
			t.Errorf("%s comes back as %s, %t", c.at, back, ok)
		}
	}
	for where, want := range map[string]string{
		"latest": Latest, seqA + "+0": "", "2026-01-31T12:00:00Z": "", "": "", seqA + "+4294967294": fmt.Sprint(seqA, "/", WholeSub),
	} {
		p, err := shard.Parse(where)
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := Of(p); c.String() != want || ok != (want != "") {
			t.Errorf("%s becomes %s, %t, want %s", where, c, ok, want)
		}
	}
	order := []Checkpoint{
		{},
		{Value: AtTimestamp},
		{Value: TrimHorizon},
		{Value: Latest},
		{"9", 0},
		{"9", 1},
		{"10", 0},
		{Value: ShardEnd},
	}
	for i, a := range order {
		for j, b := range order {
			if got, want := a.Compare(b), i-j; got*want < 0 || (got == 0) != (want == 0) {
				t.Errorf("%s against %s is %d", a, b, got)
			}
		}
	}
	if (Checkpoint{ShardEnd, 1}).Compare(Checkpoint{ShardEnd, 2}) != 0 {
		t.Error("two ends differ")
	}
}

// For any content of a table, Read returns an error, or leases that can be planned.
func FuzzRead(f *testing.F) {
	stream := "123456789012:orders:1690000000"
	f.Add(id(0), seqA, "3", "7", "w1", id(1), "", "", "", "0", top, uint16(0))
	f.Add(
		stream+":"+id(7),
		"SHARD_END",
		"0",
		"0",
		"",
		"",
		stream,
		id(7),
		"LEASE",
		"",
		"",
		uint16(0b111),
	)
	f.Add("w1", "", "", "1753000000", "", "", "", "", "WORKER_METRIC_STATS", "", "", uint16(1))
	f.Fuzz(
		func(t *testing.T, key, at, sub, counter, owner, parent, stream, shardID, kind, start, end string, mask uint16) {
			it := Item{}
			for i, a := range []struct {
				name string
				v    Value
			}{
				{attrKey, text(key)}, {attrCheckpoint, text(at)}, {attrSub, Value{Type: Number, Text: sub}}, {attrCounter, Value{Type: Number, Text: counter}},
				{attrSwitches, number(0)}, {attrOwner, text(owner)}, {attrParents, texts(parent)}, {attrStream, text(stream)}, {attrShard, text(shardID)},
				{attrKind, text(kind)}, {attrStart, text(start)}, {attrEnd, text(end)}, {attrUpdated, Value{Type: Number, Text: counter}},
			} {
				if a.v.Text != "" || a.v.Texts != nil {
					it[a.name] = a.v
				}
				if mask&(1<<i) != 0 && i > 0 {
					a.v.Type = Type(mask>>13) % 4
					it[a.name] = a.v
				}
			}
			table, err := Read([]Item{it})
			if err != nil {
				if len(err.Error()) > 2000 || strings.ContainsAny(err.Error(), "\n\x1b") {
					t.Errorf("%q is no sentence", err)
				}
				return
			}
			for _, l := range table.Leases {
				s := family()
				p, err := There(
					[]Lease{l},
					s,
					Starts{AtTimestamp: shard.Oldest, Latest: shard.At(now)},
				)
				if err == nil && len(p.Leases) != len(s.Shards) {
					t.Errorf("%d leases for %d shards", len(p.Leases), len(s.Shards))
				}
				if l.Stream.Key(l.Shard) != l.Key {
					t.Errorf("key %q is read as %q of %q", l.Key, l.Shard, l.Stream)
				}
				w := NewWatch(DefaultFailover)
				w.See(now, table)
				if RunningText(w.Running()) != "" {
					t.Error("a single look shows a worker that runs")
				}
				if again, err := Read(slices.Concat([]Item{it}, nil)); err != nil ||
					again.Leases[0].At != l.At {
					t.Errorf("a second reading: %v", err)
				}
			}
		},
	)
}
