package lease

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// defaultMovesInFlight is the meaning of a zero [Limits.MovesInFlight].
const defaultMovesInFlight = 256

// Plan decides what a leader does about a view: which sessions get the free leases, which leases of
// live workers are handed on, and which sessions are ended. It is a pure function of its arguments
// and changes none of them. It does not depend on the order of anything in them, and it never
// panics. v.Leases must be filled in, also if the store answered Same.
//
// The most useful actions come first, in case only a prefix is carried out: EndSession, Tell,
// Assign, Revoke, Handoff, Forget, each kind sorted. No lease is in two of them. Plan never returns
// Create, Delete or Move. A leader reads the view and plans again after each Apply that did
// something, and is done when a plan is empty. After that only an outside event (a heartbeat, a
// death, a finished hand-off) makes the next plan non-empty again.
//
// # Sessions
//
// A session is over if its row says that it has ended, or if it has no row. Its leases may be given
// out. A session in f.Dead is only ended at first: until the view shows it as ended, the plan gives
// it nothing and takes nothing from it, but its leases already count in the shares of the others.
// If its heartbeat has moved past the count in f.Dead, it is alive. A leaving session gets nothing,
// and all of its leases are handed on. The same applies to a session that is drained, but its moves
// in flight are limited as for active sessions. All other sessions are active. Without active
// sessions, the drained sessions count as active, because no other session could take their leases.
//
// A session that is cut off ([Worker.CutOff]) gets no more leases while there is an active session
// that is not cut off. Its share is at most what it has, and it keeps that until it gives it back
// itself. If all are cut off, the rule does not apply.
//
// A session gets leases only of streams that it reads ([Worker.Streams]). A session that did not
// report its streams keeps its leases, and otherwise gets leases only of streams that the leader
// reads (f.Streams). The leases of a stream that no active session reads are in no share. An owner
// hands them to [Nobody], unless it is leaving and reads them.
//
// No session may hold the leases of paused streams (v.Paused). They are not given out and count in
// no share. Owners are asked to hand them to [Nobody]. Leases of sessions that are over are
// revoked, and no session has to acknowledge that.
//
// # Shares
//
// A lease has work if its shard is not finished and all of its parents are done, see [Waiting].
// Only leases with work are shared out. The active sessions get them in proportion to Weight
// (anything but a finite number above zero counts as 1), within MaxLeases (0 or less: no cap),
// rounded by largest remainder. For equal remainders, the bigger share goes to the session that has
// it already, so that nothing moves, and otherwise to the first session in sorted order. A lease
// with an heir counts for its heir.
//
// Leases beyond all caps stay unassigned, or with their owner if they have one: reading a shard
// above the cap of a worker is better than not reading it. But no lease is given to a worker that
// would then hold more than its cap. This count includes leases without work, leases that it was
// asked to hand on but still holds, and revoked leases that it may still trust.
//
// # Moves
//
// The plan makes the smallest number of moves with which every session reaches its share. An heir
// stays as long as it is active and not above its share. Otherwise the hand-off is withdrawn if the
// owner is below its share, or passed on to a session that is. Hand-offs of active owners are
// limited by [Limits.MovesInFlight], those of leaving owners are not. A hand-off in f.Overdue
// becomes a Revoke.
//
// # Preferences
//
// A free lease goes to a session below its share: preferably to its last owner, then to the last
// owner of one of its parents, then to the session furthest below its share. A session that
// Lease.Revoked still names was alive for the failover time without acknowledging, so something is
// wrong with it. It gets the lease only if no other session is below its share. Once it has
// acknowledged, it is like any other session.
//
// A child goes to the session that has just finished a parent of it (f.Recent), even above its
// share, because that session learns of the lease at once. Its excess leases are then handed on,
// chosen from those that it did not get just now, or one heartbeat later.
//
// # Load
//
// Once every session has its share, leases are exchanged for lighter ones to even out their load
// ([Lease.Load], or f.Loads where that has it), see evenLoads. That changes no share. While active
// sessions read different streams, nothing is exchanged.
func Plan(v View, f Facts, lim Limits) []Action { return decide(v, f, lim).actions(f) }

