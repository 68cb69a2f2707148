package sim

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/sim/judge"
)

// habit is what a realistic handler does before it succeeds or fails.
type habit struct {
	done     int  // number of records to mark as done; may be 0
	how      int  // index in noters
	change   int  // index in changers; 0 changes nothing
	early    bool // the change happens before progress is marked
	confuses bool // marks progress with records of another batch
	keeps    bool
	leaves   int  // number of records that a goroutine marks as done later
	dice     dice // source of all further choices
}

// changers contains functions that modify a handler's arguments. The first one changes nothing.
var changers = []func(d *dice, b *weir.Batch){
	func(*dice, *weir.Batch) {},
	// Remove the first records, as from a queue.
	func(d *dice, b *weir.Batch) { b.Records = b.Records[d.below(len(b.Records)+1):] },
	func(d *dice, b *weir.Batch) {
		b.Records = slices.DeleteFunc(b.Records, func(weir.Record) bool { return d.chance(.5) })
	},
	func(_ *dice, b *weir.Batch) { slices.Reverse(b.Records) },
	func(_ *dice, b *weir.Batch) {
		slices.SortFunc(b.Records, func(a, b weir.Record) int { return strings.Compare(a.PartitionKey, b.PartitionKey) })
	},
	func(_ *dice, b *weir.Batch) { clear(b.Records) },
	func(d *dice, b *weir.Batch) { copy(b.Records, b.Records[d.below(len(b.Records)+1):]) },
	func(d *dice, b *weir.Batch) {
		b.Records = append(b.Records[:d.below(len(b.Records)+1)], weir.Record{Data: []byte("made")}, weir.Record{})
	},
	func(_ *dice, b *weir.Batch) {
		for i := range b.Records {
			b.Records[i].Data, b.Records[i].PartitionKey, b.Records[i].SequenceNumber = []byte("made"), "", "0"
		}
		b.Shard, b.Epoch, b.End, b.Attempt = "", 0, !b.End, 7
	},
	func(_ *dice, b *weir.Batch) { b.Records = nil },
}

var errNotAll = errors.New("sim: the rest is for later")

// noters contains functions that mark the first n records of a batch as done. They work after any
// change to the batch, and with a copy of the batch.
var noters = []func(ctx context.Context, d *dice, b *weir.Batch, records []weir.Record) error{
	func(_ context.Context, _ *dice, b *weir.Batch, records []weir.Record) error {
		return b.Done(records[len(records)-1])
	},
	func(_ context.Context, _ *dice, b *weir.Batch, records []weir.Record) (err error) {
		for _, r := range records {
			err = errors.Join(err, b.Done(r))
		}
		return err
	},
	// Mark in any order, and repeatedly.
	func(_ context.Context, d *dice, b *weir.Batch, records []weir.Record) (err error) {
		for i := range records {
			err = errors.Join(err, b.Done(records[d.below(len(records))]), b.Done(records[len(records)-1-i]))
		}
		return err
	},
	func(ctx context.Context, _ *dice, b *weir.Batch, records []weir.Record) error {
		half := *b
		half.Records = records
		return half.Checkpoint(ctx, half.Records[len(half.Records)-1])
	},
	// Mark in goroutines, one after the other, in an order that the seed determines.
	func(_ context.Context, d *dice, b *weir.Batch, records []weir.Record) error {
		return inTurn(d, len(records), func(i int) error { return b.Done(records[i]) })
	},
	func(ctx context.Context, d *dice, b *weir.Batch, records []weir.Record) error {
		last := min(len(records), 3)
		records = records[len(records)-last:]
		return inTurn(d, last, func(i int) error { return b.Checkpoint(ctx, records[i]) })
	},
	func(ctx context.Context, _ *dice, b *weir.Batch, records []weir.Record) error { // concurrently
		errs := make([]error, len(records))
		var all sync.WaitGroup
		for i, r := range records {
			all.Go(func() { errs[i] = b.Checkpoint(ctx, r) })
		}
		all.Wait()
		return errors.Join(errs...)
	},
	// Mark as weir.RecordFunc does.
	func(ctx context.Context, _ *dice, b *weir.Batch, records []weir.Record) error {
		some := *b
		some.Records = append(slices.Clone(records), weir.Record{})
		err := weir.RecordFunc(func(_ context.Context, r weir.Record) error {
			if r.ID() == "" {
				return errNotAll
			}
			return nil
		}).Handle(ctx, &some)
		if errors.Is(err, errNotAll) {
			return nil
		}
		return err
	},
}

// inTurn calls f with each number from 0 to n-1, in a random order. Each call has its own
// goroutine, which waits for the previous one.
func inTurn(d *dice, n int, f func(i int) error) error {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	for i := range order {
		j := i + d.below(n-i)
		order[i], order[j] = order[j], order[i]
	}
	errs := make([]error, n)
	turn := make(chan struct{}, 1)
	turn <- struct{}{}
	for _, i := range order {
		next := make(chan struct{}, 1)
		go func(mine <-chan struct{}) {
			<-mine
			errs[i] = f(i)
			next <- struct{}{}
		}(turn)
		turn = next
	}
	<-turn
	return errors.Join(errs...)
}

