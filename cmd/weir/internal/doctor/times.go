package doctor

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/lease"
)

// silent describes a worker whose beat was not seen and that is not dead by its own times.
func (p *patient) silent(w lease.Worker, name string) {
	times := timesOf(w)
	longer := "look for longer: --watch " + (max(times.Failover, 2*times.Beat) + time.Second).String()
	if p.unseen(w) {
		p.alike(Info, "unseen-worker", "worker", name, longer, "whether they live is not to be seen in so short a time", "whether worker %s (session %s) lives is not to be seen in %v: it beats every %v", name, w.Session, figures.Duration(p.Apart), figures.Duration(times.Beat))
		return
	}
	p.alike(Warning, "silent-worker", "worker", name, longer+"; if it stays, look at the worker's log: it cannot reach the store, or it was killed", "not seen to beat, and not for long enough to count as dead",
		"worker %s (session %s) has not beaten for %v though it beats every %v; it counts as dead after %v", name, w.Session, figures.Duration(p.Apart), figures.Duration(times.Beat), figures.Duration(times.Failover))
}

// times looks for workers that judge each other by different times. Any worker may lead, so the
// shortest failover time of all is compared with how long the others trust their leases and how
// often they beat.
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
	slow := slices.MaxFunc(live, by(func(t lease.Times) time.Duration { return t.Beat }))
	shortest, longest, beat := timesOf(hasty).Failover, timesOf(trusting).Failover, timesOf(slow).Beat
	const same = "give all workers of the application the same BeatInterval, FailoverAfter and HandoffTimeout; while that is being changed, this passes"
	switch {
	case shortest < 3*beat:
		p.found(Warning, "times-differ", p.App, same, "worker %s beats every %v, and worker %s takes others for dead after %v: while %s leads, a beat or two that come late cost %s its shards",
			p.names[slow.Session], figures.Duration(beat), p.names[hasty.Session], figures.Duration(shortest), p.names[hasty.Session], p.names[slow.Session])
	case shortest < longest:
		p.found(Warning, "times-differ", p.App, same, "worker %s takes others for dead after %v, and worker %s trusts its leases for up to %v of silence: two may handle the records of one shard for a while",
			p.names[hasty.Session], figures.Duration(shortest), p.names[trusting.Session], figures.Duration(longest))
	case slices.ContainsFunc(live, func(w lease.Worker) bool { return timesOf(w) != timesOf(live[0]) }):
		other := live[slices.IndexFunc(live, func(w lease.Worker) bool { return timesOf(w) != timesOf(live[0]) })]
		p.found(Info, "times-differ", p.App, same, "workers have different times (beats, failover, hand-off): %s %v, %s %v",
			p.names[live[0].Session], timesText(timesOf(live[0])), p.names[other.Session], timesText(timesOf(other)))
	}
}

// workerOf returns the row of a session, or an ended one without a row.
func (p *patient) workerOf(session string) lease.Worker {
	for _, w := range p.Second.Workers {
		if w.Session == session {
			return w
		}
	}
	return lease.Worker{Session: session, Ended: true}
}

func timesText(t lease.Times) string {
	return figures.Duration(t.Beat) + " / " + figures.Duration(t.Failover) + " / " + figures.Duration(t.Handoff)
}

// live returns the second view with the workers that beat, or that there was too little time to
// see.
func (p *patient) live() lease.View {
	live := lease.View{Leases: p.Second.Leases, Leader: p.Second.Leader, Paused: p.Second.Paused}
	for _, w := range p.Second.Workers {
		if p.beats(w) || p.unseen(w) {
			live.Workers = append(live.Workers, w)
		}
	}
	return live
}

// streams looks for workers that read different streams, and for streams that no worker reads.
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
		p.found(Error, "streams-differ", name, "start workers that read it; if nobody is to read it any more, \"weir group pause --stream "+name+"\" says so",
			"no live worker reads the stream %s, of which the application has %s", name, count(n, "lease"))
	}
	live.Leases = slices.DeleteFunc(slices.Clone(live.Leases), func(l lease.Lease) bool { return slices.Contains(unread, l.Stream) })
	for _, sentence := range lease.DescribeStreams(live) {
		p.found(Warning, "streams-differ", p.App, "give programs that read different streams different applications, and all workers of one application the same streams; while that is being changed, this passes",
			"%s", sentence)
	}
}
