package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/shard"
	positions "github.com/weir-go/weir/sink"
)

// This file contains the worker's side of a sink with partitions. Package sink is real, and its
// database is the ledger of the driver.

// endOfShard is the position of a shard that has ended.
var endOfShard = shard.End

// endOf returns the position after a container.
func endOf(c container) (shard.Position, error) { return shard.Part(c.number, shard.Whole) }

// isSimple reports whether handlers may note progress, because no transaction determines it.
func (s *sink) isSimple() bool { return s == nil || s.ledger == nil }

// makeRows draws the number of partitions of a life, and makes its sink.
func (l *life) makeRows() {
	if l.w.sink.isSimple() {
		return
	}
	d := roll(l.w.seed, "partitions "+l.String())
	l.parts = []int{0, 2, 3, 16}[d.below(4)]
	var err error
	if l.rows, err = positions.New(rows{l}, positions.Options{Partitions: l.parts}); err != nil {
		l.w.breaks("the options of the sink are refused: %v", err)
	}
}

// concurrency returns the value of Options.Concurrency.
func (w *world) concurrency(l *life) weir.Concurrency {
	if l.rows != nil && l.parts == 0 { // RunShards refuses it
		return weir.Concurrency{}
	}
	return w.parallel
}

// partitionsOf returns the number of batches of a shard that a life may handle at the same time, or
// 0 if partitions do not decide that.
func (w *world) partitionsOf(l *life) int {
	if l.rows == nil {
		return 0
	}
	return max(l.parts, 1)
}

// misplaced describes what is wrong with a record that a transaction is to apply, or returns "".
func (w *world) misplaced(h *handling, id judge.ID, key string) string {
	b := h.judge
	switch {
	case h.tx == nil:
	case w.sink.has[id]:
		return "which the sink has already"
	case shard.Partition(key, b.Partitions) != b.Partition:
		return fmt.Sprintf("in partition %d of %d, where its key is not", b.Partition, b.Partitions)
	}
	return ""
}

// movesPastLetters reports whether the destination of dead letters is that of a sink with
// partitions, in half of the applications that have one.
func (w *world) movesPastLetters() bool {
	d := roll(w.seed, "letters of the sink")
	return !w.sink.isSimple() && d.chance(.5)
}

// letters returns the destination of dead letters.
func (l *life) letters() deadletter.Destination {
	to := deadletter.Destination(deadletter.Func(l.put))
	if l.w.movesPastLetters() {
		to := l.rows.Letters(to)
		return deadletter.Func(func(ctx context.Context, all []deadletter.Letter) error {
			return to.Put(context.WithValue(ctx, attemptKey{}, &attempt{first: all[0].ID}), all)
		})
	}
	return to
}

type attemptKey struct{}

// partitioned returns a function that opens the handlers of open, and watches their calls.
func (l *life) partitioned(open func(context.Context, weir.Term) (weir.ShardHandler, error)) func(context.Context, weir.Term) (weir.ShardHandler, error) {
	return func(ctx context.Context, t weir.Term) (weir.ShardHandler, error) {
		h, err := open(ctx, t)
		if err != nil {
			return nil, err
		}
		return &partitioned{ShardHandler: h, l: l, busy: map[int]bool{}, seen: map[int]bool{}}, nil
	}
}

// partitioned is the handler of a term. It checks which calls weir makes at the same time.
type partitioned struct {
	weir.ShardHandler
	l    *life
	mu   sync.Mutex   // guards busy
	busy map[int]bool // partitions with a running call
	seen map[int]bool // partitions that had a call
}