// follow carries out a habit, and then the decision of the driver.
func (l *life) follow(ctx context.Context, b *weir.Batch, h *handling, v *habit) error {
	where := about(b.Stream, b.Shard)
	records, d := slices.Clone(b.Records), v.dice // the handler's own data
	second := &handling{batch: b, judge: h.judge, habit: v, upTo: v.done, attempt: h.attempt, positions: h.positions, about: h.about, tx: h.tx}
	if v.confuses {
		second.wrong = l.kept.confuse(b, l.w.letters != nil || l.w.crosses.has(featSuspects) || l.w.crosses.has(featRecordForm))
	}
	if v.keeps {
		own := records
		if v.change == 0 {
			own = b.Records
		}
		l.kept.keep(b, own)
	}
	if v.early {
		changers[v.change](&d, b)
	}
	if v.done > 0 {
		second.saved = noters[v.how](ctx, &d, b, records[:v.done])
	}
	if v.leaves > 0 {
		g := &late{of: h.judge, ctx: ctx, n: v.leaves}
		go l.notesLate(&call{life: l, op: "late", about: where, ctx: ctx, deaf: true, body: g}, b, records[v.leaves-1])
	}
	r := l.w.gate.wait(&call{life: l, op: "handle", about: where, ctx: ctx, body: second})
	if !v.early {
		changers[v.change](&d, b)
	}
	if r.err != nil {
		return r.err
	}
	end := r.value.(verdict)
	if end.bad != nil {
		h.tx.failsAt(end.bad, &weir.Batch{Records: records}, h.judge.IDs)
		return end.bad.fail(records)
	}
	return end.end()
}

// late is the call of a goroutine that a handler has left behind.
type late struct {
	of  *judge.Batch
	ctx context.Context // context of the handler's call
	n   int             // number of records that it marks as done
}

func (l *life) notesLate(c *call, b *weir.Batch, r weir.Record) {
	if l.w.gate.wait(c).err == nil {
		_ = b.Done(r)
	}
}

// kept contains the data that the handlers of a life keep after their return.
type kept struct {
	mu     sync.Mutex
	all    []keptRecords
	others []weir.Record // last batch of each shard, in the order in which the shards first appeared
	over   []*weir.Batch // their batches
}

type keptRecords struct {
	records []weir.Record
	sum     uint64
}

// mostKept is the maximum number of batches that a life keeps.
const mostKept = 4

var sumSeed = maphash.MakeSeed()

func sum(records []weir.Record) uint64 {
	var h maphash.Hash
	h.SetSeed(sumSeed)
	for _, r := range records {
		_, _ = h.Write(r.Data)
		_, _ = h.WriteString(r.PartitionKey + "/" + r.ID())
	}
	return h.Sum64()
}

// keep keeps the records of a batch, as a slice that no one else may write to.
func (k *kept) keep(b *weir.Batch, records []weir.Record) {
	if len(records) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) == mostKept {
		k.all = slices.Delete(k.all, 0, 1)
	}
	k.all = append(k.all, keptRecords{records, sum(records)})
	last, before := records[len(records)-1], *b
	i := slices.IndexFunc(k.others, func(r weir.Record) bool { return r.Stream() == b.Stream && r.Shard() == b.Shard })
	if i < 0 {
		k.others, k.over = append(k.others, last), append(k.over, &before)
		return
	}
	k.others[i], k.over[i] = last, &before
}

// changed describes how the kept data has changed. It returns "" if the data has not changed.
func (k *kept) changed() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, a := range k.all {
		if sum(a.records) != a.sum {
			return fmt.Sprintf("the records from %s on have changed since a handler kept them", a.records[0].ID())
		}
	}
	return ""
}

// confuse marks progress with records of other batches. It describes a mark that weir accepted
// wrongly, or returns "". inParts means that an earlier batch may be another part of the same
// records.
func (k *kept) confuse(b *weir.Batch, inParts bool) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	last := b.Records[len(b.Records)-1]
	for i, r := range k.others {
		switch other := r.Stream() != b.Stream || r.Shard() != b.Shard; {
		case other && b.Done(r) == nil:
			return fmt.Sprintf("Done of %s is accepted in a batch of %s", r.ID(), about(b.Stream, b.Shard))
		case !other && !inParts && last.Position().Compare(r.Position()) > 0 && k.over[i].Done(last) == nil:
			return fmt.Sprintf("Done of %s is accepted in an earlier batch", last.ID())
		}
	}
	if b.Done(weir.Record{}) == nil || b.Done(weir.Record{SequenceNumber: "1"}) == nil {
		return "Done of a record that nobody read is accepted"
	}
	return ""
}
