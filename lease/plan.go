package lease

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// defaultMovesInFlight applies if [Limits.MovesInFlight] is zero.
const defaultMovesInFlight = 256

// Plan returns the actions of a leader for a view. It decides which sessions get free leases, which
// leases of live workers move, and which sessions end. It is a pure function of its arguments and
// does not modify them. The order of elements in the arguments does not matter. Plan never panics.
// v.Leases must be filled in, even if the store answered Same.
//
// The most useful actions come first, in case only some of them are executed. The order of kinds is
// EndSession, Tell, Assign, Revoke, Handoff, Forget, and each kind is sorted. Each lease has at
// most one action. Plan returns no other kinds. A leader reads the view and plans again after each
// Apply that changed something. It is done when a plan is empty. Only an event from outside (a
// heartbeat, a death, a finished handoff) can make the next plan non-empty.
//
// # Sessions
//
// A session is over if its row shows that it has ended, or if it has no row. Its leases may be
// assigned.
//
// For a session in f.Dead, the plan at first only contains an EndSession. Until the view shows the
// session as ended, the plan gives it no leases and takes no leases from it. Its leases already
// count in the shares of the other sessions. If its heartbeat count is above the count in f.Dead,
// it is alive.
//
// A leaving session gets no leases, and all of its leases are handed on. The same applies to a
// session that is drained, but its moves in flight are limited as for active sessions. All other
// sessions are active. Without active sessions the drained sessions count as active, because no
// other session could take their leases.
//
// A session that is cut off ([Worker.CutOff]) gets no more leases while another active session is
// not cut off. Its share is at most its current number of leases. No lease moves only because its
// owner is cut off: the session releases such leases itself. If all active sessions are cut off,
// this rule does not apply.
//
// A session only gets leases of streams that it reads ([Worker.Streams]). A session that did not
// report its streams keeps its leases. It only gets new leases of streams that the leader reads
// (f.Streams). If no active session reads a stream, active sessions that reported other streams
// hand their leases of the stream to [Nobody].
//
// No session may hold leases of paused streams (v.Paused). These leases are not assigned and count
// in no share. Owners must hand them to [Nobody]. Leases of sessions that are over are revoked, and
// no session has to acknowledge that.
//
// # Shares
//
// A lease has work if its shard is not finished and all of its parents are done, see [Waiting].
// Only leases with work are shared. The active sessions get them in proportion to Weight, within
// MaxLeases (0 or less: no cap), rounded by largest remainder. A Weight that is not a finite number
// above zero counts as 1. For equal remainders, the larger share goes to the session that already
// has it, so that no lease moves. Otherwise it goes to the first session in sorted order. While
// active sessions read different streams, there are no remainders: each lease in turn goes to the
// session whose share is lowest for its weight. A lease with an heir counts for its heir.
//
// Leases that exceed the sum of all caps stay with their owner. Without an owner they stay
// unassigned. A shard that is read above the cap of a worker is better than a shard that is not
// read. But a worker never gets a lease that takes it above its cap. This count includes leases
// without work, leases that the worker must hand on but still holds, and revoked leases that may
// still be valid for it.
//
// # Moves
//
// The plan makes the smallest number of moves with which every session reaches its share. An heir
// stays as long as it is active and not above its share. Otherwise the plan withdraws the handoff
// if the owner is below its own share. If the owner is not, the plan redirects the handoff to a
// session below its share. [Limits.MovesInFlight] limits handoffs of active owners, but not those
// of leaving owners. A handoff in f.Overdue becomes a Revoke.
//
// # Preferences
//
// A free lease goes to a session below its share. The first choice is its last owner, then the last
// owner of one of its parents, then the session furthest below its share. A session that
// Lease.Revoked still names was alive for the failover time without acknowledging, so it has a
// problem. It gets the lease only if no other session is below its share. Once it has acknowledged,
// it is like any other session.
//
// A child goes to the session that has just finished one of its parents (f.Recent), even above its
// share. The reason is that this session learns of the lease at once. The excess leases of the
// session are then handed on. The plan prefers leases that the session has had for longer. The
// child itself is handed on one heartbeat later at the earliest.
//
// # Load
//
// Once every session has its share, leases are exchanged for lighter ones to balance the load, see
// evenLoads. The load of a lease is f.Loads, or [Lease.Load] if f.Loads lacks it. Exchanges change
// no share. While active sessions read different streams, there are no exchanges.
func Plan(v View, f Facts, lim Limits) []Action { return decide(v, f, lim).actions(f) }

