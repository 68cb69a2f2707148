package lease

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/shard"
)

func TestStreamsText(t *testing.T) {
	many := make([]string, 2000)
	for i := range many {
		many[i] = fmt.Sprintf("stream-%04d", i)
	}
	for _, c := range []struct {
		names  []string
		listed string
		text   string // "" if it is hashed
		kept   bool
	}{
		{nil, "", "1:", true},
		{[]string{"b", "a", "a"}, "", "1:a b", true},
		{[]string{"b", "a"}, "b", "1:a +b", true},
		{[]string{"a b", "c"}, "c", "", true},
		{[]string{"+a"}, "", "", true},
		{many, many[7], "", true},
		{append(slices.Clone(many), strings.Split(strings.Repeat("x,", 3)+strings.Join(many, "!,"), ",")...), "", "", false},
	} {
		s := StreamsOf(c.names, func(name string) bool { return name == c.listed })
		if c.text != "" && string(s) != c.text {
			t.Errorf("%q: %q, want %q", c.names, s, c.text)
		}
		if s.Known() != c.kept {
			t.Errorf("%.60q: known is %v", c.names, s.Known())
		}
		if !c.kept {
			continue
		}
		for _, name := range c.names {
			if !s.Has(name) || s.Listed(name) != (name == c.listed) {
				t.Errorf("%.60q: Has(%q) is %v, Listed %v", s, name, s.Has(name), s.Listed(name))
			}
		}
		if s.Has("other") || s.Has("") || s.Listed("other") {
			t.Errorf("%.60q has a stream that it was not given", s)
		}
		if names, all := s.Names(); all != (c.text != "") || all && !slices.Equal(names, slices.Compact(slices.Sorted(slices.Values(c.names)))) {
			t.Errorf("%.60q: names %q, all %v", s, names, all)
		}
	}
}

func TestStreamsThatAreNotKnown(t *testing.T) {
	for _, s := range []Streams{"", "3:a", "a b", "1"} {
		if s.Known() || s.Has("a") || s.Listed("a") || !s.Same("1:b") {
			t.Errorf("%q counts as known", s)
		}
	}
	if Streams("1:a").Same("1:b") || !Streams("1:+a").Same("1:a") {
		t.Error("Same does not compare the names alone")
	}
}

func TestDescribeStreams(t *testing.T) {
	orders, logs := StreamsOf([]string{"orders"}, nil), StreamsOf([]string{"logs"}, func(string) bool { return true })
	worker := func(name string, s Streams) Worker { return Worker{Session: name + "-1", Name: name, Streams: s} }
	leases := []Lease{{Key: Key{"orders", "1"}}, {Key: Key{"logs", "1"}}, {Key: Key{"gone", "1"}}, {Key: Key{"gone", "2"}}}
	const gone = "the application has leases for the stream gone, and no live worker reads it"
	ended := worker("cid", logs)
	ended.Ended = true
	led := func(by string, v View) View { v.Leader.Session = by + "-1"; return v }
	withheld := func(name string) string {
		return "no worker that reports its streams reads the stream " + name + ", and workers of an older version get no more of its shards; replace them with workers of this version"
	}
	held, child, over := Lease{Key: Key{"logs", "1"}, Owner: "old-1"}, Lease{Key: Key{"logs", "2"}}, Lease{Key: Key{"logs", "1"}, Position: shard.End}
	child.Parents = []string{"1"}
	mixed := []Worker{worker("ann", orders), worker("old", "")}
	for name, c := range map[string]struct {
		view View
		want []string
	}{
		"a newer worker leads an older one":           {led("ann", View{Workers: mixed, Leases: leases}), []string{withheld("gone"), withheld("logs")}},
		"an older worker leads":                       {led("old", View{Workers: mixed, Leases: leases}), nil},
		"the older worker keeps its shards":           {led("ann", View{Workers: mixed, Leases: []Lease{leases[0], held, child}}), nil},
		"an older worker does not get their children": {led("ann", View{Workers: mixed, Leases: []Lease{leases[0], over, child}}), []string{withheld("logs")}},
		"the stream is paused":                        {led("ann", View{Workers: mixed, Leases: leases[:2], Paused: []string{"logs"}}), nil},
		"all is well":                                 {View{Workers: []Worker{worker("ann", orders), worker("bob", orders)}, Leases: leases[:1]}, nil},
		"a worker that has ended":                     {View{Workers: []Worker{worker("ann", orders), ended}, Leases: leases[:1]}, nil},
		"a worker that did not say":                   {View{Workers: []Worker{worker("ann", orders), worker("old", "")}, Leases: leases}, nil},
		"no worker":                                   {View{Leases: leases}, nil},
		"no live worker reads a stream":               {View{Workers: []Worker{worker("ann", orders)}, Leases: leases[2:]}, []string{gone}},
		"an unread stream is paused":                  {View{Workers: []Worker{worker("ann", orders)}, Leases: leases[2:], Paused: []string{"gone"}}, nil},
		"the whole application is paused":             {View{Workers: []Worker{worker("ann", orders)}, Leases: leases[2:], Paused: []string{""}}, nil},
		"workers differ": {View{Workers: []Worker{worker("bob", logs), worker("ann", orders)}, Leases: leases},
			[]string{"workers read different streams, and each gets only shards of the streams that it reads: ann reads orders; bob reads logs", gone}},
	} {
		if got := DescribeStreams(c.view); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
