package sim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/internal/proof/sim/model"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// sink is a database that all workers write to. It stores the effect of a record and the position
// in one transaction. Workers query it for the position at which reading starts. It can be restored
// from a backup.
type sink struct {
	at       map[string]weir.Position // positions by shard
	effects  []judge.ID               // records whose effects it contains, in order
	has      map[judge.ID]bool        // the same records
	lost     map[judge.ID]bool        // records that a restore removed and that are still missing
	epochs   map[string]uint64        // epoch of the last owner of each shard; for windows
	backups  []backup
	complete bool // it reports an unknown shard as empty
	ends     bool // it also stores the ends of shards
	// torn contains shards whose position was inside an aggregate that has expired. For windows by
	// payload time, it is not known which windows had ended there.
	torn map[string]bool

	// doubts means that the sink was restored or has returned a wrong position. A lease may then be
	// set back.
	doubts   bool
	moved    map[lease.Key]bool // leases that the current call has set back
	reopened map[lease.Key]bool // leases that were ever set back
	ledger   *ledger            // the rows of partitions; nil if the sink has none
}

// backup is an earlier state of a sink: the number of its effects, and its positions.
type backup struct {
	effects int
	at      map[string]weir.Position
	ledger  *ledger // nil without partitions
}

// makeSink creates the sink, if the application has one, and schedules backups.
func (w *world) makeSink() {
	if !w.profile.Sinks && (w.windows == nil || !w.windows.once) {
		return
	}
	d := roll(w.seed, "sink")
	w.sink = &sink{
		at: map[string]weir.Position{}, has: map[judge.ID]bool{}, lost: map[judge.ID]bool{}, epochs: map[string]uint64{}, complete: d.chance(.5), ends: d.chance(.5),
		moved: map[lease.Key]bool{}, reopened: map[lease.Key]bool{}, torn: map[string]bool{},
	}
	if w.crosses.has(featPartitions) { // package sink keeps no position of a shard before its first term
		w.sink.ledger, w.sink.complete, w.sink.ends = newLedger(), false, true
	}
	// Otherwise a dead-lettered record at the end of a shard would be read again and again.
	if w.profile.Letters {
		w.sink.ends = true
	}
	var again func()
	again = func() {
		if w.stage == faulty {
			w.sink.backups = append(w.sink.backups, backup{len(w.sink.effects), maps.Clone(w.sink.at), w.sink.ledger.clone()})
			w.after(d.span(5*time.Second, 40*time.Second), again)
		}
	}
	again()
}

// takes applies the first n records of a batch to the sink. It skips records that the sink already
// contains.
func (w *world) takes(h *handling, n int) {
	s := w.sink
	if s == nil || h.tx != nil { // a transaction is applied by its commit
		return
	}
	of := h.about
	for i, at := range h.positions[:n] {
		id := h.judge.IDs[i]
		behind := at.Compare(s.at[of]) > 0
		switch {
		case behind && s.has[id]:
			w.breaks("%s of %s is beyond what the sink has of that shard, and yet in it", id, of)
		case !behind && !s.has[id] && !w.gaveUp(id) && w.operator == nil && !w.judge.Exempted(id):
			w.breaks("the sink has %s up to %s, but not %s, which comes before", of, s.at[of], id)
		case behind:
			s.at[of], s.has[id], s.effects = at, true, append(s.effects, id)
			delete(s.lost, id)
		}
	}
	if h.judge.End && n == len(h.positions) && s.ends {
		s.at[of] = shard.End
	}
}

// expires notes that a record has expired. If the position of its shard is inside this record, an
// aggregate, the shard becomes torn.
func (s *sink) expires(of, number string) {
	at := s.at[of]
	s.torn[of] = s.torn[of] || at.SequenceNumber() == number && at.Done() != shard.Whole
}

// setsBack restores a backup of the sink. No worker may use the sink during that time, so all
// workers crash.
func (w *world) setsBack(id string, d *dice) {
	s := w.sink
	usable := slices.DeleteFunc(slices.Clone(s.backups), func(b backup) bool { return !s.complete && !w.tellsLost(b) })
	if len(usable) == 0 || !w.strikes(SetBack, id) {
		return
	}
	w.note(nil, "FAULT", "", 0, id)
	for _, l := range w.lives { // also handlers that are still running after their Run
		w.crash(l, string(SetBack))
	}
	b := usable[d.below(len(usable))]
	for _, lost := range s.effects[b.effects:] {
		delete(s.has, lost)
		s.lost[lost] = true
		// A COMMIT whose answer was lost may have stored a record that was then dead-lettered. weir
		// need not hand it over again.
		if w.gaveUp(lost) {
			continue
		}
		w.judge.Undone(lost, w.wall())
		if w.books.expired[lost] {
			w.judge.Exempt(lost)
		}
	}
	s.effects, s.at, s.doubts, s.ledger = s.effects[:b.effects], maps.Clone(b.at), true, b.ledger.clone()
	s.backups = slices.DeleteFunc(s.backups, func(other backup) bool { return other.effects > b.effects })
	w.faults(judge.Worker{}, 0)
}

