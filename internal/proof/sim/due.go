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

// Workers always have duties: the leader must assign free leases, an owner must answer a handoff
// request, read, or leave when it stops. A duty is overdue if it has lasted longer than its limit
// while nothing hindered its worker. Hindrances are recorded where a worker's fate is decided: a
// failed call to the store, a failed read, a running handler.

// duty is a duty about a shard or a worker.
type duty struct {
	what  string
	epoch uint64
	heir  string
	by    *life
	since int64

	reading reading // the answers to its owner since then
	read    int64   // when they last were progress
	line    line
}

// duties are the current duties, with their start times.
type duties struct {
	leases      map[lease.Key]*duty
	leader      string
	leaderSince int64
	leaderless  int64 // since when, 0 while there is a leader
	followed    int64 // until when the previous leader led
	missing     map[*model.Shard]int64
	former      map[*model.Shard]bool // another shard had its name, in a deleted stream
	settle      int64                 // time of the last fault
	// when something from before was last in flight, or was completed
	late   int64
	places uint64             // a hash of the checkpoints, if records are dropped
	done   int                // records minus missing ones, and shards
	worst  map[string]float64 // the largest used part of each limit
	line   line               // the longest of all workers
}

func newDuties() duties {
	return duties{leases: map[lease.Key]*duty{}, missing: map[*model.Shard]int64{}, former: map[*model.Shard]bool{}, worst: map[string]float64{}}
}

// hindered contains recent hindrances of a life, as times until which they explain that nothing
// happens.
type hindered struct {
	store int64
	beat  int64 // when a heartbeat last took effect, perhaps long after a crash
	begun int64 // when its first heartbeat took effect
	// like store, for its heartbeats alone: the next success restarts a leader's own watchdog
	unbeaten int64
	resigned int64
	stopping int64 // since when it stops
	sink     int64 // it queries the sink, or waits before the next query
	reads    map[string]int64
	handles  map[string]int64 // when a handler was last running
}

func newHindered() hindered { return hindered{reads: map[string]int64{}, handles: map[string]int64{}} }

// keepsFromStore records that a call to the store fails, and takes this long.
func (w *world) keepsFromStore(c *call, d time.Duration) {
	if c.op == "leave" { // the worker retries it for this long
		d = max(d, w.settings.failover)
	}
	h, until := &c.life.hindered, w.now()+int64(d+w.settings.beat)
	h.store = max(h.store, until)
	if c.op == "beat" {
		h.unbeaten = max(h.unbeaten, until)
	}
}

// keepsFromReading records that a call about a shard or a stream fails.
func (w *world) keepsFromReading(l *life, about string, d time.Duration) {
	l.hindered.reads[about] = max(l.hindered.reads[about], w.now()+int64(d))
	if w.sink != nil { // ancestors are read for it, too
		l.hindered.sink = max(l.hindered.sink, w.now()+int64(d))
	}
}

// callWithin limits how long a call to Kinesis may hang.
const callWithin = 20 * time.Second

// fromStore returns until when a life is excused from duties that need the store.
func (l *life) fromStore() int64 { return max(l.hindered.store, l.paused, l.cutOff) }

// runs reports whether a session belongs to a running worker.
func (w *world) runs(session string) (*life, bool) {
	l := w.books.of[session]
	return l, l != nil && l.of.life == l && !l.dead.Load() && l.session == session
}

// ready returns since when a worker could take assigned leases, or the lead; none if no worker can.
func (w *world) ready(lead bool) int64 {
	return w.readyOf(lead, func(*life) bool { return true })
}

// readyOf is ready for the lives for which may returns true.
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

// tick checks for overdue duties from time to time.
func (w *world) tick() {
	if w.stage == over {
		return
	}
	w.overdue()
	w.after(w.settings.beat/2, w.tick)
}

// bound returns a duration by the slowest clock, with a margin for calls.
func bound(d time.Duration) int64 { return int64(d)*21/20 + int64(500*time.Millisecond) }

