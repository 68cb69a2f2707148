package change

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

var now = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func at(t *testing.T, s string) shard.Position {
	t.Helper()
	p, err := shard.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func key(id string) lease.Key { return lease.Key{Stream: "s", Shard: id} }

// family returns a stream in which 0 was split into 1 and 2, and 1 and 3 were merged into 4. Shard
// 5 has no relatives.
func family() Stream {
	all := shard.HashRange{End: shard.MaxHashKey}
	sh := func(id string, closed bool, parents ...string) shard.Shard {
		return shard.Shard{ID: id, Closed: closed, Parents: parents, Range: all}
	}
	return Stream{Name: "s", Now: now, Born: 7, Shards: []shard.Shard{
		sh("5", false), sh("4", false, "1", "3"), sh("3", true), sh("2", false, "0"), sh("1", true, "0"), sh("0", true),
	}}
}

func progress(t *testing.T) []lease.Lease {
	l := func(id string, epoch uint64, position string, parents ...string) lease.Lease {
		return lease.Lease{Key: key(id), Parents: parents, Epoch: epoch, Position: at(t, position), Last: "A"}
	}
	return []lease.Lease{l("0", 3, "end"), l("1", 4, "end", "0"), l("2", 5, "200", "0"), l("3", 1, "end"), l("4", 2, "400", "1", "3"), l("5", 9, "500")}
}

func lines(steps []Step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, "%s %s>%s", s.Shard, s.From, s.To)
		for _, a := range s.Actions {
			fmt.Fprintf(&b, " %s@%d", a.Kind, max(a.Epoch, a.Lease.Epoch))
		}
		if s.Why != "" {
			fmt.Fprintf(&b, " (%s)", s.Why)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestReset(t *testing.T) {
	for name, c := range map[string]struct {
		to, shard string
		change    func(*Stream, *[]lease.Lease)
		want      string
	}{
		"the whole stream to its oldest record: parents first, all opened again": {to: "oldest", want: `
0 end>oldest move@3 (it was read to its end: it is opened again)
3 end>oldest move@1 (it was read to its end: it is opened again)
5 500>oldest move@9
1 end>oldest move@4 (it was read to its end: it is opened again)
2 200>oldest move@5
4 400>oldest move@2
`},
		"a time is the same for all": {to: "2026-01-31T11:00:00Z", want: `
0 end>2026-01-31T11:00:00.000Z move@3 (it was read to its end: it is opened again)
3 end>2026-01-31T11:00:00.000Z move@1 (it was read to its end: it is opened again)
5 500>2026-01-31T11:00:00.000Z move@9
1 end>2026-01-31T11:00:00.000Z move@4 (it was read to its end: it is opened again)
2 200>2026-01-31T11:00:00.000Z move@5
4 400>2026-01-31T11:00:00.000Z move@2
`},
		"latest is the service's time, and closed shards are done": {to: "latest",
			change: func(_ *Stream, leases *[]lease.Lease) { (*leases)[1].Position = at(t, "100") }, want: `
0 end>end (it is there already)
3 end>end (it is there already)
5 500>2026-01-31T12:00:00.000Z move@9 (now, by the service's clock)
1 100>end move@4 (it is closed: nothing new comes)
2 200>2026-01-31T12:00:00.000Z move@5 (now, by the service's clock)
4 400>2026-01-31T12:00:00.000Z move@2 (now, by the service's clock)
`},
		"a shard takes its descendants along": {to: "oldest", shard: "1", want: `
1 end>oldest move@4 (it was read to its end: it is opened again)
4 400>oldest move@2 (descends from 1)
`},
		"a grandparent takes all of them": {to: "oldest", shard: "0", want: `
0 end>oldest move@3 (it was read to its end: it is opened again)
1 end>oldest move@4 (descends from 0)
2 200>oldest move@5 (descends from 0)
4 400>oldest move@2 (descends from 0)
`},
		"a sequence number belongs to one shard, those after it begin": {to: "33+2", shard: "3", want: `
3 end>33+2 move@1 (it was read to its end: it is opened again)
4 400>oldest move@2 (descends from 3)
`},
		"a time for one shard is that of its descendants": {to: "2026-01-31T11:00:00Z", shard: "3", want: `
3 end>2026-01-31T11:00:00.000Z move@1 (it was read to its end: it is opened again)
4 400>2026-01-31T11:00:00.000Z move@2 (descends from 3)
`},
		"latest for one shard makes nothing come again": {to: "latest", shard: "0", want: `
0 end>end (it is there already)
`},
		"shards without leases get them": {to: "oldest", shard: "1",
			change: func(_ *Stream, leases *[]lease.Lease) { *leases = nil }, want: `
1 >oldest create@1
4 >oldest create@1 (descends from 1)
`},
		"what is there already stays, unless it has an owner": {to: "oldest",
			change: func(s *Stream, leases *[]lease.Lease) {
				s.Shards = s.Shards[:1]
				*leases = []lease.Lease{{Key: key("5"), Epoch: 9, Position: shard.Oldest, Born: 7}}
			}, want: `
5 oldest>oldest (it is there already)
`},
		"a child in the right place moves with its parents, so that a leader notices": {to: "oldest", shard: "1",
			change: func(_ *Stream, leases *[]lease.Lease) { (*leases)[4].Position = shard.Oldest }, want: `
1 end>oldest move@4 (it was read to its end: it is opened again)
4 oldest>oldest move@2 (descends from 1)
`},
		"a child that moves with its parents in a reset of all says why": {to: "oldest",
			change: func(_ *Stream, leases *[]lease.Lease) {
				for i := range *leases {
					(*leases)[i].Position = shard.Oldest
				}
				(*leases)[0].Epoch = 1 // this lease never had an owner
				(*leases)[1].Position = shard.End
			}, want: `
0 oldest>oldest (it is there already)
3 oldest>oldest (it is there already)
5 oldest>oldest (it is there already)
1 end>oldest move@4 (it was read to its end: it is opened again)
2 oldest>oldest (it is there already)
4 oldest>oldest move@2 (it waits for its parents again)
`},
		"a child moves after an incomplete reset that had opened the parents": {to: "oldest", shard: "1",
			change: func(_ *Stream, leases *[]lease.Lease) {
				(*leases)[1].Position, (*leases)[4].Position = shard.Oldest, shard.Oldest
			}, want: `
1 oldest>oldest (it is there already)
4 oldest>oldest move@2 (descends from 1)
`},
		"a held lease is taken away even from the right place": {to: "oldest",
			change: func(s *Stream, leases *[]lease.Lease) {
				s.Shards = s.Shards[:1]
				*leases = []lease.Lease{{Key: key("5"), Epoch: 9, Owner: "A", Position: shard.Oldest, Born: 7}}
			}, want: `
5 oldest>oldest move@9
`},
		"notes about the position are dropped": {to: "oldest",
			change: func(s *Stream, leases *[]lease.Lease) {
				s.Shards = s.Shards[:1]
				note := lease.Deaths{At: shard.Oldest, Beyond: "a", Since: 8}
				*leases = []lease.Lease{{Key: key("5"), Epoch: 9, Position: shard.Oldest, Born: 7, Deaths: note.String()}}
			}, want: `
5 oldest>oldest move@9 (finished records after it are handled again)
`},
		"deaths are dropped, too": {to: "oldest",
			change: func(s *Stream, leases *[]lease.Lease) {
				s.Shards = s.Shards[:1]
				note := lease.Deaths{At: shard.Oldest, Count: 1}
				*leases = []lease.Lease{{Key: key("5"), Epoch: 9, Position: shard.Oldest, Born: 7, Deaths: note.String()}}
			}, want: `
5 oldest>oldest move@9
`},
		"a recreated stream changes the lease at the same position": {to: "oldest",
			change: func(s *Stream, leases *[]lease.Lease) {
				s.Shards = s.Shards[:1]
				*leases = []lease.Lease{{Key: key("5"), Epoch: 9, Position: shard.Oldest, Born: 6}}
			}, want: `
5 oldest>oldest move@9
`},
		"a lease whose shard has left stays": {to: "oldest",
			change: func(s *Stream, leases *[]lease.Lease) { s.Shards = s.Shards[:1] }, want: `
5 500>oldest move@9
2 200>200 (its shard has left the stream: the lease stays)
4 400>400 (its shard has left the stream: the lease stays)
`},
	} {
		t.Run(name, func(t *testing.T) {
			s, leases := family(), progress(t)
			if c.change != nil {
				c.change(&s, &leases)
			}
			leases = append(leases, lease.Lease{Key: lease.Key{Stream: "other", Shard: "0"}, Epoch: 1, Position: shard.Oldest})
			steps, err := Reset(s, leases, Wish{To: at(t, c.to), Shard: c.shard})
			if got := lines(steps); err != nil || got != c.want[1:] {
				t.Errorf("%v, got\n%swant%s", err, got, c.want)
			}
			for _, step := range steps {
				for _, a := range step.Actions {
					if err := a.Check(); err != nil {
						t.Error(err)
					}
					if born := max(a.Born, a.Lease.Born); born != 7 {
						t.Errorf("%s: born %d", a, born)
					}
				}
			}
		})
	}
	if _, err := Reset(family(), nil, Wish{To: shard.Oldest, Shard: "9"}); err == nil || !strings.Contains(err.Error(), "no shard 9") {
		t.Errorf("a shard that is not there: %v", err)
	}
	if _, err := Reset(family(), nil, Wish{To: shard.At(now.Add(time.Minute))}); err == nil || !strings.Contains(err.Error(), "is in the future for stream s") {
		t.Errorf("a time that has not come: %v", err)
	}
}

// After a reset to the oldest record, only shards without parents are assigned. A child is assigned
// after all of its parents have ended again, although all shards had progress before.
func TestResetChildrenWaitForTheirParentsAgain(t *testing.T) {
	store := memstore.New()
	apply := func(actions ...lease.Action) {
		t.Helper()
		did, err := store.Apply(t.Context(), "a", actions)
		if err != nil || slices.Contains(did, false) {
			t.Fatalf("%v, %v of %v", err, did, actions)
		}
	}
	for _, l := range progress(t) {
		apply(lease.Action{Kind: lease.Create, Lease: l})
	}
	view := func() lease.View {
		t.Helper()
		v, err := store.View(t.Context(), "a", "")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	steps, err := Reset(family(), view().Leases, Wish{To: shard.Oldest})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if s.Happened(view()) {
			t.Errorf("%s counts as done before it is", s.Key)
		}
		apply(s.Actions...)
		if !s.Happened(view()) {
			t.Errorf("%s does not count as done", s.Key)
		}
	}
	if _, err := store.Heartbeat(t.Context(), "a", lease.Report{Session: "A", First: true}); err != nil {
		t.Fatal(err)
	}
	given := func() (ids []string) {
		for _, a := range lease.Plan(view(), lease.Facts{}, lease.Limits{}) {
			apply(a)
			ids = append(ids, a.Key.Shard)
		}
		return ids
	}
	finish := func(id string) {
		for _, l := range view().Leases {
			if l.Shard == id {
				_, err := store.Heartbeat(t.Context(), "a", lease.Report{Session: "A", Progress: []lease.Progress{{Key: l.Key, Epoch: l.Epoch, Position: shard.End}}})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, c := range []struct {
		ends string
		want string
	}{{"", "[0 3 5]"}, {"3", "[]"}, {"0", "[1 2]"}, {"1", "[4]"}} {
		finish(c.ends)
		if got := fmt.Sprint(given()); got != c.want {
			t.Errorf("after the end of %q: %s is given out, want %s", c.ends, got, c.want)
		}
	}
}

func TestParseTo(t *testing.T) {
	for in, want := range map[string]string{"oldest": "oldest", "latest": "latest", "2026-01-31T11:00:00Z": "2026-01-31T11:00:00.000Z", "33+2": "33+2", "15m": "15m0s ago", "0s": "0s ago"} {
		w, ago, err := ParseTo(in)
		got := w.To.String()
		if ago != nil {
			got += ago.String() + " ago"
		}
		if err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", in, got, err, want)
		}
	}
	for _, bad := range []string{"", "end", "-5m", "yesterday"} {
		if w, ago, err := ParseTo(bad); err == nil {
			t.Errorf("%q: %v, %v", bad, w, ago)
		}
	}
}
