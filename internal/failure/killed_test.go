package failure

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestKilledRecordsAreNamedInAText(t *testing.T) {
	at := func(seq string, done uint32) shard.Position {
		p, err := shard.Part(seq, done)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var k Killed
	if k.Has(at("1", 1)) || k.Text(100) != "" || ParseKilled("") != nil {
		t.Error("nothing names a record")
	}
	k = k.Add(at("1", 1)).Add(at("1", 2)).Add(at("300", shard.Whole)).Add(at("1", 2))
	text := k.Text(100)
	got := ParseKilled(text)
	for _, p := range []shard.Position{at("1", 1), at("1", 2), at("300", shard.Whole)} {
		if !got.Has(p) {
			t.Errorf("%v is not in %q", p, text)
		}
	}
	if len(got) != 3*killedName || got.Has(at("300", 1)) || got.Has(at("3", shard.Whole)) {
		t.Errorf("%q names %d records, and others", text, len(got)/killedName)
	}
	if less := ParseKilled(k.Text(len(text) - 1)); len(less) != 2*killedName || less.Has(at("1", 1)) {
		t.Error("the oldest is to be left out where there is no room")
	}
	for most := range 12 {
		if n := len(k.Text(most)); n > most {
			t.Errorf("%d bytes of at most %d", n, most)
		}
	}
	for _, other := range []string{"AQAAAAAAAAAAAAAB", "Ag", "AgAB", "?", strings.Repeat("A", 9)} {
		if k := ParseKilled(other); len(k) > 0 {
			t.Errorf("%q names %d records", other, len(k)/killedName)
		}
	}
}

// TestManyKilledRecordsFitBesideDeaths checks that the stored text has room for many killed
// records, even with the longest positions of a lease.
func TestManyKilledRecordsFitBesideDeaths(t *testing.T) {
	p, err := shard.After("49" + strings.Repeat("1", 54))
	if err != nil {
		t.Fatal(err)
	}
	var k Killed
	d := lease.Deaths{Count: 12, Tried: 11, Alone: 10, Trial: 123456, Given: 1234567, At: p, Record: p}
	for i := range 100 {
		seq, err := shard.Part(p.SequenceNumber(), uint32(i))
		if err != nil {
			t.Fatal(err)
		}
		k = k.Add(seq)
	}
	back := lease.ParseDeaths(WithKilled(d, k, 123456).String())
	kept := ParseKilled(back.Beyond)
	if n := len(kept) / killedName; n < 20 {
		t.Errorf("%d records are kept", n)
	}
	if back.Count != 12 || back.Since != 123456 {
		t.Errorf("%+v", back)
	}
}