// within reports a violation if a duty has lasted too long, and otherwise records how near that
// was.
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
		if leader != nil { // also if it resigns later
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

// bars records that the leader's calls to the store fail from now on, or from the end of its
// current call.
func (w *world) bars(l *life) {
	l.barred = w.now()
	if slices.ContainsFunc(l.parked, func(c *call) bool { return c.op == "view" || c.op == "apply" }) {
		l.barred += int64(w.settings.failover / 2)
	}
}

// stepsDown checks that a leader resigns soon if only its heartbeats succeed.
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

// watched returns since when the present leader must know how long each session has been silent. It
// has watched as a follower, so the end of the previous leader counts, not its own beginning.
// Hindrances at that time also hindered its watch.
func (w *world) watched() int64 {
	leader, leads := w.runs(w.leader)
	if !leads || leader.leads == math.MaxInt64 {
		return math.MaxInt64
	}
	since := w.duties.followed
	if leader.older { // it begins to watch when it leads
		since = w.duties.leaderSince
	}
	if until := leader.hindered.resigned; until > since { // it may not lead again until then
		since = max(since, min(until, w.duties.leaderSince))
	}
	return max(since, leader.hindered.begun, leader.fromStore(), leader.leads, w.outage)
}

// overdueOf checks the duties about a stream.
func (w *world) overdueOf(st *stream, led, takers int64) {
	d := &w.duties
	for sh := range st.shards() {
		key := lease.Key{Stream: st.name, Shard: sh.ID}
		l, known := w.books.last[key]
		switch {
		case !known:
			delete(d.leases, key)
			w.unborn(st, sh, led)
		case w.streamOf(&l) == nil: // a lease of a deleted stream blocks
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

// noteHandlers records which shards have a running handler, and whether user code from before the
// end of the faults is still running.
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

// leavesInTime checks that a stopped worker has ended after its handlers have returned and it has
// left.
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

// unborn checks that a shard without a lease gets one when its parents end, or with the next
// listing.
func (w *world) unborn(st *stream, sh *model.Shard, led int64) {
	d, s := &w.duties, w.settings
	if w.amid() { // the session that ended its parents is about to create it
		delete(d.missing, sh)
		return
	}
	// by the worker that finished a parent: at its end, or when that had left the stream
	named := false
	for _, p := range sh.Parents {
		l, known := w.books.last[lease.Key{Stream: st.name, Shard: p.ID}]
		switch {
		case !known && p.GoneAt.IsZero(), known && !l.Finished():
			delete(d.missing, sh) // the shard waits for that
			return
		case known && w.streamOf(&l) != nil && l.Epoch > 1:
			// No worker finished a tombstone from before the start.
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

// owed checks the duties of an unfinished lease of an existing shard.
func (w *world) owed(l *lease.Lease, sh *model.Shard, led, takers int64) {
	s, now := w.settings, w.now()
	owner, runs := w.runs(l.Owner)
	what := "free"
	switch {
	case l.Owner == "" && l.Revoked != "":
		what = "revoked"
	case l.Owner == "":
	case !runs, owner.goodbye: // a worker that has left without success returns nothing any more
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
	// A copy, so that l stays on the stack.
	say := func() string { return fmt.Sprintf("%s (%s)", *l, what) }
	ordered := max(d.since, led, takers)
	switch what {
	case "free":
		// No lease is assigned before a leader has listed the stream.
		if leader := w.books.of[w.leader]; leader != nil && (w.starts.Kind() == shard.Tip || w.starts.Kind() == shard.Time) {
			ordered = max(ordered, leader.unread, leader.hindered.reads[l.Stream])
		}
		switch leader := w.books.of[w.leader]; {
		case !w.readable(l, sh):
			d.since = now
		// no lease is assigned before a reader has listed the stream
		case leader != nil && !leader.reads(l.Stream):
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
		// its parent was set back after it was assigned
		if !w.readable(l, sh) && (w.sink != nil || w.profile.Rates[Resets] > 0) {
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
		// it may wait for records that others of the process try, or that kill every worker
		if w.killers != nil || w.isLoop() {
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
			may += d.line.inLine(at, w.shardsOf(owner))
		}
		// A consumer may have to be found, a subscription may be taken, or refused for a while.
		if w.reading == weir.FanOut {
			may += 20 * time.Second
		}
		w.within(at, may+w.held(), what, say)
	}
}

// unsettled checks for progress until all is well, after the faults have ended, earlier handlers
// have returned, and all crashed workers have restarted.
func (w *world) unsettled(wrong string) {
	d, s := &w.duties, w.settings
	done := -w.judge.Missing()
	places := uint64(0)
	for key, l := range w.books.last {
		// Dropped records, and expired ones that were read before, are not missing any more, but
		// the checkpoint passes them.
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
	// a record that has killed its worker is handled again after a pause
	if w.killers != nil && w.letters == nil {
		may += killerPause
	}
	if w.profile.Huge > 0 {
		most := 0
		for _, wk := range w.workers {
			most = max(most, w.shardsOf(wk.life))
		}
		may += d.line.inLine(since, most)
	}
	if w.counts[ReaderStuck] > 0 || w.opensLess() {
		may += 2 * s.stall
	}
	w.within(since, may, "well", func() string { return wrong })
}

// killerPause is longer than the pause after a record has killed two workers that handled it alone.
const killerPause = 5 * time.Minute

// readable reports whether a shard's parents are done according to the leases.
func (w *world) readable(l *lease.Lease, sh *model.Shard) bool {
	for _, p := range sh.Parents {
		parent, known := w.books.last[lease.Key{Stream: l.Stream, Shard: p.ID}]
		if !known || !parent.Finished() || parent.Revoked != "" {
			return false
		}
	}
	return true
}
