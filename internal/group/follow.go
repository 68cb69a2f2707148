package group

import (
	"context"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/lease"
)

// candidate is the input of a worker's decision about leadership. The worker makes a candidate when
// a heartbeat has returned the current leader, and this process runs no leadership and no campaign
// (worker.lead is nil). The store may still name this worker as the leader.
type candidate struct {
	session     string
	leader      lease.Leader
	dead        bool // the leader's heartbeat has not changed for the failover time
	leasesValid bool // the leases of the worker are valid
	stopping    bool
	shy         bool          // this worker resigned recently
	vacant      time.Duration // time since there was a live leader
}

// part is the role that candidate.decide returns.
type part uint8

const (
	follows   part = iota
	goesOn         // leads according to the store, and continues
	campaigns      // there is no live leader
	resigns        // leads according to the store, but must not
)

// leaveToOthers is the number of heartbeats after which a worker that resigned campaigns again. The
// other workers notice with their next heartbeat that there is no leader, so they campaign first.
const leaveToOthers = 3

// decide returns the worker's role.
func (c candidate) decide(beat time.Duration) part {
	switch {
	case c.leader.Session == c.session && (c.stopping || c.shy):
		return resigns
	case c.stopping || !c.leasesValid:
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

// followLeader evaluates the leader in the answer to a heartbeat, and starts or ends this worker's
// own leadership. said is the report that the heartbeat sent. followLeader returns the maximum wait
// until the next heartbeat.
func (w *worker) followLeader(o lease.Orders, said lease.Report, began time.Time) time.Duration {
	l, now, beat := o.Leader, time.Now(), w.cfg.Times.Heartbeat
	dead, wait := w.follow.See(o, w.cfg.Times, began, now)
	if dead && w.vacant.IsZero() || l.Epoch != w.term {
		// A new leader assigns the leases of dead workers. Each worker receives its share with its
		// next heartbeat.
		w.awaits = now.Add(2 * beat)
	}
	w.term = l.Epoch
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
			// This worker's session is alive, so no other worker would ever take over. This worker
			// must resign.
			w.cfg.Log.Warn("this worker is the leader, but could not do the leader's work for too long; it resigns")
			w.endLeadership()
			w.notLeading = now.Add(2 * w.cfg.Times.Failover)
			if l.Session == w.session {
				return w.resign(l.Epoch, said)
			}
		}
		return beat
	}
	c := candidate{
		session: w.session, leader: l, dead: dead, leasesValid: w.validity.context(nil).Err() == nil,
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
		w.startLeadership(l.Epoch, true, lease.Leader{})
	case campaigns:
		w.startLeadership(l.Epoch, false, l)
	case resigns:
		return w.resign(l.Epoch, said)
	case follows:
		if !dead { // a follower of a live leader can wait
			return wait
		}
	}
	return beat
}

// hearResignation is the number of heartbeats that a resigning worker sends while the answers still
// name it as leader. After that it ends its session.
const hearResignation = 3

// resign resigns the leadership of a term with the next heartbeat, or with Lead if the store lacks
// [lease.ResignByHeartbeat]. Heartbeats still work when a leader's other calls fail. If the store
// does not accept the resignation, resign ends the session in order, which also ends its
// leadership.
func (w *worker) resign(term uint64, said lease.Report) time.Duration {
	beat := w.cfg.Times.Heartbeat
	if w.cfg.Store.Abilities().Has(lease.ResignByHeartbeat) {
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
		w.cfg.Host.CallFailed(event.OpLead, err, time.Now())
	}
	if w.stopping.IsZero() {
		w.cfg.Log.Warn("the store did not accept this leader's resignation; this worker drains its handlers, ends its session and starts a new one")
		w.stopSession(true)
	}
	return beat
}

// startLeadership starts to lead if won is true. Otherwise it starts a campaign. suspect is the
// previous leader, whose heartbeats have stopped.
func (w *worker) startLeadership(term uint64, won bool, suspect lease.Leader) {
	ctx, cancel := context.WithCancel(w.validity.context(nil))
	w.lead = &leadership{
		cfg: w.cfg, session: w.session, term: term, won: won, wakeUp: w.poke,
		cancel: cancel, looked: make(chan struct{}, 1), done: make(chan struct{}), lastOK: time.Now(),
		watch: w.follow.Watch(w.cfg.Times, suspect), streams: newListings(w.cfg.streams()), results: w.listed,
	}
	l := w.lead
	w.running.Go(func() { l.run(ctx) })
}

// endLeadership signals the leadership to end and does not wait, so that a slow call never delays a
// heartbeat. Calls in progress may safely finish. Run waits for them before it returns.
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
