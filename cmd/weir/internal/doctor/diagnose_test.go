package doctor

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

var serviceTime = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func key(id string) lease.Key { return lease.Key{Stream: "s", Shard: id} }

func at(t testing.TB, s string) shard.Position {
	t.Helper()
	p, err := shard.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// healthy returns the facts of an application with two workers that share three shards. Shard 0 was
// split into 1 and 2. Shard 3 is not related to them.
func healthy(t testing.TB) *Facts {
	half := shard.HashKey{Hi: 1 << 63}
	lower, upper := shard.HashRange{End: shard.HashKey{Hi: 1<<63 - 1, Lo: 1<<64 - 1}}, shard.HashRange{Start: half, End: shard.MaxHashKey}
	quarter := shard.HashRange{End: shard.HashKey{Hi: 1<<62 - 1, Lo: 1<<64 - 1}}
	rest := shard.HashRange{Start: shard.HashKey{Hi: 1 << 62}, End: lower.End}
	view := func() lease.View {
		return lease.View{
			Leader:  lease.Leader{Session: "A", Epoch: 3, Heartbeats: 10},
			Workers: []lease.Worker{{Session: "A", Name: "ann", Heartbeats: 10, Weight: 1}, {Session: "B", Name: "bob", Heartbeats: 20, Weight: 1}},
			Leases: []lease.Lease{
				{Key: key("0"), Range: lower, Epoch: 4, Position: shard.End, Last: "A"},
				{Key: key("1"), Range: quarter, Parents: []string{"0"}, Epoch: 2, Owner: "A", Last: "A", Position: at(t, "100"), Born: 7},
				{Key: key("2"), Range: rest, Parents: []string{"0"}, Epoch: 2, Owner: "B", Last: "B", Position: at(t, "200"), Born: 7},
				{Key: key("3"), Range: upper, Epoch: 2, Owner: "B", Last: "B", Position: at(t, "300"), Born: 7},
			},
		}
	}
	f := &Facts{
		App: "billing", First: view(), Second: view(), Apart: 6 * time.Second, Beats: map[string]bool{"A": true, "B": true},
		Streams: []Stream{{Name: "s", Born: 7, Retention: 24 * time.Hour, Now: serviceTime, Status: "ACTIVE", Shards: []shard.Shard{
			{ID: "0", Range: lower, Closed: true}, {ID: "1", Range: quarter, Parents: []string{"0"}}, {ID: "2", Range: rest, Parents: []string{"0"}}, {ID: "3", Range: upper},
		}}},
		Shards: map[lease.Key]Shard{key("1"): {}, key("2"): {}, key("3"): {}},
	}
	f.Second.Leader.Heartbeats = 16
	return f
}

// lease changes a lease in both views.
func (f *Facts) lease(id string, change func(*lease.Lease)) {
	for _, v := range []*lease.View{&f.First, &f.Second} {
		for i := range v.Leases {
			if v.Leases[i].Shard == id {
				change(&v.Leases[i])
			}
		}
	}
}

func (f *Facts) worker(session string, change func(*lease.Worker)) {
	for _, v := range []*lease.View{&f.First, &f.Second} {
		for i := range v.Workers {
			if v.Workers[i].Session == session {
				change(&v.Workers[i])
			}
		}
	}
}

func (f *Facts) times(t lease.Times) {
	for _, s := range []string{"A", "B"} {
		f.worker(s, func(w *lease.Worker) { w.Times = t })
	}
}

func (f *Facts) look(id string, l Look) { f.Shards[key(id)] = Shard{l, l} }

func free(l *lease.Lease) { l.Owner = "" }

func TestDiagnose(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Facts)
		want   string   // lines with severity, code and subject
		says   []string // parts of the text or remedy of the first finding
	}{
		"nothing if the handler takes longer": {func(*Facts) {}, "", nil},
		"a slow batch is not stuck":           {func(f *Facts) { f.look("1", Look{Waits: true, Age: 59 * time.Second}) }, "", nil},
		"a checkpoint stands still while old records wait": {func(f *Facts) { f.look("1", Look{Waits: true, Age: 3 * time.Minute}) },
			"warning no-checkpoint ann", []string{"no checkpoint of s/1 for 6 s", "the oldest for 3 min", "nothing if the handler takes longer", "--watch 2m0s"}},
		"a worker that is young has old records, and slow batches": {func(f *Facts) {
			f.Apart = 2 * time.Second
			f.look("2", Look{Waits: true, Age: 47 * time.Minute})
			f.look("3", Look{Waits: true, Age: 48 * time.Minute})
		}, "warning no-checkpoint bob", []string{"worker bob has made no checkpoint of 2 shards, s/3 among them, for 2 s", "the oldest for 48 min"}},
		"slow batches of two workers": {func(f *Facts) {
			f.look("1", Look{Waits: true, Age: time.Hour})
			f.look("2", Look{Waits: true, Age: time.Hour})
		}, "warning no-checkpoint ann", []string{"2 workers: they have made no checkpoint", "first ann"}},
		"a checkpoint stands still for longer than workers bear in silence": {func(f *Facts) {
			f.Apart = stallAfter
			f.look("1", Look{Waits: true, Age: 3 * time.Minute})
		}, "error stuck-shard s/1", []string{"has not moved for 2 min", "the oldest for 3 min", "its owner is ann"}},
		"a checkpoint stands still and its worker complains": {func(f *Facts) {
			f.look("2", Look{Waits: true, Age: 3 * time.Minute})
			f.worker("B", func(w *lease.Worker) {
				w.Troubles = []lease.Trouble{{Key: key("2"), State: "in the handler", For: 150 * time.Second, Why: "a\nb"}, {Key: key("3"), State: "blocked"}}
			})
		}, "error stuck-shard s/2\nwarning worker-trouble s/3", []string{"has not moved for 6 s", "its owner is bob, and says: in the handler for 2 min 30 s: a b"}},
		"a complaint about another shard is none about this one": {func(f *Facts) {
			f.look("2", Look{Waits: true, Age: 3 * time.Minute})
			f.worker("B", func(w *lease.Worker) { w.Troubles = []lease.Trouble{{Key: key("3"), State: "blocked"}} })
		}, "warning no-checkpoint bob\nwarning worker-trouble s/3", nil},
		"a checkpoint far behind that moves": {func(f *Facts) {
			f.look("1", Look{Waits: true, Age: 3 * time.Minute})
			f.Second.Leases[1].Position = at(t, "101")
		}, "", nil},
		"old records that came to be handled meanwhile": {func(f *Facts) {
			f.Shards[key("1")] = Shard{Look{Waits: true, Age: time.Hour}, Look{}}
		}, "", nil},
		"a shard that changed hands has had no time yet": {func(f *Facts) {
			f.look("1", Look{Waits: true, Age: time.Hour})
			f.Second.Leases[1].Epoch, f.Second.Leases[1].Owner = 3, "B"
		}, "", nil},
		"no worker": {func(f *Facts) { f.Beats = nil; f.Second.Leader.Heartbeats = 10 },
			"error no-workers billing\ninfo dead-worker ann", []string{"the 3 shards"}},
		"no worker, and no lease either": {func(f *Facts) {
			f.Beats, f.Streams = nil, nil
			f.First, f.Second = lease.View{}, lease.View{Paused: []string{"s"}}
		}, "intended paused s", nil},
		"workers without leases": {func(f *Facts) { f.First.Leases, f.Second.Leases, f.Streams = nil, nil, nil }, "error no-leases billing", []string{"2 workers run"}},
		"a dead worker":          {func(f *Facts) { f.Beats["B"] = false }, "warning dead-worker bob", []string{"session B", "6 s"}},
		"a worker that is silent, and not dead by its own times": {func(f *Facts) {
			f.Beats["B"] = false
			f.times(lease.Times{Heartbeat: time.Second, Failover: 20 * time.Second, Handoff: 30 * time.Second})
		}, "warning silent-worker bob", []string{"session B", "for 6 s although its interval is 1 s", "dead after 20 s", "--watch 21s"}},
		"a worker whose heartbeats are further apart than the looks": {func(f *Facts) {
			f.Beats["B"] = false
			f.times(lease.Times{Heartbeat: 4 * time.Second, Failover: 20 * time.Second, Handoff: 30 * time.Second})
		}, "info unseen-worker bob", []string{"in 6 s: it sends a heartbeat every 4 s", "--watch 21s"}},
		"workers whose heartbeats are further apart than the looks": {func(f *Facts) {
			f.Beats = nil
			f.Second.Leader.Heartbeats = f.First.Leader.Heartbeats
			f.times(lease.Times{Heartbeat: time.Minute, Failover: time.Hour, Handoff: time.Hour})
		}, "info unseen-worker ann", []string{"--watch 1h0m1s"}},
		"a worker that is dead by times of its own": {func(f *Facts) {
			f.Beats["B"] = false
			f.times(lease.Times{Heartbeat: time.Second, Failover: 6 * time.Second, Handoff: 30 * time.Second})
		}, "warning dead-worker bob", []string{"for 6 s, and counts as dead after 6 s"}},
		"a worker that trusts its leases for longer than another waits": {func(f *Facts) {
			f.worker("B", func(w *lease.Worker) {
				w.Times = lease.Times{Heartbeat: time.Second, Failover: 7 * time.Second, Handoff: 30 * time.Second}
			})
		}, "warning times-differ billing", []string{"worker ann considers others dead after 5 s, and worker bob keeps its leases for up to 7 s", "the same HeartbeatInterval"}},
		"a worker that sends heartbeats too seldom for another": {func(f *Facts) {
			f.worker("B", func(w *lease.Worker) {
				w.Times = lease.Times{Heartbeat: 1700 * time.Millisecond, Failover: 7 * time.Second, Handoff: 30 * time.Second}
			})
		}, "warning times-differ billing", []string{"worker bob sends a heartbeat every 1.7 s, and worker ann considers others dead after 5 s"}},
		"workers whose times differ and do no harm": {func(f *Facts) {
			f.worker("B", func(w *lease.Worker) {
				w.Times = lease.Times{Heartbeat: 1500 * time.Millisecond, Failover: 5 * time.Second, Handoff: 30 * time.Second}
			})
		}, "info times-differ billing", []string{"ann 1 s / 5 s / 30 s, bob 1.5 s / 5 s / 30 s"}},
		"workers that read different streams": {func(f *Facts) {
			f.worker("A", func(w *lease.Worker) { w.Streams = "1:s" })
			f.worker("B", func(w *lease.Worker) { w.Streams = "1:logs s" })
		}, "warning streams-differ billing", []string{"ann reads s; bob reads logs, s", "the same streams"}},
		"a stream that only a worker of an older version may read": {func(f *Facts) {
			f.worker("A", func(w *lease.Worker) { w.Streams = "1:logs" })
			f.First.Leader.Session, f.Second.Leader.Session = "A", "A"
			for i := range f.Second.Leases {
				f.Second.Leases[i].Owner = ""
			}
		}, "warning streams-differ billing", []string{"workers of an older version get no more of its shards"}},
		"the times of a dead worker are of the past": {func(f *Facts) {
			f.Beats["B"] = false
			f.worker("B", func(w *lease.Worker) {
				w.Times = lease.Times{Heartbeat: time.Second, Failover: 6 * time.Second, Handoff: 30 * time.Second}
			})
		}, "warning dead-worker bob", nil},
		"a worker that was ended meanwhile": {func(f *Facts) { f.Beats["B"] = false; f.Second.Workers[1].Ended = true }, "", nil},
		"a session that ended and keeps its leases": {func(f *Facts) {
			f.Beats["B"] = false
			f.worker("B", func(w *lease.Worker) { w.Ended = true })
		}, "warning ended-session bob", []string{"2 leases are"}},
		"a session that ended in a pause": {func(f *Facts) {
			f.Beats["B"] = false
			f.worker("B", func(w *lease.Worker) { w.Ended = true })
			f.First.Paused, f.Second.Paused = []string{"s"}, []string{"s"}
		}, "intended paused s", nil},
		"a lease that was revoked from a session that ended, and is not given out": {func(f *Facts) {
			f.Beats["B"] = false
			f.worker("B", func(w *lease.Worker) { w.Ended = true })
			for _, id := range []string{"2", "3"} {
				f.lease(id, func(l *lease.Lease) { l.Owner, l.Revoked = "", "B" })
			}
		}, "error not-given-out billing", []string{"2 leases are without an owner, s/2"}},
		"a parent that was moved to its end, and whose worker has ended": {func(f *Facts) { f.lease("0", func(l *lease.Lease) { l.Revoked = "gone" }) }, "", nil},
		"a session that ended and is not cleared away yet": {func(f *Facts) {
			for _, v := range []*lease.View{&f.First, &f.Second} {
				v.Workers = append(v.Workers, lease.Worker{Session: "C", Name: "cid", Ended: true})
			}
		}, "", nil},
		"a worker that joined is none that is silent": {func(f *Facts) {
			f.Second.Workers = append(f.Second.Workers, lease.Worker{Session: "C", Name: "cid"})
		}, "", nil},
		"no worker leads": {func(f *Facts) { f.First.Leader, f.Second.Leader = lease.Leader{Epoch: 4}, lease.Leader{Epoch: 4} }, "error no-leader billing", []string{"2 workers send heartbeats"}},
		"a shard that was away and came back has had no time either": {func(f *Facts) {
			f.look("1", Look{Waits: true, Age: time.Hour})
			f.Second.Leases[1].Epoch = 4
		}, "", nil},
		"a leader goes":                                    {func(f *Facts) { f.Second.Leader = lease.Leader{Epoch: 4} }, "", nil},
		"a leader comes":                                   {func(f *Facts) { f.First.Leader = lease.Leader{} }, "", nil},
		"the leader is silent":                             {func(f *Facts) { f.Second.Leader.Heartbeats = 10 }, "warning leader-silent ann", []string{"ann"}},
		"leases are not assigned":                          {func(f *Facts) { f.lease("1", free) }, "error not-given-out billing", []string{"1 lease is without an owner, s/1"}},
		"a lease that just became free":                    {func(f *Facts) { free(&f.Second.Leases[1]) }, "", nil},
		"a lease that was given out and became free again": {func(f *Facts) { f.lease("1", free); f.Second.Leases[1].Epoch = 9 }, "", nil},
		"a lease that was revoked and waits":               {func(f *Facts) { f.lease("1", func(l *lease.Lease) { l.Owner, l.Revoked = "", "A" }) }, "", nil},
		"caps too small": {func(f *Facts) {
			f.lease("1", free)
			f.lease("2", free)
			f.worker("A", func(w *lease.Worker) { w.MaxLeases = 1 })
			f.worker("B", func(w *lease.Worker) { w.MaxLeases = 1 })
		}, "error max-leases billing", []string{"2 leases are without an owner", "room for 1", "MaxLeases"}},
		"caps with room": {func(f *Facts) {
			f.lease("1", free)
			f.worker("A", func(w *lease.Worker) { w.MaxLeases = 2 })
			f.worker("B", func(w *lease.Worker) { w.MaxLeases = 1 })
		}, "error not-given-out billing", nil},
		"a cap does not count beside a worker without one": {func(f *Facts) {
			f.lease("1", free)
			f.worker("B", func(w *lease.Worker) { w.MaxLeases = 1 })
		}, "error not-given-out billing", nil},
		"everybody is drained": {func(f *Facts) {
			f.lease("1", free)
			f.worker("A", func(w *lease.Worker) { w.Drain = true })
			f.worker("B", func(w *lease.Worker) { w.Leaving = true })
		}, "error no-taker billing\nintended draining ann", []string{"1 lease is"}},
		"the application is paused": {func(f *Facts) {
			f.Second.Paused = []string{""}
			for _, id := range []string{"1", "2", "3"} {
				f.lease(id, free)
			}
		}, "intended paused billing", []string{"no worker reads", "weir group resume"}},
		"a stream is paused": {func(f *Facts) { f.Second.Paused = []string{"s"} }, "intended paused s", []string{"weir group resume --stream s"}},
		"workers died at a checkpoint": {func(f *Facts) {
			f.lease("1", func(l *lease.Lease) { l.Deaths = lease.Deaths{At: l.Position, Count: 3}.String() })
			f.lease("2", func(l *lease.Lease) { l.Deaths = lease.Deaths{At: l.Position, Count: 1}.String() })
			f.lease("3", func(l *lease.Lease) { l.Deaths = lease.Deaths{At: shard.Latest, Count: 3}.String() })
		}, "warning deaths s/1", []string{"3 workers died one after the other while they had s/1, and none made progress", "out of memory"}},
		"a record kills": {func(f *Facts) {
			f.lease("1", func(l *lease.Lease) {
				l.Deaths = lease.Deaths{At: l.Position, Count: 3, Tried: 1, Alone: 1, Record: shard.Latest}.String()
			})
		}, "error killer s/1", []string{"3 workers died one after the other at s/1, 1 of them", "OnFailure", "weir group reset"}},
		"a worker complains": {func(f *Facts) {
			f.worker("B", func(w *lease.Worker) {
				w.Troubles = []lease.Trouble{{Key: key("2"), State: "waiting to handle again", For: 5 * time.Minute, Why: "the database\nis full"}}
			})
		}, "warning worker-trouble s/2", []string{"worker bob reports of s/2: waiting to handle again for 5 min: the database is full"}},
		"a handler fails": {func(f *Facts) {
			f.worker("B", func(w *lease.Worker) {
				w.Troubles = []lease.Trouble{{Key: key("2"), State: "in the handler", For: 5 * time.Minute, Why: "the database\nis full",
					Failing: lease.Failing{At: "4959", KeyHash: "ab12cd34", Records: 1, Attempts: 12, GivenUp: 3}}}
			})
		}, "warning handler-fails s/2", []string{"the handler of worker bob fails at the record 4959 of s/2 (hash of its key ab12cd34) for 5 min, 12 calls until now: the database is full; 3 records of the shard were dead-lettered recently", "Options.OnFailure"}},
		"a handler fails and its checkpoint stands still": {func(f *Facts) {
			f.look("2", Look{Waits: true, Age: 3 * time.Minute})
			f.worker("B", func(w *lease.Worker) {
				w.Troubles = []lease.Trouble{{Key: key("2"), For: 5 * time.Minute, Failing: lease.Failing{At: "4959", Records: 250, Attempts: 1}}}
			})
		}, "error handler-fails s/2", []string{"fails with 250 records of s/2, from 4959 on for 5 min, 1 call until now"}},
		"a handler fails at the end of a shard": {func(f *Facts) {
			f.worker("B", func(w *lease.Worker) {
				w.Troubles = []lease.Trouble{{Key: key("2"), For: 5 * time.Minute, Failing: lease.Failing{Attempts: 2}}}
			})
		}, "warning handler-fails s/2", []string{"fails with the next records of s/2 for"}},
		"the brake holds giving up": {func(f *Facts) {
			f.worker("B", func(w *lease.Worker) {
				w.Troubles = []lease.Trouble{{Key: key("2"), For: time.Minute, Why: "no", Failing: lease.Failing{At: "4959", Records: 1, Attempts: 12, Held: lease.HeldForOutage}}}
			})
		}, "warning give-up-held s/2", []string{"not dead-lettered yet, because the worker has handled no other record since", "OutageGrace"}},
		"the rate holds giving up of all shards": {func(f *Facts) {
			for i, s := range []string{"A", "A", "B"} {
				f.worker(s, func(w *lease.Worker) {
					w.Troubles = append(w.Troubles, lease.Trouble{Key: f.Second.Leases[i+1].Key, For: time.Minute, Why: "no", Failing: lease.Failing{At: "4959", Attempts: 12, Held: lease.HeldRate}})
				})
			}
		}, "error give-up-held s/1", []string{"3 shards: records fail, and are not dead-lettered yet, because there are too many per minute: no, first s/1", "PerMinute"}},
		"letters cannot be put": {func(f *Facts) {
			f.look("2", Look{Waits: true, Age: 3 * time.Minute})
			f.worker("B", func(w *lease.Worker) {
				w.Troubles = []lease.Trouble{{Key: key("2"), State: "letters cannot be put", For: time.Minute, Why: "no such bucket", Failing: lease.Failing{At: "4959", Attempts: 12, Letters: true}}}
			})
		}, "error letters-fail s/2", []string{"worker bob cannot dead-letter records of s/2 for 60 s, so the shard waits: no such bucket", "--dead"}},
		"records were dead-lettered": {func(f *Facts) {
			f.look("2", Look{Waits: true, Age: 59 * time.Second})
			f.worker("B", func(w *lease.Worker) {
				w.Troubles = []lease.Trouble{{Key: key("2"), State: lease.GaveUp, For: time.Hour, Why: "no", Failing: lease.Failing{At: "4959", GivenUp: 12}}}
			})
		}, "warning given-up s/2", []string{"worker bob has dead-lettered 12 records of s/2 within 60 min, the last of them 4959: no", "weir dead list"}},
		"records were dead-lettered, and the checkpoint stands still for another reason": {func(f *Facts) {
			f.look("2", Look{Waits: true, Age: 3 * time.Minute})
			f.worker("B", func(w *lease.Worker) {
				w.Troubles = []lease.Trouble{{Key: key("2"), State: lease.GaveUp, For: time.Hour, Failing: lease.Failing{GivenUp: 1}}}
			})
		}, "warning given-up s/2\nwarning no-checkpoint bob", nil},
		"an open window holds a checkpoint": {func(f *Facts) {
			f.look("2", Look{Waits: true, Age: 30 * time.Minute})
			f.worker("B", func(w *lease.Worker) {
				w.Troubles = []lease.Trouble{{Key: key("2"), State: lease.OnPurpose, For: 29 * time.Minute, Why: "by an open window"}}
			})
		}, "info held s/2", []string{"s/2 is held on purpose, as worker bob reports, for 29 min: by an open window; the oldest record behind it is 30 min old"}},
		"open windows hold many checkpoints": {func(f *Facts) {
			f.look("2", Look{Waits: true, Age: 30 * time.Minute})
			f.look("3", Look{Waits: true, Age: 30 * time.Minute})
			f.worker("B", func(w *lease.Worker) {
				w.Troubles = []lease.Trouble{{State: lease.OnPurpose, For: 29 * time.Minute, Why: "by an open window"}}
			})
		}, "info held s/2", []string{"2 shards: their checkpoints are held on purpose, as workers report: by an open window, first s/2"}},
		"a checkpoint moves that an open window held": {func(f *Facts) {
			f.worker("B", func(w *lease.Worker) {
				w.Troubles = []lease.Trouble{{Key: key("2"), State: lease.OnPurpose, For: time.Minute, Why: "by an open window"}}
			})
		}, "", nil},
		"a checkpoint stands still that nothing holds": {func(f *Facts) {
			f.look("2", Look{Waits: true, Age: 30 * time.Minute})
			f.worker("B", func(w *lease.Worker) {
				w.Troubles = []lease.Trouble{{Key: key("3"), State: lease.OnPurpose, For: time.Minute, Why: "by an open window"}}
			})
		}, "warning no-checkpoint bob", nil},
		"a worker is cut off": {func(f *Facts) {
			f.worker("B", func(w *lease.Worker) {
				w.Troubles = []lease.Trouble{{State: lease.CutOff, For: 5 * time.Minute, Why: "no route\nto host"}}
			})
		}, "warning worker-trouble bob", []string{"worker bob reports that it is cut off for 5 min: no route to host", "other workers get its shards"}},
		"a dead worker's complaints are of the past": {func(f *Facts) {
			f.Beats["B"] = false
			f.worker("B", func(w *lease.Worker) { w.Troubles = []lease.Trouble{{Key: key("2")}} })
		}, "warning dead-worker bob", nil},
		"a permission is missing": {func(f *Facts) { f.Denied = []Denied{{"kinesis:GetRecords", "stream s"}} },
			"error permission stream s", []string{"no permission for kinesis:GetRecords on stream s", "allow kinesis:GetRecords"}},
		"a stream that may not be listed": {func(f *Facts) {
			f.Denied = []Denied{{"kinesis:ListShards", "stream s"}}
			f.Streams[0] = Stream{Name: "s", Err: "no permission"}
		}, "error permission stream s", nil},
		"a key that may not be used": {func(f *Facts) {
			for _, id := range []string{"1", "2"} {
				f.look(id, Look{Err: "no access to the key", Code: "KMSAccessDeniedException"})
			}
		}, "error kms s", []string{"2 shards of stream s, 1 among them, cannot be decrypted: no access to the key", "kms:Decrypt"}},
		"a checkpoint that the service refuses": {func(f *Facts) { f.look("2", Look{Err: "invalid number", Code: "InvalidArgumentException"}) },
			"error expired-checkpoint s/2", []string{"200 of s/2", "weir group reset"}},
		"a checkpoint whose records have expired": {func(f *Facts) { f.look("2", Look{Waits: true, Age: time.Second, Expired: true}) },
			"warning expired-checkpoint s/2", []string{"may have"}},
		"a record after a long pause": {func(f *Facts) { f.Shards[key("2")] = Shard{Look{Waits: true, Expired: true}, Look{Expired: true}} }, "", nil},
		"a start that is older than the stream": {func(f *Facts) { f.lease("2", func(l *lease.Lease) { l.Position = at(t, "2026-01-30T11:59:59Z") }) },
			"warning expired-checkpoint s/2", []string{"24 h"}},
		"a start within the stream": {func(f *Facts) { f.lease("2", func(l *lease.Lease) { l.Position = at(t, "2026-01-30T12:00:00Z") }) }, "", nil},
		"shards that cannot be read": {func(f *Facts) {
			f.look("1", Look{Err: "no answer"})
			f.look("2", Look{Err: "no answer"})
			f.look("3", Look{Err: "too much", Code: "ProvisionedThroughputExceededException"})
		}, "warning unreadable s\nwarning unreadable s", []string{"2 shards of stream s, 1 among them, could not be read: no answer"}},
		"a stream that nothing is known of": {func(f *Facts) {
			f.Streams[0] = Stream{Name: "s", Err: "no answer"}
			f.look("1", Look{Err: "no answer"})
		}, "warning stream-unknown s", []string{"no answer"}},
		"a stream that does not exist": {func(f *Facts) {
			f.Streams[0] = Stream{Name: "s", Err: "no such stream", Missing: true}
			f.look("1", Look{Err: "no such stream", Code: "ResourceNotFoundException"})
		}, "error no-stream s", []string{"does not exist"}},
		"a stream that is being deleted":   {func(f *Facts) { f.Streams[0].Status = "DELETING" }, "warning stream-status s", []string{"DELETING"}},
		"a stream that is being resharded": {func(f *Facts) { f.Streams[0].Status = "UPDATING" }, "", nil},
		"a stream that nobody reads":       {func(f *Facts) { f.Streams = append(f.Streams, Stream{Name: "r", Wanted: true}) }, "warning stream-unread r", []string{"no worker of billing reads it"}},
		"a hole between the shards": {func(f *Facts) { f.Streams[0].Shards[1].Range.End.Lo-- }, "warning hash-hole s",
			[]string{"85070591730234615865843651857942052863-85070591730234615865843651857942052863"}},
		"shards that overlap": {func(f *Facts) { f.Streams[0].Shards[1].Range.End = shard.HashKey{Hi: 1 << 62} }, "warning hash-overlap s", []string{"1 and 2"}},
		"a shard inside another": {func(f *Facts) {
			f.Streams[0].Shards[1].Range = shard.HashRange{End: shard.MaxHashKey}
			f.Streams[0].Shards[2].Range = shard.HashRange{Start: shard.HashKey{Lo: 1}, End: shard.HashKey{Lo: 2}}
		}, "warning hash-overlap s", nil},
		"a stream that was made anew": {func(f *Facts) { f.Streams[0].Born = 1767323045000 }, "error stream-recreated s",
			[]string{"2026-01-02T03:04:05Z", "3 leases belong", "weir group reset --stream s --to oldest"}},
		"when a stream was made is not known": {func(f *Facts) { f.Streams[0].Born = 0 }, "", nil},
		"a shard that left unread":            {func(f *Facts) { f.Streams[0].Shards[3].ID = "4" }, "error shard-left s/3\nwarning shard-without-lease s", []string{"at 300", "expired"}},
		"a shard that left and was read":      {func(f *Facts) { f.Streams[0].Shards = f.Streams[0].Shards[1:] }, "", nil},
		"a shard without a lease":             {func(f *Facts) { f.First.Leases, f.Second.Leases = f.First.Leases[:3], f.Second.Leases[:3] }, "warning shard-without-lease s", []string{"1 shard of stream s has no lease, 3"}},
		"a shard that gets its lease":         {func(f *Facts) { f.First.Leases = f.First.Leases[:3] }, "", nil},
		"a parent that is being read": {func(f *Facts) {
			f.lease("0", func(l *lease.Lease) { l.Position, l.Owner = at(t, "50"), "A" })
			f.Shards[key("0")] = Shard{Look{Waits: true, Age: time.Hour}, Look{Waits: true, Age: 50 * time.Minute}}
			f.Second.Leases[0].Position = at(t, "51")
			f.lease("1", free)
			f.lease("2", free)
		}, "info waiting s/0", []string{"2 shards wait for the end of s/0, which is 50 min behind"}},
		"a parent that nobody holds": {func(f *Facts) {
			f.lease("0", func(l *lease.Lease) { l.Position = at(t, "50") })
			f.lease("1", free)
			f.lease("2", free)
		}, "error not-given-out billing\ninfo waiting s/0", nil},
		"a parent without a lease": {func(f *Facts) {
			for _, v := range []*lease.View{&f.First, &f.Second} {
				v.Leases = v.Leases[1:]
			}
			f.lease("1", func(l *lease.Lease) { l.Owner, l.Last = "", "" })
		}, "warning parent-unknown s/0\nwarning shard-without-lease s", []string{"1 shard waits for s/0"}},
		"a parent that has left": {func(f *Facts) {
			for _, v := range []*lease.View{&f.First, &f.Second} {
				v.Leases = v.Leases[1:]
			}
			f.Streams[0].Shards = f.Streams[0].Shards[1:]
			f.lease("1", func(l *lease.Lease) { l.Owner, l.Last = "", "" })
		}, "error not-given-out billing", nil},
		"a registered consumer that may be in use": {func(f *Facts) { f.Streams[0].Consumers = []string{"billing"} }, "", nil},
		"a registered consumer that nobody uses": {func(f *Facts) {
			f.Streams[0].Consumers = []string{"other", "billing"}
			f.Beats = nil
			f.First.Workers, f.Second.Workers = nil, nil
		}, "error no-workers billing\ninfo idle-consumer s", nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := healthy(t)
			c.change(f)
			var got []string
			findings := Diagnose(*f)
			for _, found := range findings {
				got = append(got, fmt.Sprintf("%s %s %s", found.Severity, found.Code, found.About))
				if found.Text == "" || found.Do == "" || strings.Contains(found.Text+found.Do, "%!") {
					t.Errorf("%+v does not say what, and what to do", found)
				}
			}
			if strings.Join(got, "\n") != c.want {
				t.Fatalf("got\n%s\nwant\n%s\n%+v", strings.Join(got, "\n"), c.want, findings)
			}
			for _, part := range c.says {
				if !strings.Contains(findings[0].Text+" "+findings[0].Do, part) {
					t.Errorf("%q, %q: want %q in it", findings[0].Text, findings[0].Do, part)
				}
			}
		})
	}
}

