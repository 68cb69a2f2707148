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

// Workers have duties at all times. The leader must assign free leases. An owner must answer a
// request for a handoff, read its shards, and leave when it stops. A duty is overdue if it has
// lasted longer than its limit and nothing hindered the worker. Hindrances are recorded where the
// fate of a worker is decided. Examples are a failed call to the store, a failed read, and a
// running handler.

// duty is a duty that concerns a shard or a worker.
type duty struct {
	what  string
	epoch uint64
	heir  string
	by    *life
	since int64

	reading reading // what the answers to the owner have read since then
	read    int64   // when these answers last were progress
	line    line
}

// duties contains the current duties and when they began.
type duties struct {
	leases      map[lease.Key]*duty
	leader      string
	leaderSince int64
	leaderless  int64 // since when there is no leader; 0 while there is one
	followed    int64 // when the previous leader stopped leading
	missing     map[*model.Shard]int64
	former      map[*model.Shard]bool // shards whose name belonged to another shard, in a deleted stream
	settle      int64                 // time of the last fault
	// late is the last time at which the application made progress, or at which an effect of a
	// fault still lasted. The time limit of unsettled does not begin before late.
	late   int64
	places uint64             // hash of the checkpoints, if records are dropped
	done   int                // number of finished leases minus number of missing records
	worst  map[string]float64 // largest used part of each limit
	line   line               // longest line of all workers
}

func newDuties() duties {
	return duties{leases: map[lease.Key]*duty{}, missing: map[*model.Shard]int64{}, former: map[*model.Shard]bool{}, worst: map[string]float64{}}
}

// hindered contains the recent hindrances of a life. Unless a field has another comment, it is the
// time until which the hindrance excuses the life from its duties.
type hindered struct {
	store int64
	beat  int64 // when a heartbeat last took effect, possibly long after a crash
	begun int64 // when the first heartbeat took effect, of the life or of a session after a restart
	// leaving is the time since which its heartbeats report that the session ends, or 0.
	leaving int64
	// unbeaten is like store, but only for heartbeats. After an outage, the next successful
	// heartbeat restarts the time after which the leader resigns.
	unbeaten int64
	resigned int64
	stopping int64 // since when the life has been stopping
	sink     int64 // until when it queries the sink, or waits before the next query
	reads    map[string]int64
	handles  map[string]int64 // when a handler of a shard was last running
}

func newHindered() hindered { return hindered{reads: map[string]int64{}, handles: map[string]int64{}} }

// keepsFromStore notes that a call to the store may be delayed for the duration d, or fail by then.
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

// keepsFromReading notes that a call about a shard or stream may be delayed for the duration d, or
// fail by then.
func (w *world) keepsFromReading(l *life, about string, d time.Duration) {
	l.hindered.reads[about] = max(l.hindered.reads[about], w.now()+int64(d))
	if w.sink != nil { // the leases of ancestors are read for the sink too
		l.hindered.sink = max(l.hindered.sink, w.now()+int64(d))
	}
}

// callWithin is the time limit of a call to Kinesis.
const callWithin = 20 * time.Second

// fromStore returns the time until which a life is excused from duties that need the store.
func (l *life) fromStore() int64 { return max(l.hindered.store, l.paused, l.cutOff) }

// runs returns the life of a session. It also reports whether that life is running.
func (w *world) runs(session string) (*life, bool) {
	l := w.books.of[session]
	return l, l != nil && l.of.life == l && !l.dead.Load() && l.session == session
}

// ready returns the time since which some worker could take leases. With lead, it is the time since
// which some worker could become the leader. It is in the far future if no worker can.
func (w *world) ready(lead bool) int64 {
	return w.readyOf(lead, func(*life) bool { return true })
}