// decide makes all decisions of a plan.
func decide(v View, f Facts, lim Limits) *planner {
	p := survey(v, f)
	parts := p.split(v, f)
	left := lim.MovesInFlight
	if left <= 0 {
		left = defaultMovesInFlight
	}
	read := 0 // parts of the plan that a session reads
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

// standing determines what a plan may do with a session and with its leases.
type standing uint8

const (
	over    standing = iota // ended, or without a row
	dying                   // found dead, but its row does not show this yet
	leaving                 // alive, and its leases must move
	active                  // alive, and takes leases
)

// holder is a session in the plan. Unless a comment says otherwise, its counters include only
// leases with work.
type holder struct {
	session  string
	standing standing
	beat     uint64 // its heartbeat count; for a dying session the count in Facts.Dead
	died     bool   // its heartbeats stopped while it was not leaving
	named    bool   // at least one lease has it as owner or heir
	weight   float64
	limit    int  // Worker.MaxLeases
	drain    bool // the session counts as leaving only because an operator drains it
	cutOff   bool // cut off while other sessions are not, or mayKeep: gets no more leases
	streams  Streams

	// The following fields are set within a part of a plan, see split.
	may       byte // mayRead, mayKeep or mayNot, for the leases of the part
	elsewhere bool // the session counts as leaving only because it does not read these streams
	outside   int  // leases of other parts that the session holds or will get
	beyond    int  // leases in outside that count in no share
	base      int  // its shares in the earlier parts
	leaves    int  // leases that the session must hand on and that have no heir yet
	took      int  // leases that the session gets in this plan

	idle int // leases without work whose owner or heir is the session
	// going counts leases that the session will lose. They have an active heir, or they are revoked
	// but still valid.
	going  int
	kept   int // other leases that the session holds
	claims int // leases that count for the session: kept leases, and leases whose heir it is
	cap    int // the maximum number of leases that may count for the session
	share  int // the number of leases that should count for the session
	room   int // share minus claims; negative if the session must hand on leases
	had    int // claims before any decision

	load  float64 // bytes per second of the leases that count for the session
	fair  float64 // the part of the total load that matches its weight
	stuck bool    // no exchange can reduce its load

	keeps []*entry // leases that the session holds, without an heir
	// stranded contains leases that the session holds, with an heir that can no longer take them,
	// or with a handoff that this plan withdraws.
	stranded []*entry
	incoming []*entry // leases whose heir is the session
}

// entry is a lease in the plan, with the plan's decision about it.
type entry struct {
	*Lease
	owner *holder // nil unless the owner is alive
	heir  *holder // nil unless the heir is active and not the owner

	decision Kind    // 0 if the lease does not change
	to       *holder // target of an Assign or Handoff; nil withdraws the handoff
	rest     bool    // a Handoff to Nobody
	why      reason
}

type planner struct {
	leases   lineage
	sessions map[string]*holder
	sorted   []*holder // all sessions with a row
	active   []*holder // sessions that may get leases
	entries  []*entry  // leases about which this plan may decide, sorted by key

	withWork int
	free     []*entry // leases with work and without an owner
	leaving  []*entry // leases with work of leaving sessions, without an heir
	// movesInFlight counts handoffs of active and draining owners that an active heir may still
	// complete.
	movesInFlight int
	movesLeft     int // how many more handoffs may start
	paused        map[string]bool
	trials        map[string]int // see mourn; nil until a session died
	recent        map[Key]uint64 // Facts.Recent
	cooling       map[Key]uint64 // Facts.Cooling

	// The following fields are only set within a part.
	readers int  // active sessions that read its streams
	unread  bool // there are active sessions, but none reads its streams
	mixed   bool // there are other parts
}

// survey creates the holders, and the entries for leases that are not finished.
func survey(v View, f Facts) *planner {
	p := &planner{leases: newLineage(v.Leases, f.Gone), paused: make(map[string]bool, len(v.Paused)), recent: f.Recent, cooling: f.Cooling}
	for _, stream := range v.Paused {
		p.paused[stream] = true
	}
	p.admit(v.Workers, f.Dead)
	p.leases.stillValid = func(l *Lease) bool {
		former := p.sessions[l.Revoked]
		return former != nil && former.standing != over && !current(f.Ripe, l)
	}
	for i := range v.Leases {
		l := &v.Leases[i]
		// Revoked does not count here, because a session that is over cannot acknowledge a
		// revocation.
		for _, session := range [...]string{l.Owner, l.Heir} {
			// No session gets a finished lease.
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

// admit creates the holders. No store returns several rows for one session, but if there are
// several, the choice does not depend on their order.
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
		h := &holder{session: w.Session, beat: w.Heartbeats, weight: w.Weight, limit: w.MaxLeases, cutOff: w.CutOff(), streams: w.Streams}
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
		case isDead && w.Heartbeats <= beat:
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
		case e.Revoked != "" && p.leases.stillValid(e.Lease):
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
		// An operator moved the lease's parent. This plan does not move the lease.
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

// retire plans a lease that no session may hold. It requests a handoff to Nobody, or revokes the
// lease. why is the reason that Explain returns if the owner is alive.
func (p *planner) retire(e *entry, owner *holder, f Facts, why reason) {
	switch {
	case e.Owner != "" && (owner == nil || owner.standing == over):
		e.decision, e.why = Revoke, whyOver
		return
	case owner == nil || owner.standing == dying:
		if e.Revoked != "" && p.leases.stillValid(e.Lease) {
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

// fill adds a lease that h has or will get, and that does not count in its share.
func (h *holder) fill(idle bool) {
	if idle {
		h.idle++
	} else {
		h.going++
	}
}

// current reports whether a leader's observation concerns the current epoch of a lease.
func current(observed map[Key]uint64, l *Lease) bool {
	at, ok := observed[l.Key]
	return ok && at == l.Epoch
}

// actions returns the actions for the decisions.
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
			list = append(list, Action{Kind: EndSession, Session: h.session, Heartbeats: h.beat})
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

// compareWorkers sorts rows by session. Among several rows of a session, ended rows come first, and
// then rows with higher heartbeat counts. The other fields only make the order total.
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
		cmp.Compare(b.Heartbeats, a.Heartbeats),
		cmp.Compare(number(b.Leaving), number(a.Leaving)),
		cmp.Compare(number(b.Drain), number(a.Drain)),
		cmp.Compare(a.Weight, b.Weight),
		cmp.Compare(a.MaxLeases, b.MaxLeases),
		cmp.Compare(a.Streams, b.Streams),
	)
}
