package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/sim/model"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Something is always due of somebody: of the leader to give a free lease out, of an owner to
// answer a wish, to read, or to leave when it stops. A duty is overdue when it has stood for longer
// than its bound and nothing has hindered whoever it is of meanwhile. What hinders a worker is
// noted where its fate is decided: a call to the store that failed, a read that did, a handler at
// work.

// duty is what is due of a shard, or of a worker.
type duty struct {
	what  string
	epoch uint64
	heir  string
	by    *life
	since int64

	reading reading // the answers that its owner got since then
	read    int64   // when they last were progress
}

// duties are what is due, and since when.
type duties struct {
	leases      map[lease.Key]*duty
	leader      string
	leaderSince int64
	leaderless  int64 // since when, 0 while somebody leads
	followed    int64 // until when somebody led before the present leader
	missing     map[*model.Shard]int64
	former      map[*model.Shard]bool // another had its name, in a stream that was deleted
	settle      int64                 // when the last fault had happened
	// when last something of before was still under way, or was got done
	late   int64
	places uint64             // a hash of the checkpoints, where records are dropped
	done   int                // records less those that are missing, and shards
	worst  map[string]float64 // how much of its bound a duty has taken, at most
}

func newDuties() duties {
	return duties{leases: map[lease.Key]*duty{}, missing: map[*model.Shard]int64{}, former: map[*model.Shard]bool{}, worst: map[string]float64{}}
}

// hindered is what has lately kept a life from its duties, as times until when it explains that
// nothing happens.
type hindered struct {
	store int64
	beat  int64 // when a beat last had its effect, perhaps long after a crash
	begun int64 // when its first beat had its effect
	// as store, of its beats alone: with the next that succeeds a leader's own watchdog begins anew
	unbeaten int64
	resigned int64
	stopping int64 // since when it stops
	sink     int64 // it asks the sink, or waits until it asks again
	reads    map[string]int64
	handles  map[string]int64 // when a handler was last at work
}

func newHindered() hindered { return hindered{reads: map[string]int64{}, handles: map[string]int64{}} }

// keeps notes that a call to the store goes wrong, and is waited for so long.
func (w *world) keepsFromStore(c *call, d time.Duration) {
	if c.op == "leave" { // which is tried for so long
		d = max(d, w.settings.failover)
	}
	h, until := &c.life.hindered, w.now()+int64(d+w.settings.beat)
	h.store = max(h.store, until)
	if c.op == "beat" {
		h.unbeaten = max(h.unbeaten, until)
	}
}

// keepsFromReading notes that a call about a shard or a stream goes wrong.
func (w *world) keepsFromReading(l *life, about string, d time.Duration) {
	l.hindered.reads[about] = max(l.hindered.reads[about], w.now()+int64(d))
	if w.sink != nil { // for which ancestors are read, too
		l.hindered.sink = max(l.hindered.sink, w.now()+int64(d))
	}
}

// callWithin is how long a call to Kinesis may hang.
const callWithin = 20 * time.Second

// fromStore is until when a life is explained not to do what needs the store.
func (l *life) fromStore() int64 { return max(l.hindered.store, l.paused, l.cutOff) }

// runs reports whether a session is that of a worker which runs.
func (w *world) runs(session string) (*life, bool) {
	l := w.books.of[session]
	return l, l != nil && l.of.life == l && !l.dead.Load() && l.session == session
}

// ready is since when somebody could take what is given out, or the lead; none when nobody can.
func (w *world) ready(lead bool) int64 {
	return w.readyOf(lead, func(*life) bool { return true })
}

// readyOf is ready, of the lives for which may returns true.
func (w *world) readyOf(lead bool, may func(*life) bool) int64 {
	since := int64(math.MaxInt64)
	for _, wk := range w.workers {
		l := wk.life
		if l == nil || l.stopping || l.session == "" || !may(l) {
			continue
		}
		at := max(l.hindered.begun+int64(2*w.settings.beat), l.fromStore(), w.outage)
		if lead {
			at = max(at, l.hindered.resigned, l.leads)
		}
		since = min(since, at)
	}
	return since
}

// tick looks now and again for what is overdue.
func (w *world) tick() {
	if w.stage == over {
		return
	}
	w.overdue()
	w.after(w.settings.beat/2, w.tick)
}

// bound is a time by the slowest clock, with a little for calls.
func bound(d time.Duration) int64 { return int64(d)*21/20 + int64(500*time.Millisecond) }