// tellsLost reports whether weir can detect from the positions of a restored sink that records are
// lost. It is used for sinks that do not report unknown shards. For such a sink, weir detects the
// loss only if the sink contains the shard of each lost record, or an ancestor of that shard. The
// lost records include those that an earlier restore lost and that are still missing. Checkpoints
// have passed these records, so workers do not read them again.
func (w *world) tellsLost(b backup) bool {
	st := w.streams[0]
	known := map[string]bool{} // by name
	var knows func(sh *model.Shard) bool
	knows = func(sh *model.Shard) bool {
		return !b.at[about(st.name, sh.ID)].IsZero() || slices.ContainsFunc(sh.Parents, func(p *model.Shard) bool {
			// weir finds an ancestor by its lease, which goes when its records have expired.
			return knows(p) && (w.sink.ledger == nil || w.books.view.of(lease.Key{Stream: st.name, Shard: p.ID}) != nil)
		})
	}
	for _, sh := range st.now.Shards {
		known[sh.Name] = knows(sh)
		// Without its row, the lease decides where a shard begins, and an operator may have moved
		// it.
		if g := w.sink.ledger; g != nil && !known[sh.Name] && g.has(st.name, sh.ID) {
			return false
		}
	}
	unknown := func(id judge.ID) bool { return !known[w.books.home[id]] }
	for id := range w.sink.lost {
		if unknown(id) {
			return false
		}
	}
	return !slices.ContainsFunc(w.sink.effects[b.effects:], unknown)
}

// sinkCall queries the position of a shard, or opens a handler.
type sinkCall struct{ opens bool }

// sinkReply is the answer of the sink.
type sinkReply struct {
	at     weir.Position
	panics bool
}

// shardRun returns the function that runs a worker with ShardHandlers or a PullHandler. It sets
// l.pulls.
func (l *life) shardRun(consumer *weir.Consumer) func() error {
	if l.rows != nil {
		h := l.rows.Handlers(l.apply)
		h.Open = l.partitioned(h.Open)
		return func() error { return consumer.RunShards(l.ctx, h) }
	}
	position, idle := l.position, time.Duration(0)
	if c := l.w.crosses; c != nil {
		if !c.has(featPosition) {
			position = nil
		}
		if c.has(featIdleCalls) {
			idle = c.idle
		}
		l.pulls = c.has(featPullForm)
	} else {
		d := roll(l.w.seed, "pulls "+l.String())
		l.pulls = d.chance(.4)
	}
	if l.pulls {
		h := weir.PullHandler{Pull: l.pull, Idle: idle, Position: position}
		return func() error { return consumer.RunPull(l.ctx, h) }
	}
	h := weir.ShardHandlers{Open: l.open, Idle: idle, Position: position}
	return func() error { return consumer.RunShards(l.ctx, h) }
}

func (l *life) askSink(ctx context.Context, c *call) (weir.Position, error) {
	c.life, c.ctx = l, ctx
	r := l.w.gate.wait(c)
	if ctx.Err() != nil {
		return weir.Position{}, nil // this is not an answer either
	}
	said, _ := r.value.(sinkReply)
	if said.panics {
		panic("sim: the sink panics")
	}
	return said.at, r.err
}

func (l *life) position(ctx context.Context, stream, id string) (weir.Position, error) {
	return l.askSink(ctx, &call{op: "position", about: about(stream, id), body: sinkCall{}})
}

func (l *life) open(ctx context.Context, t weir.Term) (weir.ShardHandler, error) {
	if l.w.sink != nil {
		_, err := l.askSink(ctx, &call{op: "open", about: about(t.Stream, t.Shard), body: sinkCall{opens: true}})
		if err != nil {
			return nil, err
		}
	}
	return openHandler{l}, nil
}

type openHandler struct{ l *life }

func (h openHandler) Handle(ctx context.Context, b *weir.Batch) error { return h.l.handle(ctx, b) }
func (openHandler) Close(context.Context, event.EndReason)            {}

func (l *life) pull(ctx context.Context, s *weir.Puller) error {
	for b, err := range s.Batches() {
		if err != nil {
			return err
		}
		var last weir.Record // a copy, because the handler may change the batch
		n := len(b.Records)
		if n > 0 {
			last = b.Records[n-1]
		}
		d := roll(l.w.seed, "notes "+l.String()+b.Shard, b.Epoch, uint64(n))
		if err := l.handle(ctx, b); err != nil {
			return err
		}
		// If notes is false, a later call marks the records.
		notes := n > 0 && (d.chance(.7) || l.w.reuses && l.w.crosses != nil)
		if l.w.crosses.has(featHolds) {
			why := ""
			if !notes {
				why = "by the simulation"
			}
			s.Hold(why)
		}
		if notes {
			if err := b.Done(last); err != nil {
				return err
			}
		}
	}
	return nil
}