// begins notes a call. It describes what is wrong with the call, or returns "".
func (h *partitioned) begins(b *weir.Batch) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	others := len(h.busy)
	twice := h.busy[b.Partition]
	h.busy[b.Partition] = true
	switch {
	case twice:
		return fmt.Sprintf("two calls for partition %d of %s at once", b.Partition, b.Shard)
	// While a record is suspected of killing workers, records are handled one by one, and the last
	// one may have the end.
	case b.End && (others > 0 || h.l.parts > 0 && len(b.Records) > 0 && h.l.w.killers == nil):
		return fmt.Sprintf("the end of %s, with %d records of partition %d, while %d calls run", b.Shard, len(b.Records), b.Partition, others)
	}
	return ""
}

// isFirst reports whether a call is the first one of its partition in this term.
func (h *partitioned) isFirst(b *weir.Batch) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() { h.seen[b.Partition] = true }()
	return !h.seen[b.Partition]
}

func (h *partitioned) ends(b *weir.Batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.busy, b.Partition)
}

// failedCall tells the driver that a call of the handler has failed. Handlers of package sink may
// fail without a call of the function that applies the records.
type failedCall struct {
	batch *judge.Batch
	data  [][]byte // of the records
	bad   *badly
	wrong string // what is wrong with the call, which has only begun
}

type frozenCall struct{ first string }

// Handle calls the handler of package sink.
func (h *partitioned) Handle(ctx context.Context, b *weir.Batch) (err error) {
	l, try := h.l, &attempt{first: fmt.Sprint(b.Partition)}
	records := slices.Clone(b.Records)
	if wrong := h.begins(b); wrong != "" {
		l.w.gate.tell(&call{life: l, op: "failed", about: about(b.Stream, b.Shard), ctx: l.ctx, body: failedCall{wrong: wrong}})
	}
	defer h.ends(b)
	defer func() {
		p := recover()
		if p != nil {
			err, _ = p.(error)
		}
		if err != nil || p != nil {
			l.failed(b, records, try.reason(err, records))
		}
		if p != nil {
			panic(p)
		}
	}()
	if l.w.freezes(l, b, h.isFirst(b)) {
		try.late = ctx
		if r := l.w.gate.wait(&call{life: l, op: "frozen", about: about(b.Stream, b.Shard), ctx: ctx, deaf: true, body: frozenCall{try.first}}); r.err != nil {
			return r.err
		}
		ctx = context.WithoutCancel(ctx)
	}
	return h.ShardHandler.Handle(context.WithValue(ctx, attemptKey{}, try), b)
}

func (l *life) failed(b *weir.Batch, records []weir.Record, bad *badly) {
	f := failedCall{batch: &judge.Batch{Worker: l.who, Epoch: b.Epoch}, bad: bad}
	for _, r := range records {
		f.data = append(f.data, r.Data)
	}
	l.w.gate.tell(&call{life: l, op: "failed", about: about(b.Stream, b.Shard), ctx: l.ctx, body: f})
}

// reason returns the failure of the handler that an error is from, with the index of its record in
// a batch of weir. It returns nil if the database failed.
func (a *attempt) reason(err error, records []weir.Record) *badly {
	var is *badly
	at, named := weir.FailedRecord(err)
	for _, bad := range a.bads {
		i := slices.IndexFunc(records, func(r weir.Record) bool { return r.ID() == bad.id })
		if i < 0 || bad.named() != named || named && at.ID() != bad.id {
			continue
		}
		of := *bad.badly
		of.index = i
		is = &of
	}
	return is
}

// failsPartition notes a call that failed; see fails.
func (w *world) failsPartition(l *life, f failedCall) {
	if f.wrong != "" {
		w.breaks("%s makes %s", l.who, f.wrong)
		return
	}
	for _, data := range f.data {
		id, _ := idOf(data)
		f.batch.IDs = append(f.batch.IDs, id)
	}
	w.fails(&handling{judge: f.batch}, f.bad)
}

