package lease

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// defaultMovesInFlight is what a zero [Limits.MovesInFlight] means.
const defaultMovesInFlight = 256

// Plan decides what a leader does about a view: who gets the leases that nobody holds, which leases
// of live workers are to be handed on, which sessions are to be ended. It is a pure function of its
// arguments, does not depend on the order of anything in them, never panics whatever they hold, and
// changes none of them. v.Leases must be filled in, also when the store answered Same.
//
// The actions come in the order in which they help most when only a prefix of them gets done,
// sorted inside each kind: EndSession, Tell, Assign, Revoke, Handoff, Forget. No lease is in two of
// them. Create, Delete and Move are not Plan's business. A leader views and plans again after each
// Apply that did something, and is done when a plan is empty; nothing but an event outside (a beat,
// a death, a hand-off that ends) makes the next plan differ from empty again.
//
// # Who counts
//
// A session is over when its row says that it has ended, or when it has no row. Whatever it owned
// may be given out. A session in f.Dead is ended first, and only that: until the view shows it as
// ended, nothing is given to it or taken from it, but its leases already count in everybody's
// share. Should its beat have moved past the count in f.Dead, it lives. A leaving session gets
// nothing, and all of its leases are to be handed on; so does one that is to be drained, with its
// moves in flight bounded like those of others. All others are active. When none is, those to be
// drained count as active, because nobody could take their leases.
//
// A session that is cut off ([Worker.CutOff]) gets nothing more while another is active that is
// not: its share is at most what it has. It keeps that until it gives it back itself. When all are
// cut off they are equally bad, and it makes no difference.
//
// A session gets leases only of streams that it reads ([Worker.Streams]). A session that did not
// report its streams keeps its leases, and otherwise gets leases only of streams that the leader
// reads (f.Streams). The leases of a stream that no active session reads are in no share. An owner
// hands them to [Nobody], unless it is leaving and reads them.
//
// Nobody is to hold the leases of paused streams (v.Paused): they are not given out, owners are
// asked to hand them to [Nobody], those of sessions that are over are revoked, which nobody has to
// acknowledge, and they count in nobody's share.
//
// # Shares
//
// A lease has work when its shard is not finished and all of its parents are done, see [Waiting].
// The leases with work, and no others, are shared out among the active sessions in proportion to
// Weight (not a finite number above zero: 1), within MaxLeases (0 or less: no cap), rounded by
// largest remainder. Where remainders are equal, the bigger share goes to whoever has it already,
// so that nothing moves, then to the first by session. A lease with a wish counts for its heir.
// What is beyond all caps stays unassigned, or with its owner if it has one: a shard that is read
// by a worker above its cap is better than one that is not read, but a lease is never given to a
// worker that would come to hold more than its cap, counting also the leases without work, those
// that it was asked to hand on but still holds, and those that were revoked but that it may still
// trust.
//
// # Moves
//
// The number of leases that get another holder than they have (or were wished to get) is the least
// with which everybody comes to its share. A wish is kept as long as its heir is active and not
// above its share; then it is withdrawn if the owner is below its share, or passed on to somebody
// who is. Wishes of active owners are bounded by [Limits.MovesInFlight], those of leaving ones are
// not. A wish that f.Overdue names is given up for a Revoke.
//
// # Preferences
//
// A lease that nobody holds goes, among the sessions below their share, to the one that had it
// last, else to one that had a parent of it last, else to the one furthest below. A session that
// Lease.Revoked still names has lived on without acknowledging for the failover time, so something
// is wrong with it: it gets the lease only if no other is below its share. Once it has acknowledged
// it is like any other.
//
// A child goes to the one that has just finished a parent of it (f.Recent), even above its share,
// because that one hears of it at once. The leases that are then too many there are handed on, out
// of those that it did not get just now, or a beat later.
//
// # Load
//
// Once everybody has its share, leases are exchanged for lighter ones to even out what they bring
// ([Lease.Load], or f.Loads where that has it), see evenLoads. That changes no share. While active
// sessions read different streams, nothing is exchanged.
func Plan(v View, f Facts, lim Limits) []Action { return decide(v, f, lim).actions(f) }