// positionTimeout is how long weir waits for a position.
const positionTimeout = 30 * time.Second

// admitSink decides the answer of the sink, and when it comes.
func (w *world) admitSink(c *call, asked sinkCall) {
	l, d := c.life, w.dice(c, "")
	there := d.often(time.Millisecond, 25*time.Millisecond)
	if l.paused > w.now() {
		there += time.Duration(l.paused - w.now())
	}
	if before, after := w.crashes(c); before || after {
		w.after(there, func() { w.crash(l, string(CrashWaits)) })
		return
	}
	kinds := []Fault{SinkFails, SinkHangs, SinkPanics, SinkLies}
	if asked.opens {
		kinds = kinds[:3]
	}
	f := w.pick(c, &d, kinds...)
	w.note(l, c.op, c.about, c.n, string(f))
	if f != "" {
		l.hindered.sink = max(l.hindered.sink, w.now()+int64(retryMax))
	}
	switch f {
	case SinkHangs:
		if asked.opens { // weir has no time limit for this call
			w.after(there+d.span(time.Second, positionTimeout), func() { w.answer(c, reply{value: sinkReply{}}) })
		}
	case SinkFails:
		w.after(there, func() { w.answer(c, reply{err: errSink}) })
	case SinkPanics:
		w.after(there, func() { w.answer(c, reply{value: sinkReply{panics: true}}) })
	default:
		w.after(there, func() {
			at := w.sink.says(c.about)
			// Reading cannot start at an end. Records that were pulled and not marked are delivered
			// again, from the checkpoint on.
			if at.IsEnd() && l.pulls {
				w.judge.Doubted(w.shardAbout(c.about))
			}
			if f == SinkLies {
				at = w.lies(c, &d)
			}
			w.answer(c, reply{value: sinkReply{at: at}})
		})
	}
}

// says returns the sink's position in a shard.
func (s *sink) says(of string) weir.Position {
	if at := s.at[of]; !at.IsZero() || !s.complete {
		return at
	}
	return weir.Oldest
}

// lies returns a wrong position: one that no sink can have, the beginning of the shard, or one of
// an unknown record. At worst, such a position causes records to be handled again.
func (w *world) lies(c *call, d *dice) weir.Position {
	switch d.below(3) {
	case 0:
		return weir.Latest
	case 1:
		w.sink.doubts = true
		w.judge.Doubted(w.shardAbout(c.about))
		w.faults(judge.Worker{}, 0)
		return weir.Oldest
	}
	at, err := shard.After("1")
	if err != nil {
		w.breaks("%v", err)
	}
	return at
}

// moves notes that a lease was set back.
func (w *world) moves(key lease.Key) {
	switch {
	case w.sink == nil || !w.sink.doubts && w.crosses == nil:
		w.breaks("the lease of %s is set back, and no sink is behind", key)
	default:
		w.sink.moved[key], w.sink.reopened[key] = true, true
	}
}

// sunk checks the final content of the sink.
func (w *world) sunk() {
	s := w.sink
	if s != nil && w.crosses != nil {
		for id := range w.books.home {
			if !s.has[id] && !w.filters.drops(id) && !w.judge.Exempted(id) && !w.gaveUp(id) && !w.isStray(id) {
				w.breaks("the sink has not got %s", id)
			}
		}
		return
	}
	if all := len(w.books.home) - w.droppedRecords() - w.straysTold(); s != nil && len(s.effects) != all {
		w.breaks("the sink has %d of %d records", len(s.effects), all)
	}
}

// gaveUp reports whether a record has a dead letter.
func (w *world) gaveUp(id judge.ID) bool { return w.letters != nil && w.letters.ids[id] != "" }

// isStray reports whether the function for strays has received a record.
func (w *world) isStray(id judge.ID) bool {
	if w.windows == nil || w.windows.payload == nil {
		return false
	}
	_, told := w.windows.payload.told[id]
	return told
}

// shardAbout returns the shard that a call is about.
func (w *world) shardAbout(about string) string {
	if stream, shard, other := strings.Cut(about, "/"); other {
		return nameOf(w.streamNamed(stream).now, shard)
	}
	return nameOf(w.streams[0].now, about)
}

// opensLess reports whether a worker can never read the leases. A worker with a sink needs them to
// open a shard.
func (w *world) opensLess() bool { return w.sink != nil && w.counts[LeaderStuck] > 0 }
