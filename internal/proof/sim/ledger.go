package sim

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	positions "github.com/weir-go/weir/sink"
)

// ledger contains the rows of a sink with partitions. Package sink decides about them. A
// transaction holds the lock of one row, waits for the driver at its beginning and its end, and
// takes effect at once. A restored ledger is a new one, so transactions of before have no effect.
type ledger struct {
	rows    map[positions.Key]positions.Row
	ended   map[string]bool                // shards whose end has taken effect
	passed  map[string]int                 // number of containers before the position of a shard
	locks   map[positions.Key]*transaction // transactions that hold the lock of a row
	waiting []*call                        // for a lock, the oldest first
}

func newLedger() *ledger {
	return &ledger{
		rows: map[positions.Key]positions.Row{}, ended: map[string]bool{}, passed: map[string]int{}, locks: map[positions.Key]*transaction{},
	}
}

// has reports whether there is a row of a shard.
func (g *ledger) has(stream, id string) bool {
	_, ok := g.rows[positions.Key{Stream: stream, Shard: id}]
	return ok
}

// clone returns a copy without locks.
func (g *ledger) clone() *ledger {
	if g == nil {
		return nil
	}
	made := newLedger()
	made.rows, made.ended, made.passed = maps.Clone(g.rows), maps.Clone(g.ended), maps.Clone(g.passed)
	return made
}

// transaction is one call of Update. The worker adds to it, and the driver commits it.
type transaction struct {
	of      *life
	in      *ledger // that it began in
	try     *attempt
	key     positions.Key
	set     map[positions.Key]positions.Row // rows after the commit
	made    map[positions.Key]positions.Row // rows that are added unless they exist
	prunes  bool
	keep    int         // with prunes: the rows of this number of partitions stay
	effects []*handling // calls of the handler whose effects are in it
	late    []*weir.Batch
	sent    bool // COMMIT is under way
	over    bool
}

// attempt is one call of the handler that weir called, which has transactions, or one of the
// destination of dead letters.
type attempt struct {
	first string          // distinguishes simultaneous calls of a worker about one row
	late  context.Context // the context of a frozen call, which continues after its end; else nil
	bads  []badRecord
}

type badRecord struct {
	*badly
	id string // of the record
}

func (t *transaction) isLate() bool { return t != nil && t.try != nil && t.try.late != nil }

// failsAt notes that the handler fails at a record. ids are the records that the handler got.
func (t *transaction) failsAt(bad *badly, b *weir.Batch, ids []judge.ID) {
	if t == nil || t.try == nil {
		return
	}
	of := *bad
	if bad.how == leavesOut {
		of.out = ids[bad.index:min(bad.index+bad.n, len(ids))]
	}
	t.try.bads = append(t.try.bads, badRecord{&of, b.Records[bad.index].ID()})
}

type rowsCall struct {
	key positions.Key
	tx  *transaction   // of begin and commit
	try *attempt       // nil for calls that are not simultaneous
	row *positions.Row // of Make
}

type rowsReply struct {
	rows   map[positions.Key]positions.Row
	row    positions.Row
	found  bool
	panics bool
}

func (w *world) aboutKey(k positions.Key) string { return about(k.Stream, k.Shard) }

var (
	ofRows   = []Fault{SinkFails, SinkHangs, SinkPanics}
	ofCommit = []Fault{SinkFails, SinkHangs, SinkPanics, SinkLost}
)

