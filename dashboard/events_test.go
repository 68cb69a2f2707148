package dashboard

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

func keyOf(id int) lease.Key {
	return lease.Key{Stream: "orders", Shard: fmt.Sprintf("shardId-%012d", id)}
}

func after(seq string) shard.Position {
	p, err := shard.Parse(seq)
	if err != nil {
		panic(err)
	}
	return p
}

// twoWorkers returns a read of an application with two workers. Worker a is the leader and holds
// shards 1 and 2. Worker b holds shard 3.
func twoWorkers(second int) sighting {
	s := sighting{
		at: noon.Add(time.Duration(second) * time.Second),
		view: lease.View{
			Leader:  lease.Leader{Session: "sa"},
			Workers: []lease.Worker{{Session: "sa", Name: "a", Heartbeats: 7}, {Session: "sb", Name: "b", Heartbeats: 7}},
			Leases: []lease.Lease{
				{Key: keyOf(1), Epoch: 1, Owner: "sa", Position: after("7")}, {Key: keyOf(2), Epoch: 1, Owner: "sa", Position: after("7")},
				{Key: keyOf(3), Epoch: 1, Owner: "sb", Position: after("7")},
			},
		},
		beats: map[string]beat{},
	}
	for _, w := range s.view.Workers {
		s.beats[w.Session] = beat{count: 7, first: s.at, last: s.at, moved: true}
	}
	for i := range 3 {
		s.judged = append(s.judged, health.Named{Stream: "orders", Name: keyOf(i + 1).Shard})
	}
	return s
}

// told returns an event as a line of text: the kind, the text, the shards and the workers.
func told(e event) string {
	line := e.kind.Label() + ": " + e.text
	if e.over {
		line += " (over)"
	}
	var ids []string
	for _, k := range e.shards {
		ids = append(ids, shortID(k.Shard))
	}
	return strings.TrimSpace(line + " " + strings.Join(append(ids, e.workers...), " "))
}

