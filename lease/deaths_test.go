package lease

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/shard"
)

func TestDeathsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	long, err := shard.Part(strings.Repeat("9", 129), 1<<32-2)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []Deaths{
		{At: shard.Oldest}, {At: shard.Oldest, Count: 3, Tried: 2, Alone: 1, Trial: 17, Given: 9},
		{At: long, Since: 9, Beyond: strings.Repeat("aZ9-_", (Deaths{At: long, Since: 9}).RoomBeyond()/5)},
		{At: long, Record: long, Count: mostDeaths, Tried: mostDeaths, Alone: mostDeaths, Trial: 1<<63 - 1, Given: 1<<63 - 1},
	} {
		s := d.String()
		if got := ParseDeaths(s); got != d || checkDeaths("", Key{}, s) != nil {
			t.Errorf("%+v became %q, and that %+v", d, s, got)
		}
	}
}

func TestWhatIsDoneBeyondIsLeftOutWhereThereIsNoRoom(t *testing.T) {
	t.Parallel()
	without := Deaths{At: shard.Oldest, Count: 3}
	d := without
	d.Since = 17
	d.Beyond = strings.Repeat("a", d.RoomBeyond()+1)
	if got := ParseDeaths(d.String()); got != without {
		t.Errorf("%+v", got)
	}
}

func TestWhatIsNoDeathsSaysNothing(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "1", "1/0/0/0/0/oldest", "1/0/0/0/oldest/", "1/0/0/0/0//", "1/0/0/0/0/x/", "1/0/0/0/0/oldest/x", "-1/0/0/0/0/oldest/", "1/2/0/0/0/oldest/",
		"2/1/2/0/0/oldest/", "1/0/0/-1/0/oldest/", "1/0/0/0/-1/oldest/", "1000001/0/0/0/0/oldest/", "1/0/0/9223372036854775808/0/oldest/",
		"1/0/0/0/9223372036854775808/oldest/", " 1/0/0/0/0/oldest/", "1/0/0/0/0/oldest//", "0/0/0/0/0/oldest//1/a=", "0/0/0/0/0/oldest//1/a/b", "0/0/0/0/0/oldest//a",
		"0/0/0/0/0/oldest//-1/a", "0/0/0/0/0/oldest//1/", strings.Repeat("1", 500),
	} {
		if got := ParseDeaths(s); got != (Deaths{}) {
			t.Errorf("%q is %+v", s, got)
		}
	}
}

func FuzzParseDeaths(f *testing.F) {
	f.Add("3/2/1/17/5/4959+3/4960")
	f.Add("0/0/0/0/0/4959//7/AQA")
	f.Fuzz(func(t *testing.T, s string) {
		d := ParseDeaths(s)
		if d != (Deaths{}) && ParseDeaths(d.String()) != d {
			t.Errorf("%q became %+v, and that %q", s, d, d)
		}
	})
}