// admitRows decides the fate of a call of [positions.Rows].
func (w *world) admitRows(c *call, body *rowsCall) {
	l, d := c.life, w.dice(c, "")
	l.hindered.handles[c.about] = w.now()
	there := d.often(time.Millisecond, 25*time.Millisecond)
	if l.paused > w.now() {
		there += time.Duration(l.paused - w.now())
	}
	before, after := w.crashes(c)
	kinds := ofRows
	if c.op == "commit" {
		kinds = ofCommit
		body.tx.sent = true
	}
	f := w.pick(c, &d, kinds...)
	w.note(l, c.op, body.key.String(), c.n, string(f))
	if f != "" || c.op == "rows" {
		l.hindered.sink = max(l.hindered.sink, w.now()+int64(there+retryMax))
	}
	hangs := d.span(time.Second, positionTimeout)
	if f == SinkHangs {
		l.hindered.sink = max(l.hindered.sink, w.now()+int64(hangs+retryMax))
	}
	fails := reply{err: errSink}
	switch {
	case before:
		w.after(there, func() {
			w.crash(l, string(CrashWaits))
			if c.op == "commit" { // the server rolls back when the connection ends
				w.sink.ledger.release(w, body.tx)
			}
		})
		return
	case c.op == "commit":
		r := fails
		w.after(there, func() {
			switch {
			case f == SinkFails, f == SinkPanics, f == SinkHangs && d.chance(.5):
				w.sink.ledger.release(w, body.tx)
			case f == SinkHangs:
				w.after(hangs/2, func() { w.commits(body.tx, func() {}) })
			default:
				w.commits(body.tx, func() {
					switch {
					case after:
						w.crash(l, string(CrashWaits))
					case f == SinkLost:
						w.answer(c, fails)
					default:
						w.answer(c, reply{value: rowsReply{}})
					}
				})
				return
			}
			if f == SinkHangs {
				w.after(hangs, func() { w.answer(c, r) })
				return
			}
			if f == SinkPanics {
				r = reply{value: rowsReply{panics: true}}
			}
			w.answer(c, r)
		})
		return
	}
	w.after(there, func() {
		switch f {
		case SinkFails:
			w.answer(c, fails)
		case SinkPanics:
			w.answer(c, reply{value: rowsReply{panics: true}})
		case SinkHangs:
			w.after(hangs, func() { w.answer(c, fails) })
		default:
			w.answersRows(c, body)
		}
		if after {
			w.crash(l, string(CrashWaits))
		}
	})
}

// answersRows carries out Read, Make, or the beginning of a transaction.
func (w *world) answersRows(c *call, body *rowsCall) {
	g := w.sink.ledger
	switch {
	case c.life.dead.Load() || c.gone.Load() && c.op == "begin":
	case c.op == "begin":
		g.locksFor(w, c)
	case body.row != nil:
		if _, known := g.rows[body.key]; !known {
			g.rows[body.key] = *body.row
			w.sees(body.key.Stream, body.key.Shard)
		}
		w.answer(c, reply{value: rowsReply{}})
	default:
		all := map[positions.Key]positions.Row{}
		for k, r := range g.rows {
			if k.Stream == body.key.Stream && k.Shard == body.key.Shard {
				all[k] = r
			}
		}
		w.answer(c, reply{value: rowsReply{rows: all}})
	}
}

// locksFor gives a transaction the lock of its row, or lets it wait.
func (g *ledger) locksFor(w *world, c *call) {
	t := c.body.(*rowsCall).tx
	switch {
	case t.over || c.over || c.gone.Load() || c.life.dead.Load():
	case g.locks[t.key] != nil:
		g.waiting = append(g.waiting, c)
	default:
		g.locks[t.key], t.in = t, g
		row, found := g.rows[t.key]
		w.answer(c, reply{value: rowsReply{row: row, found: found}})
	}
}

// release rolls back what a transaction has not committed, and gives its lock to the next one.
func (g *ledger) release(w *world, t *transaction) {
	if g == nil || t.over {
		return
	}
	t.over = true
	if g.locks[t.key] != t {
		return
	}
	delete(g.locks, t.key)
	if i := slices.IndexFunc(g.waiting, func(c *call) bool { return c.body.(*rowsCall).key == t.key && !c.gone.Load() && !c.life.dead.Load() }); i >= 0 {
		c := g.waiting[i]
		g.waiting = slices.Delete(g.waiting, i, i+1)
		w.after(time.Millisecond, func() { g.locksFor(w, c) })
	}
}

// ends notes that a worker is done with a transaction. A COMMIT that is under way continues.
func (g *ledger) ends(w *world, t *transaction) {
	if !t.sent {
		g.release(w, t)
	}
}

// crashes rolls back the transactions of a worker that has crashed.
func (g *ledger) crashes(w *world, l *life) {
	if g == nil {
		return
	}
	held := slices.SortedFunc(maps.Keys(g.locks), func(a, b positions.Key) int {
		if a.String() < b.String() {
			return -1
		}
		return 1
	})
	for _, k := range held {
		if t := g.locks[k]; t.of == l && !t.sent {
			g.release(w, t)
		}
	}
}