func TestEventsAreWhatDiffersBetweenTwoLooks(t *testing.T) {
	t.Parallel()
	silent := func(s *sighting, session string) {
		s.beats[session] = beat{count: 7, first: s.at.Add(-time.Minute), last: s.at}
	}
	judge := func(s *sighting, i int, of health.Shard) { s.judged[i-1].Shard = of }
	for _, c := range []struct {
		name   string
		change func(old, now *sighting)
		want   []string
	}{
		{"nothing happened", func(_, now *sighting) { now.view.Workers[0].Heartbeats++; now.view.Leases[0].Position = after("8") }, nil},
		{"a worker starts", func(_, now *sighting) {
			now.view.Workers = append(now.view.Workers, lease.Worker{Session: "sc", Name: "c"})
		}, []string{"worker: c started c"}},
		{"a worker that is seen for the first time has ended", func(_, now *sighting) {
			now.view.Workers = append(now.view.Workers, lease.Worker{Session: "sc", Name: "c", Ended: true})
		}, nil},
		{"a worker falls silent", func(_, now *sighting) { silent(now, "sa") }, []string{"death: a sends no heartbeats a"}},
		{"a worker is silent as before", func(old, now *sighting) { silent(old, "sa"); silent(now, "sa") }, nil},
		{"a silent worker is alive again", func(old, _ *sighting) { silent(old, "sa") }, []string{"death: a is alive again (over) a"}},
		{"a dead worker's shards go to another", func(old, now *sighting) {
			silent(old, "sa")
			now.view.Workers[0].Ended = true
			now.view.Leader.Session = "sb"
			for i := range 2 {
				now.view.Leases[i].Owner, now.view.Leases[i].Epoch = "sb", 2
			}
		}, []string{"death: a was declared dead; its shards go to others a", "leader: b leads; before, a did b a", "handover: from a, which died, to b 1 2 a b"}},
		{"a worker is being stopped", func(_, now *sighting) { now.view.Workers[0].Leaving = true }, []string{"worker: a is being stopped a"}},
		{"a worker has stopped", func(old, now *sighting) {
			old.view.Workers[1].Leaving = true
			now.view.Workers = now.view.Workers[:1]
			now.view.Leases[2].Owner, now.view.Leases[2].Epoch = "sa", 2
		}, []string{"worker: b stopped b", "handover: from b to a 3 b a"}},
		{"a worker that was stopping is ended", func(_, now *sighting) {
			now.view.Workers[1].Leaving, now.view.Workers[1].Ended = true, true
		}, []string{"worker: b stopped b"}},
		{"a worker vanished while nobody looked", func(old, now *sighting) {
			old.at = now.at.Add(-time.Hour)
			now.view.Workers = now.view.Workers[:1]
		}, []string{"worker: b is gone b"}},
		{"a dead worker is forgotten", func(old, now *sighting) {
			old.view.Workers[1].Ended = true
			now.view.Workers = now.view.Workers[:1]
		}, nil},
		{"a drain begins", func(_, now *sighting) { now.view.Workers[1].Drain = true }, []string{"drain: b is drained b"}},
		{"a drain ends", func(old, _ *sighting) { old.view.Workers[1].Drain = true }, []string{"drain: b is no longer drained (over) b"}},
		{"a worker is cut off", func(_, now *sighting) {
			now.view.Workers[1].Troubles = []lease.Trouble{{State: lease.CutOff, For: time.Minute, Why: "no route"}}
		}, []string{"trouble: b is cut off: no route b"}},
		{"pauses", func(old, now *sighting) {
			old.view.Paused, now.view.Paused = []string{"bills"}, []string{"", "orders"}
		}, []string{"pause: the application was paused", "pause: orders was paused", "pause: bills was resumed (over)"}},
		{"no worker leads", func(_, now *sighting) { now.view.Leader.Session = "" }, []string{"leader: no leader; before: a did a"}},
		{"somebody leads again", func(old, _ *sighting) { old.view.Leader.Session = "" }, []string{"leader: a leads a"}},
		{"a split", func(_, now *sighting) {
			now.view.Leases[2].Position, now.view.Leases[2].Owner, now.view.Leases[2].Epoch = shard.End, "", 2
			for i := range 2 {
				now.view.Leases = append(now.view.Leases, lease.Lease{Key: keyOf(4 + i), Parents: []string{keyOf(3).Shard}, Owner: "sb", Epoch: 1, Position: shard.Oldest})
			}
		}, []string{"shards: 3 was split into 4 and 5 3 4 5", "shards: read to its end 3 b"}},
		{"a merge", func(_, now *sighting) {
			now.view.Leases = append(now.view.Leases, lease.Lease{Key: keyOf(4), Parents: []string{keyOf(2).Shard, keyOf(1).Shard}, Epoch: 1, Position: shard.Oldest})
		}, []string{"shards: 1 and 2 were merged into 4 1 2 4"}},
		{"shards of a stream that is new, and one that has gone", func(_, now *sighting) {
			now.view.Leases = append(now.view.Leases[1:], lease.Lease{Key: keyOf(8), Epoch: 1, Position: shard.Oldest}, lease.Lease{Key: keyOf(9), Epoch: 1, Position: shard.Oldest})
		}, []string{"shards: appeared 8 9", "shards: left the stream 1"}},
		{"the stream was recreated", func(old, now *sighting) {
			old.view.Leases[0].Born, now.view.Leases[0].Born, now.view.Leases[0].Position = 1, 2, shard.Oldest
		}, []string{"shards: the stream was recreated 1"}},
		{"a hand-over", func(_, now *sighting) { now.view.Leases[0].Owner, now.view.Leases[0].Epoch = "sb", 2 }, []string{"handover: from a to b 1 a b"}},
		{"a shard that nobody had", func(old, _ *sighting) { old.view.Leases[0].Owner = "" }, []string{"handover: to a; it had no owner 1 a"}},
		{"a shard is given back", func(_, now *sighting) { now.view.Leases[0].Owner, now.view.Leases[0].Epoch = "", 2 }, []string{"handover: given back by a 1 a"}},
		{"a shard is given back because it stalled", func(_, now *sighting) {
			l := &now.view.Leases[0]
			l.Owner, l.Epoch, l.Shunned = "", 2, "sa"
		}, []string{"handover: given back by a, which made no progress 1 a"}},
		{"a shard is taken away", func(_, now *sighting) {
			l := &now.view.Leases[0]
			l.Owner, l.Epoch, l.Revoked = "", 2, "sa"
		}, []string{"handover: taken from a 1 a"}},
		{"there and back between two looks", func(_, now *sighting) { now.view.Leases[0].Epoch = 3 }, []string{"handover: changed hands, and is with a again 1 a"}},
		{"an operator sets a shard back", func(_, now *sighting) { now.view.Leases[0].Position = shard.Oldest }, []string{"trouble: reset to an earlier position 1"}},
		{"a stall begins", func(_, now *sighting) {
			judge(now, 1, health.Shard{State: health.Stalled, Reason: health.InHandler, Err: "no table", Since: at(-3)})
			judge(now, 2, health.Shard{State: health.Stalled, Reason: health.InHandler, Err: "no table", Since: at(-2)})
		}, []string{"stall: stalled: in the handler; last error: no table 1 2 a"}},
		{"a stall ends", func(old, _ *sighting) { judge(old, 1, health.Shard{State: health.Stalled}) }, []string{"stall: not stalled any more; now ok (over) 1 a"}},
		{"what is stalled comes near the end of retention", func(old, now *sighting) {
			judge(old, 1, health.Shard{State: health.Stalled})
			judge(now, 1, health.Shard{State: health.RetentionNear, Reason: health.RecordsExpire, Detail: "in 2 h"})
		}, []string{"trouble: near the end of retention: records expire in 2 h 1 a"}},
		{"nobody reads a shard for a while", func(_, now *sighting) {
			judge(now, 3, health.Shard{State: health.Unread, Reason: health.NoWorker, Since: now.at.Add(-unreadTold)})
		}, []string{"trouble: unread: no worker lives 3 b"}},
		{"nobody reads a shard for a moment", func(_, now *sighting) {
			judge(now, 3, health.Shard{State: health.Unread, Reason: health.Unassigned, Since: now.at})
		}, nil},
		{"a shard is behind and catches up", func(old, now *sighting) {
			judge(old, 1, health.Shard{State: health.Behind})
			judge(now, 1, health.Shard{State: health.CatchingUp})
		}, nil},
		{"a handler begins to fail", func(_, now *sighting) {
			now.view.Workers[0].Troubles = []lease.Trouble{{Key: keyOf(1), For: time.Minute, Why: "no room", Failing: lease.Failing{Attempts: 3}}}
		}, []string{"failing: the handler fails: no room 1 a"}},
		{"a handler fails as before", func(old, now *sighting) {
			old.view.Workers[0].Troubles = []lease.Trouble{{Key: keyOf(1), Why: "no room", Failing: lease.Failing{Attempts: 3}}}
			now.view.Workers[0].Troubles = []lease.Trouble{{Key: keyOf(1), Why: "no room", Failing: lease.Failing{Attempts: 4}}}
		}, nil},
		{"a handler does not fail any more", func(old, _ *sighting) {
			old.view.Workers[0].Troubles = []lease.Trouble{{Key: keyOf(1), Failing: lease.Failing{Attempts: 3}}}
		}, []string{"failing: the handler no longer fails (over) 1 a"}},
		{"a shard whose handler fails goes to another worker", func(old, now *sighting) {
			old.view.Workers[0].Troubles = []lease.Trouble{{Key: keyOf(1), Failing: lease.Failing{Attempts: 3}}}
			now.view.Leases[0].Owner, now.view.Leases[0].Epoch = "sb", 2
		}, []string{"handover: from a to b 1 a b"}},
		{"more records are dead-lettered", func(old, now *sighting) {
			old.view.Workers[0].Troubles = []lease.Trouble{{Key: keyOf(1), State: lease.GaveUp, Failing: lease.Failing{GivenUp: 2}}}
			now.view.Workers[0].Troubles = []lease.Trouble{{Key: keyOf(1), State: lease.GaveUp, Why: "bad", Failing: lease.Failing{GivenUp: 3}}}
		}, []string{"given_up: 1 record was dead-lettered: bad 1 a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			old, now := twoWorkers(0), twoWorkers(2)
			c.change(&old, &now)
			var got []string
			for _, e := range changes(old, now) {
				got = append(got, told(e))
				if e.at != now.at || e.after != old.at {
					t.Errorf("between %v and %v", e.after, e.at)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
	if first := changes(sighting{}, twoWorkers(0)); first != nil {
		t.Errorf("the first look tells %v", first)
	}
}

// Changes of many shards at once must become few events, and must not exceed the size of the log.
func TestWhatHappensToManyShardsIsFewEvents(t *testing.T) {
	t.Parallel()
	old, now := twoWorkers(0), twoWorkers(2)
	for i := range 1000 {
		l := lease.Lease{Key: keyOf(100 + i), Epoch: 1, Owner: "sa", Position: after("7")}
		old.view.Leases = append(old.view.Leases, l)
		l.Owner, l.Epoch = "sb", 2
		now.view.Leases = append(now.view.Leases, l)
		name := health.Named{Stream: "orders", Name: l.Shard}
		old.judged = append(old.judged, name)
		name.State, name.Reason, name.Detail = health.Stalled, health.OtherReason, fmt.Sprintf("reason %d", i)
		now.judged = append(now.judged, name)
	}
	all := changes(old, now)
	if len(all) != 1+mostOfAKind || len(all[0].shards) != 1000 || len(all[mostOfAKind].shards) != 1000-mostOfAKind+1 || !strings.HasSuffix(all[mostOfAKind].text, andOthers) {
		t.Errorf("%d events, the last of %d shards: %s", len(all), len(all[len(all)-1].shards), all[len(all)-1].text)
	}
	var log eventLog
	for range mostEvents {
		log = log.with(all)
	}
	mentions := 0
	for _, e := range log.events {
		mentions += len(e.shards)
	}
	if len(log.events) > mostEvents || mentions > mostMentions || !log.dropped {
		t.Errorf("%d events with %d shards, dropped: %t", len(log.events), mentions, log.dropped)
	}
	if newest := log.events[0]; newest.kind != stallEvent {
		t.Errorf("the newest is %s", told(newest))
	}
}

func TestALogKeepsTheNewestEvents(t *testing.T) {
	t.Parallel()
	log := eventLog{since: noon}
	if log = log.with(nil); len(log.events) != 0 {
		t.Error("nothing is an event")
	}
	for i := range mostEvents + 5 {
		log = log.with([]event{{text: fmt.Sprint("first ", i)}, {text: fmt.Sprint("then ", i)}})
	}
	if len(log.events) != mostEvents || !log.dropped || log.events[0].text != fmt.Sprint("then ", mostEvents+4) || log.events[1].text != fmt.Sprint("first ", mostEvents+4) || log.since != noon {
		t.Errorf("%d events from %q", len(log.events), log.events[0].text)
	}
	huge := event{shards: make([]lease.Key, 2*mostMentions)}
	if log = log.with([]event{huge}); len(log.events) != 1 {
		t.Errorf("%d events beside one that fills the log", len(log.events))
	}
}

func TestAnOutageOfTheStoreIsAnEvent(t *testing.T) {
	t.Parallel()
	s := twoWorkers(0)
	if got := told(outage(errors.New("gone"), s.at, at(1))); got != "store: the store does not answer: gone" {
		t.Error(got)
	}
	s.err = errors.New("gone")
	if log := s.tell(twoWorkers(60)); len(log.events) != 1 || told(log.events[0]) != "store: the store answers again (over)" {
		t.Errorf("%+v", log)
	}
}

func TestEventsAreFilteredByKindShardAndWorker(t *testing.T) {
	t.Parallel()
	e := event{kind: handoverEvent, shards: []lease.Key{keyOf(1), keyOf(2)}, workers: []string{"a", "b"}}
	for f, want := range map[eventFilter]bool{
		{}:                                  true,
		{kind: "handover"}:                  true,
		{kind: "stall"}:                     false,
		{shard: "2"}:                        true,
		{shard: keyOf(1).Shard}:             true,
		{shard: "12"}:                       false,
		{stream: "orders"}:                  true,
		{stream: "bills"}:                   false,
		{stream: "bills", shard: "1"}:       false,
		{worker: "b"}:                       true,
		{worker: "c"}:                       false,
		{"handover", "orders", "1", "a"}:    true,
		{"handover", "orders", "1", "none"}: false,
	} {
		if got := f.wants(e); got != want {
			t.Errorf("%+v: %t", f, got)
		}
	}
}