// judges breaks when a duty has stood for too long, and else remembers how near that was.
func (w *world) within(since int64, d time.Duration, kind string, say func() string) {
	now := w.now()
	if since >= now {
		return
	}
	if part := float64(now-since) / float64(bound(d)); part > w.duties.worst[kind] {
		w.duties.worst[kind] = part
	}
	if now-since > bound(d) {
		w.breaks("overdue: %s for %.1f s, %v are allowed", say(), float64(now-since)/1e9, time.Duration(bound(d)))
	}
}

func (w *world) overdue() {
	now, s := w.now(), w.settings
	for _, wk := range w.workers {
		if l := wk.life; l != nil {
			w.noteHandlers(l)
			if l.stopping {
				w.leavesInTime(l)
			}
		}
	}
	d := &w.duties
	if w.leader != d.leader {
		d.leader, d.leaderSince, d.followed = w.leader, now, now
	}
	takers := w.ready(false)
	leader, leads := w.runs(w.leader)
	leads = leads && leader.leads != math.MaxInt64
	led := int64(math.MaxInt64)
	if leads {
		if d.leaderless != 0 {
			d.followed, d.leaderless = d.leaderless, 0
		}
		led = max(d.leaderSince, leader.fromStore(), leader.leads, w.outage)
	} else {
		if d.leaderless == 0 {
			d.leaderless = now
		}
		if leader != nil { // also when it resigns later
			d.leaderless = max(d.leaderless, leader.hindered.beat, leader.hindered.unbeaten)
		}
		w.within(max(d.leaderless, w.ready(true)), s.failover+3*s.beat, "leader", func() string { return "nobody leads" })
	}
	w.stepsDown()
	if w.stage == stopping {
		return
	}
	for _, st := range w.streams {
		switch {
		case !st.named:
			w.unnamed(st, led)
		case w.profile.Apart && w.apart(st):
			w.overdueApart(st, leader, led)
		case w.now() >= w.learned(st):
			w.overdueOf(st, led, takers)
		}
	}
}

// bars notes that what a leader asks of the store fails from now on, or from when the call ends
// that is under way.
func (w *world) bars(l *life) {
	l.barred = w.now()
	if slices.ContainsFunc(l.parked, func(c *call) bool { return c.op == "view" || c.op == "apply" }) {
		l.barred += int64(w.settings.failover / 2)
	}
}

// stepsDown: a leader that can beat and do nothing else that leaders do leads no more, soon.
func (w *world) stepsDown() {
	l, runs := w.runs(w.leader)
	if !runs || l.leads <= w.now() || l.stopping {
		return
	}
	since := max(l.barred, w.duties.leaderSince, l.hindered.unbeaten, l.hindered.begun, l.paused, l.cutOff, w.outage)
	if l.leads == math.MaxInt64 || l.leads > l.cutOff {
		w.within(since, w.settings.failover+3*w.settings.beat, "step down", func() string { return l.String() + " leads, and cannot look or act," })
	}
}

// watched is since when the present leader must have seen how long everybody has beaten no more: it
// brings that along from when it followed, so what counts is when the leader before it was gone,
// not when it came itself. What hindered it then hindered its watch too.
func (w *world) watched() int64 {
	leader, leads := w.runs(w.leader)
	if !leads || leader.leads == math.MaxInt64 {
		return math.MaxInt64
	}
	since := w.duties.followed
	if leader.older { // which begins to watch when it leads
		since = w.duties.leaderSince
	}
	if until := leader.hindered.resigned; until > since { // it may not lead again so soon
		since = max(since, min(until, w.duties.leaderSince))
	}
	return max(since, leader.hindered.begun, leader.fromStore(), leader.leads, w.outage)
}

// overdueOf looks for what is overdue of a stream.
func (w *world) overdueOf(st *stream, led, takers int64) {
	d := &w.duties
	for sh := range st.shards() {
		key := lease.Key{Stream: st.name, Shard: sh.ID}
		l, known := w.books.last[key]
		switch {
		case !known:
			delete(d.leases, key)
			w.unborn(st, sh, led)
		case w.streamOf(&l) == nil: // a lease of a stream that was deleted is in the way
			delete(d.leases, key)
			delete(d.missing, sh)
			d.former[sh] = true
		case l.Finished():
			delete(d.leases, key)
		default:
			delete(d.missing, sh)
			w.owed(&l, sh, led, takers)
		}
	}
}

