package main

import (
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
)

// situations returns the applications about which all tools must make the same statements.
func situations() []situation {
	dead := []string{"a</th><td>alive", "a leads", "leads</span>", "KiB/s"}
	return append(quietSituations(dead), []situation{
		{"a session ended, and its lease names it", 1, 0, 1, "", "unread", "its worker sends no heartbeats", health.CauseWorkerSilent, []string{"it hangs"}, func(s *stage) {
			s.worker("a", false, s.complains)
			s.worker("b", true)
			s.shard(0, "a")
			s.end("a")
		}},
		{"the row of an owner is gone", 1, 0, 1, "", "unread", "its worker sends no heartbeats", health.CauseWorkerSilent, nil, func(s *stage) {
			s.worker("b", true)
			s.shard(0, "forgotten")
		}},
		{"a worker says that its handler hangs", 1, 1, 1, "", "stalled", "in the handler; last error: it hangs", health.CauseHandlerHangs, nil, func(s *stage) {
			s.worker("a", true, s.complains)
			s.shard(0, "a")
		}},
		{"a worker that hung is dead", 1, 0, 0, "", "unread", "no worker lives", health.CauseNoWorker, append(dead, "it hangs"), func(s *stage) {
			s.worker("a", false, s.complains)
			s.shard(0, "a")
		}},
		{"a worker is cut off", 1, 1, 1, "", "stalled", "cut off", health.CauseCutOff, nil, func(s *stage) {
			s.worker("a", true, func(r *lease.Report) {
				r.Troubles = []lease.Trouble{{State: lease.CutOff, For: time.Hour, Why: "no route"}}
			})
			s.shard(0, "a")
		}},
		{"a dead worker was cut off", 1, 0, 1, "", "unread", "its worker sends no heartbeats", health.CauseWorkerSilent, []string{"no route"}, func(s *stage) {
			s.worker("a", false, func(r *lease.Report) {
				r.Troubles = []lease.Trouble{{State: lease.CutOff, For: time.Hour, Why: "no route"}}
			})
			s.worker("b", true)
			s.shard(0, "a")
		}},
		{"the application is paused", 2, 0, 1, "", "idle", "paused", health.CausePaused, nil, func(s *stage) {
			s.worker("a", true)
			s.shard(0, "")
			s.shard(1, "")
			s.apply(lease.Action{Kind: lease.Pause, On: true})
		}},
		{"a stream is paused, and its worker is dead", 1, 0, 0, "", "idle", "paused", health.CausePaused, dead, func(s *stage) {
			s.worker("a", false)
			s.shard(0, "a")
			s.apply(lease.Action{Kind: lease.Pause, Stream: s.app, On: true})
		}},
		{"it is being paused", 1, 1, 1, "", "ok", "up to date", health.NoCause, nil, func(s *stage) {
			s.worker("a", true)
			s.shard(0, "a")
			s.apply(lease.Action{Kind: lease.Pause, On: true}, lease.Action{Kind: lease.Handoff, Key: s.key(0), Epoch: 2, Session: lease.Nobody})
		}},
		{"a shard moves", 1, 1, 2, "", "ok", "up to date", health.NoCause, nil, func(s *stage) {
			s.worker("a", true)
			s.worker("b", true)
			s.shard(0, "a")
			s.apply(lease.Action{Kind: lease.Handoff, Key: s.key(0), Epoch: 2, Session: "s-b"})
		}},
		{"a shard should move from a dead worker", 1, 0, 1, "", "unread", "its worker sends no heartbeats", health.CauseWorkerSilent, nil, func(s *stage) {
			s.worker("a", false)
			s.worker("b", true)
			s.shard(0, "a")
			s.apply(lease.Action{Kind: lease.Handoff, Key: s.key(0), Epoch: 2, Session: "s-b"})
		}},
		{"a shard was taken from its owner", 1, 0, 1, "", "unread", "not assigned yet", health.CauseUnassigned, nil, func(s *stage) {
			s.worker("a", true)
			s.shard(0, "a")
			s.apply(lease.Action{Kind: lease.Revoke, Key: s.key(0), Epoch: 2})
		}},
	}...)
}

// quietSituations returns the situations without a pause in which no worker reports a problem.
func quietSituations(dead []string) []situation {
	return []situation{
		{"all is well", 2, 2, 1, "a", "ok", "all 2 shards are up to date", health.NoCause, nil, func(s *stage) {
			s.worker("a", true)
			s.leads("a")
			s.shard(0, "a")
			s.shard(1, "a")
		}},
		{"there are finished shards", 2, 2, 1, "a", "ok", "all 2 shards are up to date", health.NoCause, nil, func(s *stage) {
			s.worker("a", true)
			s.leads("a")
			s.shard(0, "", finished)
			s.shard(1, "a")
			s.shard(2, "a")
			s.shard(3, "", finished)
		}},
		{"all shards are finished", 0, 0, 1, "", "ok", "all shards were read to their end", health.NoCause, nil, func(s *stage) {
			s.worker("a", true)
			s.shard(0, "", finished)
		}},
		{"no worker was ever there", 1, 0, 0, "", "unread", "no worker lives", health.CauseNoWorker, nil, func(s *stage) { s.shard(0, "") }},
		{"the leader died", 2, 0, 0, "", "unread", "no worker lives", health.CauseNoWorker, dead, func(s *stage) {
			s.worker("a", false)
			s.leads("a")
			s.shard(0, "a")
			s.shard(1, "a")
			s.beat(lease.Report{Session: "s-a", Name: "a", Progress: []lease.Progress{{Key: s.key(0), Epoch: 2, Load: lease.LoadOf(40_000)}}})
		}},
		{"a worker died while it stopped", 1, 0, 0, "", "unread", "no worker lives", health.CauseNoWorker, append(dead, "leaving"), func(s *stage) {
			s.worker("a", false, func(r *lease.Report) { r.Leaving = true })
			s.leads("a")
			s.shard(0, "a")
		}},
		{"the leader died, and another worker lives", 2, 1, 1, "", "unread", "its worker sends no heartbeats", health.CauseWorkerSilent, []string{"leads</span>", "a leads"}, func(s *stage) {
			s.worker("a", false)
			s.worker("b", true)
			s.leads("a")
			s.shard(0, "a")
			s.shard(1, "b")
		}},
		{"a worker stops", 1, 1, 1, "", "ok", "up to date", health.NoCause, nil, func(s *stage) {
			s.worker("a", true, func(r *lease.Report) { r.Leaving = true })
			s.shard(0, "a")
		}},
		{"all workers are full", 2, 1, 1, "", "unread", "no worker has room", health.CauseNoRoom, nil, func(s *stage) {
			s.worker("a", true, func(r *lease.Report) { r.MaxLeases = 1 })
			s.shard(0, "a")
			s.shard(1, "")
		}},
		{"the only worker reads another stream", 1, 0, 1, "", "unread", "no live worker reads its stream", health.CauseNoReader, nil, func(s *stage) {
			s.worker("a", true, func(r *lease.Report) { r.Streams = "1:other" })
			s.shard(0, "")
		}},
		{"a child waits for its parent", 2, 1, 1, "", "idle", "waits for its parents", health.CauseParents, nil, func(s *stage) {
			s.worker("a", true)
			s.shard(0, "a")
			s.shard(1, "", func(l *lease.Lease) { l.Parents = []string{s.key(0).Shard} })
		}},
	}
}
