package consume

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func TestARecordIsHandledSince(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	saved, err := shard.After("49590338271490256608559692538361571095921575989136588898")
	if err != nil {
		t.Fatal(err)
	}
	tip := weir.ShardStatus{At: saved, Saved: saved, Reading: health.AtTip, Reason: health.AtTip}
	with := func(change func(*weir.ShardStatus)) weir.ShardStatus {
		s := tip
		change(&s)
		return s
	}
	late := func(lag time.Duration) weir.ShardStatus {
		return with(func(s *weir.ShardStatus) {
			s.Reading, s.Reason = health.Requesting, health.InHandler
			s.Behind, s.ReadLag, s.HandledLag, s.SavedLag = lag, lag, lag, lag
		})
	}
	for name, c := range map[string]struct {
		status weir.ShardStatus
		after  time.Duration // since the begin
		want   bool
	}{
		"at the tip":                         {tip, time.Second, true},
		"subscribed at the tip":              {with(func(s *weir.ShardStatus) { s.Reading, s.Reason = health.Subscribed, health.Subscribed }), time.Second, true},
		"no answer yet":                      {with(func(s *weir.ShardStatus) { s.Behind, s.SavedLag = -1, -1 }), time.Hour, false},
		"reads have failed from the start":   {with(func(s *weir.ShardStatus) { s.Behind, s.SavedLag = -1, time.Minute }), time.Hour, false},
		"the checkpoint has expired":         {with(func(s *weir.ShardStatus) { s.Expired = true }), time.Hour, false},
		"a record waits for the handler":     {with(func(s *weir.ShardStatus) { s.Buffered, s.SavedLag = 1, 2*time.Second }), time.Second, false},
		"a record is with the handler":       {with(func(s *weir.ShardStatus) { s.Reason, s.SavedLag = health.InHandler, 2*time.Second }), time.Second, false},
		"a key is not finished":              {with(func(s *weir.ShardStatus) { s.Keys, s.SavedLag = 1, 2*time.Second }), time.Second, false},
		"progress is not saved":              {with(func(s *weir.ShardStatus) { s.Saved, s.SavedLag = shard.Oldest, 2*time.Second }), time.Second, false},
		"a window is open":                   {with(func(s *weir.ShardStatus) { s.SavedLag = time.Minute }), 30 * time.Second, false},
		"behind the begin":                   {late(time.Minute), 30 * time.Second, false},
		"at the begin, but clocks differ":    {late(time.Minute), time.Minute + clockDifference, false},
		"past the begin, never at the tip":   {late(time.Minute), time.Minute + clockDifference + time.Second, true},
		"the begin was long ago, small lag":  {late(time.Second), time.Hour, true},
		"the begin was long ago, larger lag": {late(2 * time.Hour), time.Hour, false},
	} {
		if got := handledSince(&c.status, begin, begin.Add(c.after)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Each row describes the leases of an application as words "SHARD:OWNER", with "<PARENT" for a
// parent, ">HEIR", and "finished". The worker is A, and its session is sA.
func TestAWorkerEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		leases string
		own    string // shards that this worker reads and has handled
		held   bool   // this worker held shards before
		dead   string // sessions without heartbeats
		leaves string // sessions that stop
		listed string // shards of the stream; the leases by default
		paused string
		wait   string // a part of the reason; "" if it ends
		others string
	}{
		"it reads everything":                      {leases: "1:sA 2:sA", own: "1 2"},
		"every shard is finished":                  {leases: "1:finished 2:finished", held: true},
		"every shard is finished, it held none":    {leases: "1:finished"},
		"there is no lease":                        {listed: "1", wait: "1 has no lease yet"},
		"a shard has no lease yet":                 {leases: "1:sA", own: "1", listed: "1 2", wait: "2 has no lease yet"},
		"a shard has no owner":                     {leases: "1:sA 2:", own: "1", wait: "2 has no owner yet"},
		"a lease has arrived but not begun":        {leases: "1:sA 2:sA", own: "1", wait: "about to come"},
		"its first lease has arrived":              {leases: "1:sA 2:sB", wait: "about to come"},
		"a lease is handed to it":                  {leases: "1:sA 2:sB>sA", own: "1", wait: "about to come"},
		"another worker reads the rest":            {leases: "1:sA 2:sB", own: "1", others: "2"},
		"the other worker is dead":                 {leases: "1:sA 2:sB", own: "1", dead: "sB", wait: "may be dead"},
		"the other session is unknown":             {leases: "1:sA 2:sX", own: "1", wait: "may be dead"},
		"the other worker stops":                   {leases: "1:sA 2:sB", own: "1", leaves: "sB", wait: "stops"},
		"another worker reads all":                 {leases: "1:sB 2:sB", wait: "other workers have all"},
		"it has finished its shards":               {leases: "1:finished 2:sB", held: true, others: "2"},
		"a child of its finished shard is free":    {leases: "1:finished 2:<1", held: true, wait: "2 has no owner yet"},
		"a child of its open shard":                {leases: "1:sA 2:<1", own: "1", wait: "waits for its parent"},
		"a child of another's shard":               {leases: "1:sA 2:sB 3:<2", own: "1", others: "2 3"},
		"a grandchild of another's shard":          {leases: "1:sA 2:sB 3:<2 4:<3", own: "1", others: "2 3 4"},
		"a child of its own and another's shard":   {leases: "1:sA 2:sB 3:<1<2", own: "1", wait: "waits for its parent"},
		"a child whose parent has left the stream": {leases: "1:sA 3:<2", own: "1", wait: "3 has no owner yet"},
		"a paused stream":                          {leases: "1:", paused: "s", wait: "stream s is paused"},
		"a paused application":                     {leases: "1:", paused: "*", wait: "stream s is paused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
			p := progress{now: func() time.Time { return now }, worker: "A", streams: map[string]bool{"s": true}, held: c.held, own: map[term]bool{}}
			key := func(id string) lease.Key { return lease.Key{Stream: "s", Shard: id} }
			for _, id := range strings.Fields(c.own) {
				p.own[term{key(id), 3}], p.held = true, true
			}
			for _, id := range strings.Fields(c.listed) {
				p.listed = append(p.listed, key(id))
			}
			view := lease.View{Leases: []lease.Lease{{Key: lease.Key{Stream: "unread", Shard: "1"}}}}
			switch c.paused {
			case "*":
				view.Paused = []string{""}
			case "s":
				view.Paused = []string{"s"}
			}
			for _, word := range strings.Fields(c.leases) {
				view.Leases = append(view.Leases, leaseOf(t, key, word))
			}
			for beats := range uint64(2) { // two looks, a heartbeat apart
				view.Workers = nil
				for _, session := range []string{"sA", "sB"} {
					w := lease.Worker{Session: session, Name: session[1:], Heartbeats: 7, Leaving: strings.Contains(c.leaves, session)}
					if !strings.Contains(c.dead, session) {
						w.Heartbeats += beats
					}
					view.Workers = append(view.Workers, w)
				}
				p.heartbeats(view.Workers)
				now = now.Add(time.Second)
			}
			d := p.decide(view)
			var got []string
			for _, k := range d.others {
				got = append(got, k.Shard)
			}
			if (d.wait == "") != (c.wait == "") || !strings.Contains(d.wait, c.wait) {
				t.Errorf("waits because %q, want %q", d.wait, c.wait)
			}
			if d.wait == "" && !slices.Equal(got, strings.Fields(c.others)) {
				t.Errorf("others read %q, want %q", got, c.others)
			}
		})
	}
}

