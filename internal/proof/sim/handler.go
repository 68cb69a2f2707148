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

// handling is a handler's call for the driver.
type handling struct {
	batch   *weir.Batch
	judge   *judge.Batch
	saved   error  // of the checkpoint in its middle
	upTo    int    // records to save; 0 in the first half
	habit   *habit // nil in the first half
	wrong   string // the problem that the handler found
	attempt int    // from the batch, before the handler changed it
	// of the records, before the handler changed them; only with a sink
	positions []weir.Position
	about     string // the shard
}

// done returns how many records the handler has certainly marked as done.
func (h *handling) done() int {
	if h.saved != nil {
		return 0
	}
	return h.upTo
}

// verdict is the decision about a handler's call.
type verdict struct {
	kind       Fault  // "" for success
	checkpoint int    // records to save before that, 0 for none
	habit      *habit // the action before that, or nil
	bad        *badly // fail at one of the records
}

var errHandler = errors.New("sim: the handler failed")

// handle is every worker's handler. It carries out the driver's decision.
func (l *life) handle(ctx context.Context, b *weir.Batch) error {
	if !l.reads(b.Stream) {
		l.w.gate.tell(&call{life: l, op: "strays", ctx: l.ctx, body: b.Stream})
	}
	h := &handling{batch: b, wrong: l.kept.changed()}
	if l.w.sink != nil {
		h.positions, h.about = positionsOf(b.Records), about(b.Stream, b.Shard)
	}
	c := &call{life: l, op: "handle", about: about(b.Stream, b.Shard), ctx: ctx, body: h, deaf: !l.w.isLoop() && l.w.deaf(l, b)}
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

// contents returns a hash of the records of a batch. They belong to a handler until it returns, and
// are not overwritten unless buffers are reused.
func (l *life) contents(b *weir.Batch) (hash uint64) {
	if !l.w.reuses {
		return 0
	}
	for _, r := range b.Records {
		hash = stirred(hash, string(r.Data[:min(len(r.Data), 64)]))
	}
	return hash
}

// end ends a handler's call.
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

// idOf parses the ID that Put wrote; for an aggregate, that of its first record.
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

// payload returns the data of a record: its name, and a common filling.
func payload(id judge.ID, size int) (name, rest []byte) {
	name = append(strconv.AppendInt(append(append(make([]byte, 0, len(id.Key)+12), id.Key...), ' '), int64(id.N), 10), '|')
	return name, filling[min(len(name), size):size]
}

// filling is the common content of records.
var filling = func() []byte {
	b := make([]byte, hugeRecord)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}()

// largeRecord is the size of a record where they are large.
const largeRecord = 160 << 10

// hugeRecord is the size of a record that is larger than any shard's share of the memory.
const hugeRecord = 9 << 20