// commits commits a transaction, and calls then. It waits for the locks of rows that it removes.
func (w *world) commits(t *transaction, then func()) {
	g := w.sink.ledger
	if t.over || t.in != g {
		then()
		return
	}
	removes := func(k positions.Key) bool {
		return t.prunes && k.Stream == t.key.Stream && k.Shard == t.key.Shard && k.Of > 0 && k.Of != t.keep
	}
	for k := range g.locks {
		if removes(k) {
			w.after(5*time.Millisecond, func() { w.commits(t, then) })
			return
		}
	}
	for k, r := range t.set {
		if was := g.rows[k].Epoch; r.Epoch < was {
			w.breaks("an owner with epoch %d, which is too late, writes the row of %s, whose epoch is %d", r.Epoch, k, was)
		}
		g.rows[k] = r
	}
	for k, r := range t.made {
		if _, known := g.rows[k]; !known {
			g.rows[k] = r
		}
	}
	maps.DeleteFunc(g.rows, func(k positions.Key, _ positions.Row) bool { return removes(k) })
	w.note(t.of, "committed", t.key.String(), 0, g.rows[t.key].At.String())
	for _, h := range t.effects {
		w.gains(h.judge, t)
	}
	for _, b := range t.late {
		late := &judge.Batch{Worker: t.of.who, Epoch: b.Epoch, End: b.End}
		for _, r := range b.Records {
			id, _ := w.handledID(r)
			late.IDs, late.Shard = append(late.IDs, id), w.books.home[id]
		}
		if late.Shard == "" {
			late.Shard = w.books.shardAt(w.aboutKey(t.key), b.Epoch)
		}
		w.gains(late, t)
	}
	w.sees(t.key.Stream, t.key.Shard)
	g.release(w, t)
	then()
}

// gains checks and notes the effects of a call of the handler.
func (w *world) gains(b *judge.Batch, t *transaction) {
	s := w.sink
	for _, id := range b.IDs {
		if s.has[id] {
			w.breaks("%s takes effect twice in the sink, now by %s with epoch %d in %s", id, b.Worker, b.Epoch, t.key)
		}
		for n := 1; n < id.N; n++ {
			if before := (judge.ID{Key: id.Key, N: n}); !w.isStored(before) {
				w.breaks("%s takes effect in %s before %s", id, t.key, before)
			}
		}
		s.has[id], s.effects = true, append(s.effects, id)
		delete(s.lost, id)
	}
	if of := w.aboutKey(t.key); b.End {
		// The sink is not at the end of a shard whose last records were dead-lettered. If they are
		// read again after a reset, the end comes again.
		if s.ledger.ended[of] && !slices.ContainsFunc(w.books.kept[b.Shard], func(c container) bool { return slices.ContainsFunc(c.ids, w.gaveUp) }) {
			w.breaks("the end of %s takes effect twice", of)
		}
		s.ledger.ended[of] = true
	}
	w.judge.Done(b, len(b.IDs), w.wall())
	w.noteFinished(t.of, b.IDs)
}

// isStored reports whether the sink has a record, or need not have it.
func (w *world) isStored(id judge.ID) bool {
	_, put := w.books.home[id]
	return w.sink.has[id] || !put || w.books.early[id] || w.filters.drops(id) || w.judge.Exempted(id) || w.gaveUp(id)
}

// sees notes the position of a shard in the sink, and checks that the sink has all records before
// it.
func (w *world) sees(stream, id string) {
	g, of, key := w.sink.ledger, about(stream, id), positions.Key{Stream: stream, Shard: id}
	row := g.rows[key]
	at := row.At
	w.sink.at[of] = at
	if row.Ended {
		w.sink.at[of] = endOfShard
	}
	if !row.Split {
		for k := range g.rows {
			if k.Stream == stream && k.Shard == id && k.Of > 0 {
				w.breaks("the sink keeps the row %s, although %s has no partitions any more", k, of)
			}
		}
	}
	st := w.streamNamed(stream)
	if st == nil || st.now == nil {
		return
	}
	kept := w.books.kept[nameOf(st.now, id)]
	for ; g.passed[of] < len(kept); g.passed[of]++ {
		c := kept[g.passed[of]]
		last, err := endOf(c)
		if err != nil {
			w.breaks("%v", err)
			return
		}
		if !row.Ended && (at.SequenceNumber() == "" || last.Compare(at) > 0) {
			return
		}
		for _, id := range c.ids {
			if !w.isStored(id) {
				w.breaks("the position %s of %s in the sink passes %s, which it has not got", at, of, id)
				return
			}
		}
	}
}
