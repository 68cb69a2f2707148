package sim

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/sim/judge"
)

// handling contains the data of the driver about a call of a handler.
type handling struct {
	batch   *weir.Batch
	judge   *judge.Batch
	saved   error  // result of the checkpoint in the middle of the batch
	upTo    int    // number of records to save; 0 in the first half of the call
	habit   *habit // nil in the first half of the call
	wrong   string // a problem that the handler found
	attempt int    // from the batch, before the handler changed it
	// positions contains the positions of the records, before the handler changed them. It is set
	// only with a sink.
	positions []weir.Position
	about     string       // the shard
	tx        *transaction // the transaction that the call belongs to; nil without partitions
}

// done returns the number of records that the handler has certainly marked as done.
func (h *handling) done() int {
	if h.saved != nil {
		return 0
	}
	return h.upTo
}

// verdict is the driver's decision about a call of a handler.
type verdict struct {
	kind       Fault  // "" means success
	checkpoint int    // number of records to save in the middle of the batch; may be 0
	habit      *habit // what the handler does before it returns; may be nil
	bad        *badly // fail at this record; may be nil
}

var errHandler = errors.New("sim: the handler failed")

// handle is the handler of every worker. It carries out the decision of the driver.
func (l *life) handle(ctx context.Context, b *weir.Batch) error { return l.handleIn(ctx, nil, b) }

// handleIn is handle in a transaction, or with tx nil outside of one.
func (l *life) handleIn(ctx context.Context, tx *transaction, b *weir.Batch) error {
	if !l.reads(b.Stream) {
		l.w.gate.tell(&call{life: l, op: "strays", ctx: l.ctx, body: b.Stream})
	}
	h := &handling{batch: b, wrong: l.kept.changed(), tx: tx}
	if l.w.sink != nil {
		h.positions, h.about = positionsOf(b.Records), about(b.Stream, b.Shard)
	}
	c := &call{life: l, op: "handle", about: about(b.Stream, b.Shard), ctx: ctx, body: h, deaf: !l.w.isLoop() && (tx.isLate() || l.w.deaf(l, b))}
	is := l.contents(b)
	r := l.w.gate.wait(c)
	if l.contents(b) != is && !l.dead.Load() {
		l.w.gate.tell(&call{life: l, op: "overwritten", ctx: l.ctx, body: c.about})
	}
	if r.err != nil {
		return r.err
	}
	v := r.value.(verdict)
	if v.habit != nil {
		return l.follow(ctx, b, h, v.habit)
	}
	if v.bad != nil {
		tx.failsAt(v.bad, b, h.judge.IDs)
		return v.bad.fail(b.Records)
	}
	if v.checkpoint > 0 {
		err := b.Checkpoint(ctx, b.Records[v.checkpoint-1])
		r = l.w.gate.wait(&call{life: l, op: "handle", about: about(b.Stream, b.Shard), ctx: ctx, body: &handling{batch: b, judge: h.judge, saved: err, upTo: v.checkpoint, attempt: h.attempt, positions: h.positions, about: h.about}})
		if r.err != nil {
			return r.err
		}
		v = r.value.(verdict)
		if v.bad != nil {
			return v.bad.fail(b.Records)
		}
	}
	return v.end()
}

// contents returns a hash of the records of a batch. The records belong to the handler until it
// returns. They may be overwritten afterwards only if buffers are reused.
func (l *life) contents(b *weir.Batch) (hash uint64) {
	if !l.w.reuses {
		return 0
	}
	for _, r := range b.Records {
		hash = stirred(hash, string(r.Data[:min(len(r.Data), 64)]))
	}
	return hash
}

// end ends the call of a handler as decided.
func (v verdict) end() error {
	switch v.kind {
	case HandlerFails, Checkpoints:
		return errHandler
	case HandlerPanics:
		panic("sim: the handler panics")
	case HandlerStops:
		return weir.Stop(errStop)
	case HandlerCancels:
		return context.Canceled
	case HandlerExits:
		runtime.Goexit()
	}
	return nil
}

func positionsOf(records []weir.Record) []weir.Position {
	all := make([]weir.Position, len(records))
	for i, r := range records {
		all[i] = r.Position()
	}
	return all
}

// idOf parses the ID that put wrote into a record. For an aggregate it returns the ID of the first
// record.
func idOf(data []byte) (judge.ID, bool) {
	if len(data) > 0 && data[0] == 0xf3 {
		var all aggregate.Aggregate
		if ok, err := all.Parse(data); ok && err == nil && all.Len() > 0 {
			data = all.Record(0).Data()
		}
	}
	end := strings.IndexByte(string(data[:min(len(data), 64)]), '|')
	if end < 0 {
		return judge.ID{}, false
	}
	key, n, ok := strings.Cut(string(data[:end]), " ")
	count, err := strconv.Atoi(n)
	return judge.ID{Key: key, N: count}, ok && err == nil
}

// payload returns the data of a record in two parts: its name, and a filling that all records
// share.
func payload(id judge.ID, size int) (name, rest []byte) {
	name = append(strconv.AppendInt(append(append(make([]byte, 0, len(id.Key)+12), id.Key...), ' '), int64(id.N), 10), '|')
	return name, filling[min(len(name), size):size]
}

// filling is the content that all records share.
var filling = func() []byte {
	b := make([]byte, hugeRecord)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}()

// largeRecord is the size of a record in profiles with large records.
const largeRecord = 160 << 10

// hugeRecord is the size of a record that is larger than any shard's share of the memory.
const hugeRecord = 9 << 20