// decide makes all of a plan's decisions.
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

// standing is what a plan may do with a session and with the leases that name it.
type standing uint8

const (
	over    standing = iota // ended, or no row
	dying                   // found dead, but its row does not say so yet
	leaving                 // lives, and wants to hand everything on
	active                  // lives, and takes leases
)

// holder is a session as the plan sees it. The counts are of leases with work.
type holder struct {
	session  string
	standing standing
	beat     uint64 // its count; of a dying one that in Facts.Dead
	died     bool   // its beats stopped although it was not leaving
	named    bool   // by a lease, as its owner or its heir
	weight   float64
	limit    int  // Worker.MaxLeases
	drain    bool // it is leaving only because an operator wants it emptied
	cutOff   bool // and others are not
	streams  Streams

	// in a part of a plan, see split
	may       byte // mayRead, mayKeep or mayNot, for the leases of the part
	elsewhere bool // it is leaving only because it does not read these streams
	outside   int  // leases of other parts that it holds, or is about to get
	beyond    int  // leases in outside that count in no share
	base      int  // its shares of the parts before
	leaves    int  // leases that it is to give up, and that have no heir yet
	took      int  // leases that this plan gives it

	idle int // leases without work that it holds, or is heir of
	// leases that it is giving up: asked to hand to an active heir, or revoked but still trusted
	going  int
	kept   int // leases that it holds otherwise
	claims int // leases that count for it: those that it keeps, and those that it is heir of
	cap    int // how many may count for it
	share  int // how many should, of all
	room   int // share less claims; below zero when it has to give some up
	had    int // claims before anything was decided

	load  float64 // bytes per second of what counts for it
	fair  float64 // its part of all load, by weight
	stuck bool    // no exchange relieves it

	keeps    []*entry // holds, and nobody is wished for
	stranded []*entry // holds, and the wished heir cannot take it any more
	incoming []*entry // is heir of
}

// entry is a lease as the plan sees it, and what the plan decided about it.
type entry struct {
	*Lease
	owner *holder // nil unless it lives
	heir  *holder // nil unless it is active, and not the owner

	decision Kind    // 0 to leave the lease alone
	to       *holder // of an Assign or Handoff; nil withdraws the wish
	rest     bool    // a Handoff to Nobody
	why      reason
}

type planner struct {
	leases   lineage
	sessions map[string]*holder
	sorted   []*holder // all sessions that have a row
	active   []*holder // those that may get leases
	entries  []*entry  // the leases that this plan may decide about, sorted by key

	withWork int
	free     []*entry // with work and held by nobody
	leaving  []*entry // with work, held by a leaving session, no heir
	// wishes of active and draining owners that an active heir may still fulfil
	movesInFlight int
	movesLeft     int // how many more there may be
	paused        map[string]bool
	trials        map[string]int // see mourn; nil until somebody died
	recent        map[Key]uint64 // Facts.Recent
	cooling       map[Key]uint64 // Facts.Cooling

	// of a part
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
		// one that is over acknowledges nothing, so who was revoked does not count
		for _, session := range [...]string{l.Owner, l.Heir} {
			// nobody is given a finished lease
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

// admit makes the holders. Should one session have several rows, which no store answers, the same
// one counts always.
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

// count decides for whom an unfinished lease counts.
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
		// Its parent was set back by an operator. Whatever happens to it now is not this plan's to
		// decide.
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
// the owner lives.
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

// fill notes a lease that h has, or is about to get, and that does not count for it.
func (h *holder) fill(idle bool) {
	if idle {
		h.idle++
	} else {
		h.going++
	}
}

// current reports whether what a leader observed about a lease is about its present epoch.
func current(observed map[Key]uint64, l *Lease) bool {
	at, ok := observed[l.Key]
	return ok && at == l.Epoch
}

// actions lists what was decided.
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

// compareWorkers orders rows by session. Among rows of one session an ended one comes first, then
// the furthest beat; the rest only makes the order total.
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