// decide makes all decisions of a plan.
func decide(v View, f Facts, lim Limits) *planner {
	p := survey(v, f)
	parts := p.split(v, f)
	left := lim.MovesInFlight
	if left <= 0 {
		left = defaultMovesInFlight
	}
	read := 0 // parts that a session reads
	for _, part := range parts {
		for _, e := range part.entries {
			part.count(e, f)
		}
		left -= part.movesInFlight
		if len(part.active) > 0 {
			read++
		}
	}
	for i, part := range parts {
		part.movesLeft = left
		part.crowd(parts, i)
		part.balance()
		if read == 1 && len(part.active) == len(p.active) {
			part.evenLoads(f)
		}
		left = part.movesLeft
	}
	return p
}

// standing decides what a plan may do with a session and with the leases that name it.
type standing uint8

const (
	over    standing = iota // ended, or no row
	dying                   // found dead, but its row does not say so yet
	leaving                 // alive, and wants to hand everything on
	active                  // alive, and takes leases
)

// holder is a session as the plan sees it. It counts only leases with work.
type holder struct {
	session  string
	standing standing
	beat     uint64 // its heartbeat count; of a dying session the one in Facts.Dead
	died     bool   // its heartbeats stopped although it was not leaving
	named    bool   // some lease names it as its owner or heir
	weight   float64
	limit    int  // Worker.MaxLeases
	drain    bool // it is leaving only because an operator drains it
	cutOff   bool // it is cut off and others are not
	streams  Streams

	// Within a part of a plan, see split.
	may       byte // mayRead, mayKeep or mayNot, for the leases of the part
	elsewhere bool // it is leaving only because it does not read these streams
	outside   int  // leases of other parts that it holds or is about to get
	beyond    int  // leases in outside that count in no share
	base      int  // its shares of the earlier parts
	leaves    int  // leases that it has to hand on and that have no heir yet
	took      int  // leases that this plan gives it

	idle int // leases without work that it holds or is heir of
	// leases that it is about to lose: to an active heir, or revoked but still trusted
	going  int
	kept   int // other leases that it holds
	claims int // leases that count for it: kept ones, and those that it is heir of
	cap    int // the most leases that may count for it
	share  int // how many of all leases should count for it
	room   int // share less claims; below zero if it has to hand some on
	had    int // claims before any decision

	load  float64 // bytes per second of the leases that count for it
	fair  float64 // its part of the total load, by weight
	stuck bool    // no exchange relieves it

	keeps    []*entry // leases that it holds without an heir
	stranded []*entry // leases that it holds and whose heir can no longer take them
	incoming []*entry // leases that it is heir of
}

// entry is a lease as the plan sees it, with the plan's decision about it.
type entry struct {
	*Lease
	owner *holder // nil unless it is alive
	heir  *holder // nil unless it is active and not the owner

	decision Kind    // 0 to leave the lease unchanged
	to       *holder // target of an Assign or Handoff; nil withdraws the hand-off
	rest     bool    // a Handoff to Nobody
	why      reason
}

type planner struct {
	leases   lineage
	sessions map[string]*holder
	sorted   []*holder // all sessions that have a row
	active   []*holder // sessions that may get leases
	entries  []*entry  // leases that this plan may decide about, sorted by key

	withWork int
	free     []*entry // leases with work and without an owner
	leaving  []*entry // leases with work of a leaving session, without an heir
	// hand-offs of active and draining owners that an active heir may still complete
	movesInFlight int
	movesLeft     int // how many more hand-offs may start
	paused        map[string]bool
	trials        map[string]int // see mourn; nil until some session died
	recent        map[Key]uint64 // Facts.Recent
	cooling       map[Key]uint64 // Facts.Cooling

	// Only set within a part.
	readers int  // active sessions that read its streams
	unread  bool // there are active sessions, and none of them reads its streams
	mixed   bool // there are other parts
}