func TestStanding(t *testing.T) {
	for _, c := range []struct {
		apart, age time.Duration
		complains  bool
		want       Severity
	}{
		{2 * time.Second, 0, false, ""},
		{2 * time.Second, waitsLong - 1, true, ""},
		{stallAfter, waitsLong - 1, false, ""},
		{2 * time.Second, waitsLong, false, Warning},
		{2 * time.Second, 48 * time.Minute, false, Warning},
		{stallAfter - 1, 48 * time.Minute, false, Warning},
		{stallAfter, waitsLong, false, Error},
		{2 * time.Second, waitsLong, true, Error},
	} {
		if got := standing(c.apart, c.age, c.complains); got != c.want {
			t.Errorf("apart %v, age %v, complains %v: %q, want %q", c.apart, c.age, c.complains, got, c.want)
		}
	}
}

// The findings do not depend on the order of the facts.
func TestDiagnoseIsDeterministic(t *testing.T) {
	f := healthy(t)
	f.Second.Paused = []string{"q", "r"}
	f.look("1", Look{Err: "a"})
	f.look("2", Look{Err: "b"})
	f.look("3", Look{Err: "KMS", Code: "KMSDisabledException"})
	want := Diagnose(*f)
	for range 20 {
		slices.Reverse(f.Second.Leases)
		slices.Reverse(f.Second.Workers)
		if got := Diagnose(*f); !reflect.DeepEqual(got, want) {
			t.Fatalf("got\n%+v\nwant\n%+v", got, want)
		}
	}
	if len(want) != 4 {
		t.Errorf("%d findings, want 4: %+v", len(want), want)
	}
}