// leaseOf parses a word of a test's table.
func leaseOf(t *testing.T, key func(string) lease.Key, word string) lease.Lease {
	t.Helper()
	id, rest, found := strings.Cut(word, ":")
	if !found {
		t.Fatal(fmt.Errorf("%q has no colon", word))
	}
	l := lease.Lease{Key: key(id), Epoch: 3}
	parts := strings.Split(rest, "<")
	l.Parents = parts[1:]
	l.Owner, l.Heir, _ = strings.Cut(parts[0], ">")
	if l.Owner == "finished" {
		l.Owner, l.Position = "", shard.End
	}
	return l
}

func TestUntilIsATimeThatHasPassed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	for given, want := range map[string]string{
		"15m":                       "2026-11-25T02:45:00Z",
		"0s":                        "2026-11-25T03:00:00Z",
		"2026-11-25T02:00:00Z":      "2026-11-25T02:00:00Z",
		"2026-11-25T04:00:00+02:00": "2026-11-25T02:00:00Z",
		"2026-11-25T03:00:01Z":      "in the future",
		"-5m":                       "is not a time",
		"yesterday":                 "is not a time",
	} {
		f := untilFlags{at: given}
		err := f.parse(now)
		got := f.time.UTC().Format(time.RFC3339)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("--until %s: %s, want %s", given, got, want)
		}
		if f.on() != (err == nil) {
			t.Errorf("--until %s: on is %v", given, f.on())
		}
	}
}