// survey makes the holders, and the entries of the leases that are not finished.
func survey(v View, f Facts) *planner {
	p := &planner{leases: newLineage(v.Leases, f.Gone), paused: make(map[string]bool, len(v.Paused)), recent: f.Recent, cooling: f.Cooling}
	for _, stream := range v.Paused {
		p.paused[stream] = true
	}
	p.admit(v.Workers, f.Dead)
	p.leases.trusted = func(l *Lease) bool {
		former := p.sessions[l.Revoked]
		return former != nil && former.standing != over && !current(f.Ripe, l)
	}
	for i := range v.Leases {
		l := &v.Leases[i]
		// a session that is over cannot acknowledge, so Revoked does not count
		for _, session := range [...]string{l.Owner, l.Heir} {
			// no session gets a finished lease
			if h := p.sessions[session]; h != nil && !l.Finished() {
				h.named = true
			}
		}
	}

	entries := make([]entry, len(p.leases.sorted))
	p.entries = make([]*entry, 0, len(entries))
	for i, l := range p.leases.sorted {
		if !l.Finished() {
			e := &entries[i]
			e.Lease = l
			p.entries = append(p.entries, e)
		}
	}
	return p
}

// admit makes the holders. If one session has several rows, which no store returns, the same row
// counts every time.
func (p *planner) admit(workers []Worker, dead map[string]uint64) {
	rows := make([]*Worker, 0, len(workers))
	for i := range workers {
		if workers[i].Session != "" {
			rows = append(rows, &workers[i])
		}
	}
	slices.SortFunc(rows, compareWorkers)
	p.sessions = make(map[string]*holder, len(rows))
	for _, w := range rows {
		if p.sessions[w.Session] != nil {
			continue
		}
		h := &holder{session: w.Session, beat: w.Beat, weight: w.Weight, limit: w.MaxLeases, cutOff: w.CutOff(), streams: w.Streams}
		if !(w.Weight > 0) || math.IsInf(w.Weight, 1) {
			h.weight = 1
		}
		if w.MaxLeases <= 0 {
			h.limit = math.MaxInt
		}
		beat, isDead := dead[w.Session]
		switch {
		case w.Ended:
			h.standing, h.died = over, !w.Leaving
		case isDead && w.Beat <= beat:
			h.standing, h.beat = dying, beat
		case w.Leaving:
			h.standing = leaving
		case w.Drain:
			h.standing, h.drain = leaving, true
		default:
			h.standing = active
			p.active = append(p.active, h)
		}
		p.sessions[w.Session] = h
		p.sorted = append(p.sorted, h)
	}
	if len(p.active) == 0 {
		for _, h := range p.sorted {
			if h.drain {
				h.standing, h.drain = active, false
				p.active = append(p.active, h)
			}
		}
	}
	if !slices.ContainsFunc(p.active, func(h *holder) bool { return !h.cutOff }) {
		for _, h := range p.active {
			h.cutOff = false
		}
	}
}

// count decides for which session an unfinished lease counts.
func (p *planner) count(e *entry, f Facts) {
	owner := p.sessions[e.Owner]
	if p.paused[""] || p.paused[e.Stream] {
		p.retire(e, owner, f, whyPaused)
		return
	}
	if p.unread && owner != nil && owner.elsewhere {
		p.retire(e, owner, f, whyUnread)
		return
	}
	waits := p.leases.waits(e.Lease)
	if !waits {
		p.withWork++
	}
	if owner == nil || owner.standing == over {
		switch {
		case e.Revoked != "" && p.leases.trusted(e.Lease):
			p.sessions[e.Revoked].fill(waits)
		case !waits:
			p.free = append(p.free, e)
		}
		return
	}
	if owner.standing == dying {
		return
	}

	e.owner = owner
	if h := p.sessions[e.Heir]; h != nil && h.standing == active && h != owner {
		e.heir = h
	}
	if e.Heir != "" && e.heir == nil {
		e.decision, e.why = Handoff, whyHeirless // withdrawn, unless balance finds another heir
	}
	overdue := e.heir != nil && !waits && current(f.Overdue, e.Lease)
	if e.heir != nil && (owner.standing == active || owner.drain) && !overdue {
		p.movesInFlight++
	}
	switch {
	case waits:
		// An operator set its parent back. This plan does not move the lease.
		owner.fill(waits)
		if e.heir != nil {
			e.heir.fill(waits)
		}
	case overdue:
		e.decision, e.why = Revoke, whyOverdue
		owner.fill(waits)
	case e.heir != nil:
		e.heir.claims++
		e.heir.incoming = append(e.heir.incoming, e)
		owner.fill(waits)
	case owner.standing == leaving:
		owner.leaves++
		p.leaving = append(p.leaving, e)
	default:
		owner.kept++
		owner.claims++
		if e.Heir != "" {
			owner.stranded = append(owner.stranded, e)
		} else {
			owner.keeps = append(owner.keeps, e)
		}
	}
}