// noteHandlers notes which shards have a handler at work, and whether something of before the
// faults ended is still under way in the user's code.
func (w *world) noteHandlers(l *life) {
	for _, c := range l.parked {
		if c.op == "position" || c.op == "open" {
			l.hindered.sink = max(l.hindered.sink, w.now()+int64(retryMax))
		} else if c.op == "hook" { // Run waits for it when all else has ended
			l.hindered.handles["hook"] = w.now()
			continue
		} else if !c.isUsers() && c.op != "streams" {
			continue
		}
		if c.gone.Load() {
			continue
		}
		if c.isUsers() {
			l.hindered.handles[c.about] = w.now()
		}
		if w.stage == settling && c.sent < w.duties.settle {
			w.duties.late = w.now()
		}
	}
}

// leavesInTime: who is to stop is gone when its handlers have returned and it has said goodbye.
func (w *world) leavesInTime(l *life) {
	s := w.settings
	if l.hindered.stopping == 0 {
		l.hindered.stopping = w.now()
	}
	since := max(l.hindered.stopping, l.fromStore(), w.outage)
	w.within(since, s.stop+7*time.Second+s.failover+3*s.beat, "stop", func() string { return l.String() + " stops" })
	since = max(since, l.hindered.sink)
	for _, at := range l.hindered.handles {
		since = max(since, at)
	}
	w.within(since, 4*s.beat, "stop, idle", func() string { return l.String() + " stops, and no handler is at work," })
}

// unborn: a shard without a lease gets one when its parents end, or with the next listing.
func (w *world) unborn(st *stream, sh *model.Shard, led int64) {
	d, s := &w.duties, w.settings
	if w.amid() { // whoever ended its parents is about to make it
		delete(d.missing, sh)
		return
	}
	named := false // by who finished a parent: at its end, or when that had left the stream
	for _, p := range sh.Parents {
		l, known := w.books.last[lease.Key{Stream: st.name, Shard: p.ID}]
		switch {
		case !known && p.GoneAt.IsZero(), known && !l.Finished():
			delete(d.missing, sh) // it waits for that
			return
		case known && w.streamOf(&l) != nil && l.Epoch > 1:
			// a tombstone of before the start was finished by nobody
			named = true
		}
	}
	if _, known := d.missing[sh]; !known {
		d.missing[sh] = w.now()
	}
	say := func() string { return about(st.name, sh.ID) + " has no lease although its parents are finished," }
	if named && !d.former[sh] {
		w.within(d.missing[sh], s.beat, "child", say)
		return
	}
	if led == math.MaxInt64 {
		return
	}
	if leader := w.books.of[w.leader]; leader.reads(st.name) {
		w.within(max(d.missing[sh], led, leader.unread, leader.hindered.reads[st.name]), s.listedWithin(), "listing", say)
		return
	}
	w.within(max(d.missing[sh], led, w.lists(st)), s.listedApart(), "listing, apart", say)
}

