package storetest

import (
	"math"
	"strings"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// oddNames are hard to distinguish or to write. A store must not fold, trim, join or interpret
// them.
var oddNames = []string{
	"a", "A", "a ", " a", "ä", "a\u0308", "Ä", "a.b", "a-b", "a_b", "a%b", "a/b", "a#b", "a|b", "a:b", "a,b", "a\\b", "a\\%b",
	`a'b`, `a"b`, "a`b", "a;b--", "a\nb", "a\tb", "日本語", "🦀", "null", "NULL", "true", "0", "00", "1e3", "$a", "{a}", "*",
	strings.Repeat("n", 128), strings.Repeat("n", 127) + "m",
}

var nameCases = []testCase{
	{"applications do not see each other", func(e *env) {
		apps := []*env{e}
		for _, name := range oddNames[:len(oddNames)-2] {
			apps = append(apps, e.in(e.app+name))
		}
		for _, e := range apps {
			equal(e, "view of "+e.app, canon(e.view()), `leader "" term 0`)
			e.start("a")
			e.owned("a", "1")
			e.beat("a", at("1", 2, seq(5)))
			equal(e, "leads", e.lead("a", 0), true)
		}
		want := canon(e.view())
		for _, other := range apps[1:] {
			equal(e, "view of "+other.app, canon(other.view()), want)
			other.held(other.beat("a"), k("1"))
			other.leave("a")
			other.must(remove("1", 3))
		}
		equal(e, "view of the first", canon(e.view()), want)
		e.held(e.beat("a"), k("1"))
	}},
	{"names of streams, shards and people are kept to the byte", func(e *env) {
		e.start("a")
		var keys []lease.Key
		var actions []lease.Action
		for _, name := range oddNames {
			for _, key := range []lease.Key{{Stream: name, Shard: "s"}, {Stream: "s", Shard: name}} {
				keys = append(keys, key)
				l := lease.Lease{Key: key, Parents: []string{name, name + "2"}, Epoch: 1, Position: shard.Oldest}
				actions = append(actions, lease.Action{Kind: lease.Create, Lease: l}, lease.Action{Kind: lease.Assign, Key: key, Epoch: 1, Session: "a"})
			}
		}
		e.must(actions...)
		var progress []lease.Progress
		for i, key := range keys {
			progress = append(progress, lease.Progress{Key: key, Epoch: 2, Position: seq(uint64(i))})
		}
		e.held(e.beat("a", progress...), keys...)
		for i, key := range keys {
			e.want(lease.Lease{Key: key, Parents: []string{oddNames[i/2], oddNames[i/2] + "2"}, Epoch: 2, Owner: "a", Last: "a", Position: seq(uint64(i))})
		}
		for _, name := range oddNames {
			e.report(lease.Report{Session: "a", Name: name})
			w, _ := e.worker("a")
			equal(e, "name", w.Name, name)
		}
	}},
	{"keys that look alike when joined are different leases", func(e *env) {
		e.start("a")
		keys := []lease.Key{{Stream: "x/y", Shard: "z"}, {Stream: "x", Shard: "y/z"}, {Stream: "x#y", Shard: "z"}, {Stream: "x", Shard: "y#z"},
			{Stream: "x:y", Shard: "z"}, {Stream: "x", Shard: "y:z"}, {Stream: "x%2Fy", Shard: "z"}, {Stream: "x%2fy", Shard: "z"}}
		for _, key := range keys {
			e.must(lease.Action{Kind: lease.Create, Lease: lease.Lease{Key: key, Epoch: 1, Owner: "a", Last: "a", Position: shard.Oldest}})
		}
		e.held(e.beat("a"), keys...)
		for i, key := range keys {
			e.beat("a", lease.Progress{Key: key, Epoch: 1, Position: seq(uint64(i + 1)), Release: true})
			l, _ := e.find(key)
			equal(e, key.String(), l.Position, seq(uint64(i+1)))
		}
	}},
	{"sessions that look alike are different sessions", func(e *env) {
		sessions := []string{"a", "A", "a.", "a:", "a-", "a_", "a:1", "a:1:1", "0", "00", strings.Repeat("s", 100), strings.Repeat("s", 99) + "S"}
		e.start(sessions...)
		equal(e, "sessions", len(e.view().Workers), len(sessions))
		e.must(create("1"))
		for i, s := range sessions {
			e.must(assign("1", uint64(i+1), s))
			for _, other := range sessions {
				if other == s {
					e.held(e.beat(other), k("1"))
				} else {
					e.held(e.beat(other))
				}
			}
		}
	}},
	{"positions, hash ranges and epochs are kept to the last digit", func(e *env) {
		e.start("a")
		long := strings.Repeat("9", 129)
		for i, text := range []string{"oldest", "latest", "end", "0", "0+0", "0+4294967294", long, long + "+0", long + "+4294967294",
			"49590338271490256608559692538361571095921575989136588898+17", "1969-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z"} {
			l := lease.Lease{Key: lease.Key{Stream: "positions", Shard: text}, Epoch: math.MaxInt64 - 10 + uint64(i%3), Position: parse(e, text),
				Range: shard.HashRange{Start: shard.HashKey{Hi: math.MaxUint64 - 1, Lo: uint64(i)}, End: shard.MaxHashKey}}
			e.must(lease.Action{Kind: lease.Create, Lease: l})
			e.want(l)
		}
	}},
}
