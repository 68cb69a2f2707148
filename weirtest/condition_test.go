package weirtest

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

func TestAtTip(t *testing.T) {
	after := func(seq string) shard.Position {
		p, err := shard.After(seq)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	noon := time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)
	record := func(seq string) kinesistest.Record { return kinesistest.Record{SequenceNumber: seq, Arrival: noon} }
	type at = map[string]shard.Position
	type last = map[string]kinesistest.Record
	for name, tt := range map[string]struct {
		open []string
		last last
		held at
		want string // description of the missing records; "" if the condition holds
	}{
		"nothing to do":                   {[]string{"a"}, nil, at{"a": shard.Oldest}, ""},
		"a shard that nobody reads":       {[]string{"a", "b"}, nil, at{"a": shard.Oldest}, "b is not read yet"},
		"nothing handled yet":             {[]string{"a"}, last{"a": record("7")}, at{"a": shard.Oldest}, "a is at oldest"},
		"some handled":                    {[]string{"a"}, last{"a": record("17")}, at{"a": after("7")}, "a is at 7, its last record is 17"},
		"all handled":                     {[]string{"a"}, last{"a": record("17")}, at{"a": after("17")}, ""},
		"a parent that is not at its end": {[]string{"b"}, nil, at{"a": after("7"), "b": shard.Oldest}, "a is closed"},
		"a parent that was left":          {[]string{"b"}, last{"a": record("7")}, at{"b": shard.Oldest}, ""},
		"from now on, nothing new":        {[]string{"a"}, last{"a": record("7")}, at{"a": shard.Latest}, ""},
		"from later on":                   {[]string{"a"}, last{"a": record("7")}, at{"a": shard.At(noon.Add(time.Second))}, ""},
		"from earlier on":                 {[]string{"a"}, last{"a": record("7")}, at{"a": shard.At(noon)}, "its last record is 7"},
	} {
		t.Run(name, func(t *testing.T) {
			ok, now := atTip(tt.open, tt.last, tt.held)
			if ok != (tt.want == "") || !strings.Contains(now, tt.want) {
				t.Errorf("%v, %q", ok, now)
			}
		})
	}
}