// When a plan assigns a lease whose owner died, it adds the death to the Deaths of the lease. It
// also counts whether the owner was trying a record at that position.
func TestThePlanNotesDeaths(t *testing.T) {
	t.Parallel()
	at := func(seq string) shard.Position {
		p, err := shard.After(seq)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	text := func(d Deaths) string { return d.String() }
	for _, c := range []struct {
		name   string
		leases []Lease // leases of session x at position 7 and epoch 5, unless set otherwise
		owner  Worker
		paused []string
		want   []string
	}{
		{name: "the first", leases: []Lease{{}}, owner: Worker{Ended: true}, want: []string{text(Deaths{At: at("7"), Count: 1, Given: 1})}},
		{name: "one more at the same position", leases: []Lease{{Deaths: text(Deaths{At: at("7"), Count: 2})}}, owner: Worker{Ended: true},
			want: []string{text(Deaths{At: at("7"), Count: 3, Given: 1})}},
		{name: "the position has moved", leases: []Lease{{Deaths: text(Deaths{At: at("6"), Count: 2, Tried: 1, Alone: 1, Trial: 5})}}, owner: Worker{Ended: true},
			want: []string{text(Deaths{At: at("7"), Count: 1, Given: 1})}},
		{name: "it tried a record by itself", leases: []Lease{{Deaths: text(Deaths{At: at("7"), Count: 2, Trial: 5})}}, owner: Worker{Ended: true},
			want: []string{text(Deaths{At: at("7"), Count: 3, Given: 1, Tried: 1, Alone: 1})}},
		{name: "an owner before it had tried", leases: []Lease{{Deaths: text(Deaths{At: at("7"), Count: 2, Trial: 4})}}, owner: Worker{Ended: true},
			want: []string{text(Deaths{At: at("7"), Count: 3, Given: 1})}},
		{name: "it tried two", leases: []Lease{{Deaths: text(Deaths{At: at("7"), Count: 2, Trial: 5})}, {Deaths: text(Deaths{At: at("7"), Trial: 5})}, {}}, owner: Worker{Ended: true},
			want: []string{text(Deaths{At: at("7"), Count: 3, Given: 1, Tried: 1}), text(Deaths{At: at("7"), Count: 1, Given: 1, Tried: 1}), text(Deaths{At: at("7"), Count: 1, Given: 1})}},
		{name: "it never knew", leases: []Lease{{Deaths: text(Deaths{At: at("7"), Count: 1, Given: 3})}}, owner: Worker{Ended: true},
			want: []string{text(Deaths{At: at("7"), Count: 1, Given: 1})}},
		{name: "it has sent a heartbeat since", leases: []Lease{{Deaths: text(Deaths{At: at("7"), Count: 1, Given: 2})}}, owner: Worker{Ended: true},
			want: []string{text(Deaths{At: at("7"), Count: 2, Given: 1})}},
		{name: "it was to stop", leases: []Lease{{}}, owner: Worker{Ended: true, Leaving: true}, want: []string{""}},
		// A plan for a paused stream assigns no lease. A later Assign adds the death.
		{name: "its stream is paused", leases: []Lease{{}}, owner: Worker{Ended: true}, paused: []string{"s"}, want: []string{""}},
		{name: "it was revoked before it died", leases: []Lease{{Owner: "-", Revoked: "x", Deaths: text(Deaths{At: at("7"), Count: 1, Trial: 4})}}, owner: Worker{Ended: true},
			want: []string{text(Deaths{At: at("7"), Count: 2, Given: 1, Tried: 1, Alone: 1})}},
		{name: "it was revoked from one that was to stop", leases: []Lease{{Owner: "-", Revoked: "x"}}, owner: Worker{Ended: true, Leaving: true}, want: []string{""}},
		{name: "nobody had it", leases: []Lease{{Owner: "-", Deaths: text(Deaths{At: at("7"), Count: 1})}}, owner: Worker{Ended: true}, want: []string{""}},
		{name: "its owner is not known", leases: []Lease{{Owner: "y"}}, owner: Worker{Ended: true}, want: []string{""}},
		{name: "a handoff took too long", leases: []Lease{{Heir: "b"}}, want: []string{""}},
	} {
		v := View{Workers: []Worker{{Session: "b", Heartbeats: 1}}, Paused: c.paused}
		c.owner.Session, c.owner.Heartbeats = "x", 3
		v.Workers = append(v.Workers, c.owner)
		var f Facts
		for i, l := range c.leases {
			l.Key, l.Epoch, l.Position = Key{"s", string(rune('1' + i))}, 5, at("7")
			switch l.Owner {
			case "":
				l.Owner = "x"
			case "-":
				l.Owner = ""
			}
			if l.Heir != "" {
				put(&f.Overdue, l.Key, l.Epoch)
			}
			v.Leases = append(v.Leases, l)
		}
		var got []string
		for _, a := range Plan(v, f, Limits{}) {
			if a.Kind == Assign || a.Kind == Revoke {
				got = append(got, a.Deaths)
			} else if a.Deaths != "" {
				t.Errorf("%s: %s with deaths", c.name, a)
			}
		}
		if strings.Join(got, " ") != strings.Join(c.want, " ") || len(got) != len(c.want) {
			t.Errorf("%s: noted %q, want %q", c.name, got, c.want)
		}
	}
}

// Beyond only counts at epochs at which no operator can have moved the lease since Beyond was
// written.
func TestWhatIsDoneBeyondCountsForTheNextOwnerAlone(t *testing.T) {
	t.Parallel()
	note := Deaths{At: shard.Oldest, Beyond: "a", Since: 5}
	for _, row := range []struct {
		name   string
		at     shard.Position
		epoch  uint64
		counts bool
	}{
		{"its writer gets the lease again", shard.Oldest, 5, true},
		{"the heir of the release", shard.Oldest, 6, true},
		{"the owner after the release", shard.Oldest, 7, true},
		{"the owner after a move to the same place", shard.Oldest, 8, false},
		{"the owner after a move away and back", shard.Oldest, 9, false},
		{"a lease that was set back", shard.Oldest, 4, false},
		{"another position", shard.Latest, 6, false},
	} {
		l := Lease{Position: row.at, Epoch: row.epoch, Deaths: note.String()}
		if d := l.DeathsHere(); (d.Beyond != "") != row.counts {
			t.Errorf("%s: %+v", row.name, d)
		}
	}
	l := Lease{Position: shard.Oldest, Epoch: 9, Deaths: Deaths{At: shard.Oldest, Count: 2, Beyond: "a", Since: 5}.String()}
	if d := l.DeathsHere(); d != (Deaths{At: shard.Oldest, Count: 2}) {
		t.Errorf("%+v, although deaths count at any epoch", d)
	}
}