// owed is what is due of a lease that is not finished, of a shard that there is.
func (w *world) owed(l *lease.Lease, sh *model.Shard, led, takers int64) {
	s, now := w.settings, w.now()
	owner, runs := w.runs(l.Owner)
	what := "free"
	switch {
	case l.Owner == "" && l.Revoked != "":
		what = "revoked"
	case l.Owner == "":
	case !runs, owner.goodbye: // who has said goodbye in vain gives nothing back any more
		what, owner = "dead", nil
	case l.Heir != "":
		what = "wished"
	default:
		what = "read"
	}
	d := w.duties.leases[l.Key]
	if d == nil || d.what != what || d.epoch != l.Epoch || d.heir != l.Heir || d.by != owner {
		d = &duty{what: what, epoch: l.Epoch, heir: l.Heir, by: owner, since: now}
		w.duties.leases[l.Key] = d
	}
	// a copy, so that l stays where it is
	say := func() string { return fmt.Sprintf("%s (%s)", *l, what) }
	ordered := max(d.since, led, takers)
	switch what {
	case "free":
		// nothing is given out before a leader has listed
		if leader := w.books.of[w.leader]; leader != nil && (w.starts.Kind() == shard.Tip || w.starts.Kind() == shard.Time) {
			ordered = max(ordered, leader.unread, leader.hindered.reads[l.Stream])
		}
		switch leader := w.books.of[w.leader]; {
		case !w.readable(l, sh):
			d.since = now
		case leader != nil && !leader.reads(l.Stream): // nothing is given out before a reader has listed
			w.within(max(ordered, w.lists(w.streamNamed(l.Stream))), s.listedApart()+3*s.beat, "free, apart", say)
		default:
			w.within(ordered, 3*s.beat, what, say)
		}
	case "revoked":
		if w.readable(l, sh) {
			w.within(ordered, s.failover+3*s.beat, what, say)
		} else {
			d.since = now
		}
	case "dead":
		if !w.readable(l, sh) && (w.sink != nil || w.profile.Rates[Resets] > 0) { // its parent was set back since it was given out
			d.since = now
			return
		}
		silent := max(d.since, w.watched(), takers)
		if former := w.books.of[l.Owner]; former != nil {
			silent = max(silent, former.hindered.beat)
		}
		w.within(silent, s.failover+2*s.beat, what, say)
	case "wished":
		w.within(max(ordered, owner.fromStore()), s.handoff+3*s.beat, "wish", say)
		worked := owner.hindered.handles[about(l.Stream, l.Shard)]
		if w.isLoop() { // a record is not given up before its turn
			for _, at := range owner.hindered.handles {
				worked = max(worked, at)
			}
		}
		w.within(max(d.since, owner.fromStore(), w.outage, owner.hindered.sink, worked), 3*s.beat, "wish, idle", say)
	case "read":
		since, left := w.judge.Waits(sh.Name)
		if left == 0 || owner.stopping {
			return
		}
		at := max(d.since, d.read, since.Sub(w.began).Nanoseconds(), owner.fromStore(), w.outage, owner.unread, owner.hindered.reads[about(l.Stream, l.Shard)], owner.hindered.reads[l.Stream], owner.hindered.sink, owner.hindered.handles[about(l.Stream, l.Shard)])
		may := 2*s.beat + s.idle + retryMax + 2*time.Second + w.crosses.waits()
		if w.killers != nil || w.isLoop() { // it may wait for records that others of the process try, or that kill every worker
			for _, worked := range owner.hindered.handles {
				at = max(at, worked)
			}
			may += w.patience()
			if w.killers != nil && w.letters == nil {
				may += killerPause
			}
		}
		if w.profile.Huge > 0 {
			at = max(at, owner.hindered.othersKeep(about(l.Stream, l.Shard)))
			may += w.inLine(owner)
		}
		// a consumer to find, a subscription that another has, and one that is refused for a while
		if w.reading == weir.FanOut {
			may += 20 * time.Second
		}
		w.within(at, may+w.held(), what, say)
	}
}

// unsettled: when nothing goes wrong any more, and handlers that began before have returned, and
// all workers that crashed have started again, there is progress until all is well.
func (w *world) unsettled(wrong string) {
	d, s := &w.duties, w.settings
	done := -w.judge.Missing()
	places := uint64(0)
	for key, l := range w.books.last {
		// Dropped records and expired ones that were read before count as missing no more, but the
		// checkpoint passes them.
		if w.filters != nil || w.counts[Trim] > 0 {
			places += stirred(stirred(0, key.String()), l.Position.String())
		}
		if l.Finished() {
			done++
		}
	}
	if done != d.done || places != d.places {
		d.done, d.places, d.late = done, places, w.now()
	}
	since := max(d.settle+int64(stillPutting), d.late)
	for _, st := range w.streams {
		since = max(since, w.learned(st))
		if st.anew > 0 {
			since = max(since, st.anew+int64(s.learnsOfStream()))
		}
	}
	for _, wk := range w.workers {
		if wk.life == nil || wk.life.stopping {
			since = w.now()
		} else {
			since = max(since, wk.life.began)
		}
	}
	may := callWithin + retryMax + s.failover + 4*s.beat + s.idle + w.patience() + w.held() + w.crosses.waits()
	if w.killers != nil && w.letters == nil { // a record that has killed its worker is handled again after a pause
		may += killerPause
	}
	if w.profile.Huge > 0 {
		longest := time.Duration(0)
		for _, wk := range w.workers {
			longest = max(longest, w.inLine(wk.life))
		}
		may += longest
	}
	if w.counts[ReaderStuck] > 0 || w.opensLess() {
		may += 2 * s.stall
	}
	w.within(since, may, "well", func() string { return wrong })
}

// killerPause is longer than the pause after a record has killed two workers that handled it by
// itself.
const killerPause = 5 * time.Minute

// readable reports whether a shard's parents are done, as far as the leases show.
func (w *world) readable(l *lease.Lease, sh *model.Shard) bool {
	for _, p := range sh.Parents {
		parent, known := w.books.last[lease.Key{Stream: l.Stream, Shard: p.ID}]
		if !known || !parent.Finished() || parent.Revoked != "" {
			return false
		}
	}
	return true
}