// readyOf is like ready, but considers only the lives that the function may accepts.
func (w *world) readyOf(lead bool, may func(*life) bool) int64 {
	since := int64(math.MaxInt64)
	for _, wk := range w.workers {
		l := wk.life
		if l == nil || l.ends() || l.session == "" || !may(l) {
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

// bound converts a limit to nanoseconds of the slowest clock, with a margin for calls.
func bound(d time.Duration) int64 { return int64(d)*21/20 + int64(500*time.Millisecond) }

// within reports a violation if a duty has lasted longer than its limit d. It also records the
// largest part of the limit that a duty of this kind has used.
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
			} else {
				w.restartsInTime(l)
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
		if leader != nil { // also if the leader resigns later
			d.leaderless = max(d.leaderless, leader.hindered.beat, leader.hindered.unbeaten)
		}
		w.within(max(d.leaderless, w.ready(true)), s.failover+3*s.beat, "leader", func() string { return "no worker leads" })
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

// bars notes the time from which the leader's calls to the store fail. That is now. If one of these
// calls is in progress, it is half of the failover time later, when that call has ended.
func (w *world) bars(l *life) {
	l.barred = w.now()
	if slices.ContainsFunc(l.parked, func(c *call) bool { return c.op == "view" || c.op == "apply" }) {
		l.barred += int64(w.settings.failover / 2)
	}
}

// stepsDown checks that a leader resigns soon if only its heartbeats succeed.
func (w *world) stepsDown() {
	l, runs := w.runs(w.leader)
	if !runs || l.leads <= w.now() || l.ends() {
		return
	}
	since := max(l.barred, w.duties.leaderSince, l.hindered.unbeaten, l.hindered.begun, l.paused, l.cutOff, w.outage)
	if l.leads == math.MaxInt64 || l.leads > l.cutOff {
		w.within(since, w.settings.failover+3*w.settings.beat, "step down", func() string { return l.String() + " leads, and cannot look or act," })
	}
}

// watched returns the time from which the current leader must know how long each session has been
// silent. The leader already watched the sessions as a follower. So this time is the end of the
// previous leadership, not the beginning of the current one. A fault that hindered the leader at
// that time also hindered its watching.
func (w *world) watched() int64 {
	leader, leads := w.runs(w.leader)
	if !leads || leader.leads == math.MaxInt64 {
		return math.MaxInt64
	}
	since := w.duties.followed
	if leader.older { // it starts to watch only when it leads
		since = w.duties.leaderSince
	}
	if until := leader.hindered.resigned; until > since { // it may not lead again before that time
		since = max(since, min(until, w.duties.leaderSince))
	}
	return max(since, leader.hindered.begun, leader.fromStore(), leader.leads, w.outage)
}

// overdueOf checks the duties about one stream.
func (w *world) overdueOf(st *stream, led, takers int64) {
	d := &w.duties
	for sh := range st.shards() {
		key := lease.Key{Stream: st.name, Shard: sh.ID}
		l, known := w.books.last[key]
		switch {
		case !known:
			delete(d.leases, key)
			w.unborn(st, sh, led)
		case w.streamOf(&l) == nil: // a lease of a deleted stream is in the way
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

// noteHandlers notes which shards have a running handler. It also notes whether user code that
// began before the end of the faults is still running.
func (w *world) noteHandlers(l *life) {
	for _, c := range l.parked {
		if c.op == "position" || c.op == "open" {
			l.hindered.sink = max(l.hindered.sink, w.now()+int64(retryMax))
		} else if c.op == "hook" { // Run waits for it after everything else has ended
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

// leavesInTime checks that a stopped worker ends soon after its handlers have returned and it has
// left the store.
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

// unborn checks that a shard without a lease gets one in time: when its parents end, or with the
// next listing.
func (w *world) unborn(st *stream, sh *model.Shard, led int64) {
	d, s := &w.duties, w.settings
	if w.amid() { // the session that ended its parents is about to create the lease
		delete(d.missing, sh)
		return
	}
	// The worker that finished a parent creates the lease, either at the parent's end or when the
	// parent has left the stream.
	named := false
	for _, p := range sh.Parents {
		l, known := w.books.last[lease.Key{Stream: st.name, Shard: p.ID}]
		switch {
		case !known && p.GoneAt.IsZero(), known && !l.Finished():
			delete(d.missing, sh) // the shard waits for the parent
			return
		case known && w.streamOf(&l) != nil && l.Epoch > 1:
			// A worker finished this parent. A lease that is finished at epoch 1 never had an
			// owner: it was created as finished, because the shard ended before the start.
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

// owed checks the duties about an unfinished lease of an existing shard.
func (w *world) owed(l *lease.Lease, sh *model.Shard, led, takers int64) {
	s, now := w.settings, w.now()
	owner, runs := w.runs(l.Owner)
	what := "free"
	switch {
	case l.Owner == "" && l.Revoked != "":
		what = "revoked"
	case l.Owner == "":
	case !runs, owner.goodbye: // a worker that left with an error returns nothing any more
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
	// Copy l for the closure, so that l itself stays on the stack.
	say := func() string { return fmt.Sprintf("%s (%s)", *l, what) }
	ordered := max(d.since, led, takers)
	switch what {
	case "free":
		// If the application starts at the tip or at a time, no lease is assigned before the leader
		// has listed the stream.
		if leader := w.books.of[w.leader]; leader != nil && (w.starts.Kind() == shard.Tip || w.starts.Kind() == shard.Time) {
			ordered = max(ordered, leader.unread, leader.hindered.reads[l.Stream])
		}
		switch leader := w.books.of[w.leader]; {
		case !w.readable(l, sh):
			d.since = now
		// If the leader does not read the stream, no lease is assigned before a worker that reads
		// the stream has listed it.
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
		// The lease of a parent was set back to an earlier position after this lease was assigned.
		// No worker gets this lease before the parent is finished again.
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
		if w.isLoop() { // a record is not dead-lettered before its turn
			for _, at := range owner.hindered.handles {
				worked = max(worked, at)
			}
		}
		w.within(max(d.since, owner.fromStore(), w.outage, owner.hindered.sink, worked), 3*s.beat, "wish, idle", say)
	case "read":
		since, left := w.judge.Waits(sh.Name)
		if left == 0 || owner.ends() {
			return
		}
		at := max(d.since, d.read, since.Sub(w.began).Nanoseconds(), owner.fromStore(), w.outage, owner.unread, owner.hindered.reads[about(l.Stream, l.Shard)], owner.hindered.reads[l.Stream], owner.hindered.sink, owner.hindered.handles[about(l.Stream, l.Shard)])
		may := 2*s.beat + s.idle + retryMax + 2*time.Second + w.crosses.waits()
		// Handlers of other shards may delay the record. A loop handles the records of all shards
		// one by one. A record that may kill its worker may have to be the only one that the
		// process tries.
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
		// The worker may first have to find the fan-out consumer. Another subscription may exist,
		// or Kinesis may refuse a subscription for a while.
		if w.reading == weir.FanOutRegister {
			may += 20 * time.Second
		}
		w.within(at, may+w.held(), what, say)
	}
}

// readable reports whether the parents of a shard are finished, according to their leases.
func (w *world) readable(l *lease.Lease, sh *model.Shard) bool {
	for _, p := range sh.Parents {
		parent, known := w.books.last[lease.Key{Stream: l.Stream, Shard: p.ID}]
		if !known || !parent.Finished() || parent.Revoked != "" {
			return false
		}
	}
	return true
}
