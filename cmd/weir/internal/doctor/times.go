package doctor

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/lease"
)

// silent adds a finding about a worker whose heartbeat was not seen, but which is not yet dead
// according to its own times.
func (p *patient) silent(w lease.Worker, name string) {
	times := timesOf(w)
	longer := "watch longer: --watch " + (max(times.Failover, 2*times.Heartbeat) + time.Second).String()
	if p.unseen(w) {
		p.alike(Info, "unseen-worker", "worker", name, longer, "whether they are alive cannot be seen in so short a time", "whether worker %s (session %s) is alive cannot be seen in %v: it sends a heartbeat every %v", name, w.Session, figures.Duration(p.Apart), figures.Duration(times.Heartbeat))
		return
	}
	p.alike(Warning, "silent-worker", "worker", name, longer+"; if this does not change, look at the worker's log: it cannot reach the store, or it was killed", "without a heartbeat, but not yet for so long that they count as dead",
		"worker %s (session %s) has sent no heartbeat for %v although its interval is %v; it counts as dead after %v", name, w.Session, figures.Duration(p.Apart), figures.Duration(times.Heartbeat), figures.Duration(times.Failover))
}

// times finds workers whose times do not fit together. Any worker may become the leader, so the
// shortest failover time applies to all workers. times compares this time with the lease validity
// of the other workers, and with their heartbeat intervals.
func (p *patient) times() {
	var live []lease.Worker
	for _, w := range p.Second.Workers {
		if p.beats(w) || p.unseen(w) {
			live = append(live, w)
		}
	}
	if len(live) < 2 {
		return
	}
	slices.SortFunc(live, func(a, b lease.Worker) int {
		return cmp.Compare(p.names[a.Session]+a.Session, p.names[b.Session]+b.Session)
	})
	by := func(of func(lease.Times) time.Duration) func(a, b lease.Worker) int {
		return func(a, b lease.Worker) int { return cmp.Compare(of(timesOf(a)), of(timesOf(b))) }
	}
	failover := by(func(t lease.Times) time.Duration { return t.Failover })
	hasty, trusting := slices.MinFunc(live, failover), slices.MaxFunc(live, failover)
	slow := slices.MaxFunc(live, by(func(t lease.Times) time.Duration { return t.Heartbeat }))
	shortest, longest, beat := timesOf(hasty).Failover, timesOf(trusting).Failover, timesOf(slow).Heartbeat
	const same = "give all workers of the application the same HeartbeatInterval, FailoverAfter and HandoffTimeout; ignore this during a rolling change of them"
	switch {
	case shortest < 3*beat:
		p.found(Warning, "times-differ", p.App, same, "worker %s sends a heartbeat every %v, and worker %s considers others dead after %v: while %s leads, one or two late heartbeats cost %s its shards",
			p.names[slow.Session], figures.Duration(beat), p.names[hasty.Session], figures.Duration(shortest), p.names[hasty.Session], p.names[slow.Session])
	case shortest < longest:
		p.found(Warning, "times-differ", p.App, same, "worker %s considers others dead after %v, and worker %s keeps its leases for up to %v without an answer: both may handle the records of a shard for a while",
			p.names[hasty.Session], figures.Duration(shortest), p.names[trusting.Session], figures.Duration(longest))
	case slices.ContainsFunc(live, func(w lease.Worker) bool { return timesOf(w) != timesOf(live[0]) }):
		other := live[slices.IndexFunc(live, func(w lease.Worker) bool { return timesOf(w) != timesOf(live[0]) })]
		p.found(Info, "times-differ", p.App, same, "workers have different times (heartbeat, failover, handoff): %s %v, %s %v",
			p.names[live[0].Session], timesText(timesOf(live[0])), p.names[other.Session], timesText(timesOf(other)))
	}
}

// workerOf returns the row of a session. If there is none, it returns a row that has ended.
func (p *patient) workerOf(session string) lease.Worker {
	for _, w := range p.Second.Workers {
		if w.Session == session {
			return w
		}
	}
	return lease.Worker{Session: session, Ended: true}
}

func timesText(t lease.Times) string {
	return figures.Duration(t.Heartbeat) + " / " + figures.Duration(t.Failover) + " / " + figures.Duration(t.Handoff)
}

// live returns the second view without dead workers. Workers whose heartbeat could not be seen yet
// are kept.
func (p *patient) live() lease.View {
	live := lease.View{Leases: p.Second.Leases, Leader: p.Second.Leader, Paused: p.Second.Paused}
	for _, w := range p.Second.Workers {
		if p.beats(w) || p.unseen(w) {
			live.Workers = append(live.Workers, w)
		}
	}
	return live
}

// streams finds workers that read different streams, and streams that no worker reads.
func (p *patient) streams() {
	live := p.live()
	unread := lease.Unread(live)
	for _, name := range unread {
		n := 0
		for _, l := range live.Leases {
			if l.Stream == name && !l.Finished() {
				n++
			}
		}
		p.found(Error, "streams-differ", name, "start workers that read it; if it should no longer be read, use \"weir group pause --stream "+name+"\"",
			"no live worker reads the stream %s, although the application has %s", name, count(n, "lease"))
	}
	live.Leases = slices.DeleteFunc(slices.Clone(live.Leases), func(l lease.Lease) bool { return slices.Contains(unread, l.Stream) })
	for _, sentence := range lease.DescribeStreams(live) {
		p.found(Warning, "streams-differ", p.App, "use a separate application for programs with other streams, and the same streams for all workers of an application; ignore this during a rolling change of the streams",
			"%s", sentence)
	}
}
