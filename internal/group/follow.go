package group

import (
	"context"
	"time"

	"github.com/weir-go/weir/lease"
)

// candidate is what a worker that neither leads nor campaigns knows when it has been told who
// leads.
type candidate struct {
	session  string
	leader   lease.Leader
	dead     bool // the leader's beat has stood still for the failover time
	trusted  bool // the worker trusts its own session
	stopping bool
	shy      bool          // it stepped down lately
	vacant   time.Duration // since when nobody leads who lives
}

// part is what a worker does about the leader's role.
type part uint8

const (
	follows   part = iota
	goesOn         // it leads by what the store says
	campaigns      // nobody leads
	resigns        // it leads by what the store says, and is not to
)

// leaveToOthers is after how many beats a worker that stepped down campaigns again, if nobody else
// has: others see with their next beat that nobody leads.
const leaveToOthers = 3

// decide says which part the worker takes.
func (c candidate) decide(beat time.Duration) part {
	switch {
	case c.leader.Session == c.session && (c.stopping || c.shy):
		return resigns
	case c.stopping || !c.trusted:
		return follows
	case c.leader.Session == c.session:
		return goesOn
	case c.leader.Session != "" && !c.dead:
		return follows
	case c.shy && c.vacant < leaveToOthers*beat:
		return follows
	default:
		return campaigns
	}
}

// followLeader takes in who leads by the orders of a beat, and starts or ends this worker's own
// leadership by it. said is what the beat reported. It returns how long the beat loop may wait at
// most.
func (w *worker) followLeader(o lease.Orders, said lease.Report, began time.Time) time.Duration {
	l, now, beat := o.Leader, time.Now(), w.cfg.Times.Beat
	dead, wait := w.follow.See(o, w.cfg.Times, began, now)
	if dead && w.vacant.IsZero() || l.Term != w.term {
		// A leader that is new, or about to be, gives out what the dead had, and everybody learns
		// of its part by a beat of its own.
		w.awaits = now.Add(2 * beat)
	}
	w.term = l.Term
	if l.Session != "" && !dead {
		w.vacant = time.Time{}
	} else if w.vacant.IsZero() {
		w.vacant = now
	}
	if w.lead != nil && w.lead.ended() {
		w.endLeadership()
		if w.stopping.IsZero() {
			return beat
		}
	}
	if w.lead != nil {
		switch {
		case w.lead.deposed(l, w.session):
			w.endLeadership()
		case w.lead.stuck():
			// Its session lives, so nobody else would ever take over: step down for them.
			w.cfg.Log.Warn("this worker led but could not do a leader's work for too long; leaving it to another")
			w.endLeadership()
			w.notLeading = now.Add(2 * w.cfg.Times.Failover)
			if l.Session == w.session {
				return w.resign(l.Term, said)
			}
		}
		return beat
	}
	c := candidate{
		session: w.session, leader: l, dead: dead, trusted: w.trust.context(nil).Err() == nil,
		stopping: !w.stopping.IsZero(), shy: now.Before(w.notLeading),
	}
	if !w.vacant.IsZero() {
		c.vacant = now.Sub(w.vacant)
	}
	next := c.decide(beat)
	if next != resigns {
		w.resigns, w.unheard = 0, 0
	}
	switch next {
	case goesOn:
		w.startLeadership(l.Term, true, lease.Leader{})
	case campaigns:
		w.startLeadership(l.Term, false, l)
	case resigns:
		return w.resign(l.Term, said)
	case follows:
		if !dead { // and else is nobody's to mend who only follows
			return wait
		}
	}
	return beat
}

// hearResignation is for how many answers a worker that resigns with its beats goes on, when they
// say that it leads still.
const hearResignation = 3

// resign gives the leader's role of a term up, with the next beat. That needs nothing but beats,
// which is what a leader can still do whose other calls fail. Where it does not help, the session
// ends in order, and its role with it.
func (w *worker) resign(term uint64, said lease.Report) time.Duration {
	beat := w.cfg.Times.Beat
	if w.cfg.Store.Abilities().Has(lease.ResignByBeat) {
		if said.Resigns != term {
			w.resigns, w.unheard = term, 0
			return 0
		}
		if w.unheard++; w.unheard < hearResignation {
			return beat
		}
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), beat)
		defer cancel()
		_, err := w.cfg.Store.Lead(ctx, w.cfg.App, "", term)
		if err == nil {
			return beat
		}
		w.cfg.Host.CallFailed("lead", err, time.Now())
	}
	if w.stopping.IsZero() {
		w.cfg.Log.Warn("the store does not take the leader's role from this worker; it ends its session, when its handlers have drained, and begins another")
		w.stopSession(true)
	}
	return beat
}

// startLeadership begins to lead, or to campaign. suspect is the leader that it takes over from,
// which does not beat any more.
func (w *worker) startLeadership(term uint64, won bool, suspect lease.Leader) {
	ctx, cancel := context.WithCancel(w.trust.context(nil))
	w.lead = &leadership{
		cfg: w.cfg, session: w.session, term: term, won: won, wakeUp: w.poke,
		cancel: cancel, looked: make(chan struct{}, 1), done: make(chan struct{}), lastOK: time.Now(),
		watch: w.follow.Watch(w.cfg.Times, suspect), streams: newListings(w.cfg.streams()), results: w.listed,
	}
	l := w.lead
	w.running.Go(func() { l.run(ctx) })
}

// endLeadership tells the leadership to end. It does not wait, so that a slow call never holds up
// the beat: what is under way is safe to finish, and Run waits for it at the end.
func (w *worker) endLeadership() {
	if w.lead == nil {
		return
	}
	w.lead.cancel()
	w.listed.set(nil)
	if err := w.lead.failed(); err != nil && w.fatal == nil {
		w.fatal = err
	}
	w.lead = nil
}