// retire decides how a lease that no session may hold is taken from its owner. why is the reason if
// the owner is alive.
func (p *planner) retire(e *entry, owner *holder, f Facts, why reason) {
	switch {
	case e.Owner != "" && (owner == nil || owner.standing == over):
		e.decision, e.why = Revoke, whyOver
		return
	case owner == nil || owner.standing == dying:
		if e.Revoked != "" && p.leases.trusted(e.Lease) {
			p.sessions[e.Revoked].fill(true)
		}
		return
	case e.Heir != Nobody:
		e.decision, e.rest, e.why = Handoff, true, why
	case current(f.Overdue, e.Lease):
		e.decision, e.why = Revoke, whyOverdue
	}
	e.owner = owner
	owner.fill(true)
}

// fill counts a lease that h has, or is about to get, and that does not count for it.
func (h *holder) fill(idle bool) {
	if idle {
		h.idle++
	} else {
		h.going++
	}
}

// current reports whether a leader's observation about a lease is about its present epoch.
func current(observed map[Key]uint64, l *Lease) bool {
	at, ok := observed[l.Key]
	return ok && at == l.Epoch
}

// actions returns the actions for what was decided.
func (p *planner) actions(f Facts) []Action {
	decided := 0
	for _, e := range p.entries {
		if e.decision != 0 {
			decided++
		}
	}
	list := make([]Action, 0, decided)
	for _, h := range p.sorted {
		if h.standing == dying {
			list = append(list, Action{Kind: EndSession, Session: h.session, Beat: h.beat})
		}
	}
	for _, h := range p.sorted {
		if f.OutOfDate[h.session] && (h.standing == leaving || h.standing == active) {
			list = append(list, Action{Kind: Tell, Session: h.session})
		}
	}
	for _, kind := range [...]Kind{Assign, Revoke, Handoff} {
		for _, e := range p.entries {
			if e.decision != kind {
				continue
			}
			a := Action{Kind: kind, Key: e.Key, Epoch: e.Epoch}
			switch {
			case e.rest:
				a.Session = Nobody
			case e.to != nil:
				a.Session = e.to.session
			}
			if kind == Assign {
				a.Deaths = p.mourn(e)
			}
			list = append(list, a)
		}
	}
	for _, h := range p.sorted {
		if h.standing == over && !h.named && f.Forgettable[h.session] {
			list = append(list, Action{Kind: Forget, Session: h.session})
		}
	}
	return list
}

// compareWorkers orders rows by session. Among rows of one session an ended row comes first, then
// the one with the highest heartbeat count. The other fields only make the order total.
func compareWorkers(a, b *Worker) int {
	if c := strings.Compare(a.Session, b.Session); c != 0 {
		return c
	}
	number := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(number(b.Ended), number(a.Ended)),
		cmp.Compare(b.Beat, a.Beat),
		cmp.Compare(number(b.Leaving), number(a.Leaving)),
		cmp.Compare(number(b.Drain), number(a.Drain)),
		cmp.Compare(a.Weight, b.Weight),
		cmp.Compare(a.MaxLeases, b.MaxLeases),
		cmp.Compare(a.Streams, b.Streams),
	)
}