// freezes decides whether a call of the handler is frozen. The handler itself calls it. isFirst is
// true for the first call of a partition in a term.
func (w *world) freezes(l *life, b *weir.Batch, isFirst bool) bool {
	p := w.profile.Rates[SinkLate]
	if isFirst { // a late owner may make a row
		p *= 5
	}
	if p == 0 || w.calm.Load() {
		return false
	}
	d := roll(w.seed, "late "+l.String()+about(b.Stream, b.Shard), b.Epoch, uint64(b.Partition), uint64(time.Since(w.began)))
	return d.chance(p)
}

// admitFrozen decides for how long a call is frozen.
func (w *world) admitFrozen(c *call) {
	l, d := c.life, w.dice(c, "")
	l.hindered.handles[c.about] = w.now()
	took := time.Duration(0)
	if w.strikes(SinkLate, c.id(SinkLate)) {
		took = d.span(time.Second, longestHandler)
		w.judge.Fault(l.who, w.wall().Add(took))
	}
	w.note(l, c.op, c.about, c.n, string(SinkLate))
	w.after(took, func() { w.answer(c, reply{}) })
}

// apply gives records their effects in a transaction.
func (l *life) apply(ctx context.Context, tx *transaction, b *weir.Batch) error {
	if tx.isLate() {
		ctx = tx.try.late
		if ctx.Err() != nil { // another owner may have begun
			if l.w.killers != nil || l.w.badAt(recordIDs(b.Records)) != nil {
				return errHandler
			}
			tx.late = append(tx.late, b)
			return nil
		}
	}
	return l.handleIn(ctx, tx, b)
}

func recordIDs(records []weir.Record) (ids []judge.ID) {
	for _, r := range records {
		id, _ := idOf(r.Data)
		ids = append(ids, id)
	}
	return ids
}

// rows is the database as a life uses it.
type rows struct{ l *life }

func (r rows) ask(ctx context.Context, op string, body *rowsCall) (rowsReply, error) {
	body.try, _ = ctx.Value(attemptKey{}).(*attempt)
	c := &call{life: r.l, op: op, about: about(body.key.Stream, body.key.Shard), ctx: ctx, body: body}
	got := r.l.w.gate.wait(c)
	said, _ := got.value.(rowsReply)
	if said.panics {
		panic(errors.New("sim: the sink panics"))
	}
	return said, got.err
}

func (r rows) Read(ctx context.Context, stream, shard string) (map[positions.Key]positions.Row, error) {
	got, err := r.ask(ctx, "rows", &rowsCall{key: positions.Key{Stream: stream, Shard: shard}})
	return got.rows, err
}

func (r rows) Make(ctx context.Context, k positions.Key, row positions.Row) error {
	_, err := r.ask(ctx, "rows", &rowsCall{key: k, row: &row})
	return err
}

func (r rows) Update(ctx context.Context, k positions.Key, decide func(positions.Row, bool) (*positions.Row, error), effects func(context.Context, *transaction) error) error {
	try, _ := ctx.Value(attemptKey{}).(*attempt)
	t := &transaction{of: r.l, try: try, key: k, set: map[positions.Key]positions.Row{}, made: map[positions.Key]positions.Row{}}
	defer r.l.w.gate.tell(&call{life: r.l, op: "ended", about: about(k.Stream, k.Shard), ctx: r.l.ctx, body: t})
	got, err := r.ask(ctx, "begin", &rowsCall{key: k, tx: t})
	if err != nil {
		return err
	}
	next, err := decide(got.row, got.found)
	if err != nil || next == nil {
		return err
	}
	if got.found {
		t.set[k] = *next
	}
	if effects != nil {
		if err := effects(ctx, t); err != nil {
			return err
		}
	}
	_, err = r.ask(ctx, "commit", &rowsCall{key: k, tx: t})
	return err
}

func (r rows) Insert(_ context.Context, t *transaction, k positions.Key, row positions.Row) error {
	t.made[k] = row
	return nil
}

func (r rows) Prune(_ context.Context, t *transaction, _, _ string, keep int) error {
	t.prunes, t.keep = true, keep
	return nil
}
