package sink_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/sink"
	"github.com/weir-go/weir/sink/sinktest"
)

var trials = flag.Int("sink.trials", 300, "number of random trials")

// trial lets owners of one shard apply its records one after the other, and lets earlier owners act
// between any two transactions of the present one. Owners have different numbers of partitions.
// Transactions fail before and after their commits, and the database is restored to a backup.
type trial struct {
	t       *testing.T
	rng     *rand.Rand
	db      sinktest.Memory
	records []weir.Record
	epoch   uint64
	all     []*owner
	depth   int
	spare   uint64 // an epoch before the last one, which no owner has; 0 if there is none
	restore func()
	quiet   bool // no disturbances
	torn    bool // the database was restored while owners ran
}

// owner is a worker that holds the shard, or believes that it does.
type owner struct {
	*trial
	parts   int
	h       weir.ShardHandler
	epoch   uint64
	from    int          // index of the first record that it reads
	next    map[int]int  // by partition: index of the record from which it looks for the next batch
	done    map[int]bool // indexes of records that it has handled
	ended   bool         // it has handled the end of the shard
	busy    bool         // a step of it is under way
	stopped bool         // its Run has ended
}

var errLost = errors.New("lost")

func newTrial(t *testing.T, seed uint64) *trial {
	tr := &trial{t: t, rng: rand.New(rand.NewPCG(seed, 1))}
	for i := range 60 + tr.rng.IntN(100) {
		tr.records = append(tr.records, weir.Record{
			SequenceNumber: fmt.Sprint(i + 1), PartitionKey: fmt.Sprint("k", tr.rng.IntN(7)), Data: fmt.Append(nil, i),
		})
	}
	tr.restore = tr.db.Backup()
	tr.db.Before = func(string) error {
		if tr.quiet {
			return nil
		}
		if tr.depth < 3 && tr.rng.IntN(4) == 0 { // an earlier owner acts
			tr.depth++
			if epoch := tr.spare; epoch > 0 && tr.rng.IntN(3) == 0 { // it begins late
				tr.spare = 0
				tr.begin(epoch)
			}
			if o := tr.all[tr.rng.IntN(len(tr.all))]; !o.busy {
				o.step()
			}
			tr.depth--
		}
		if tr.rng.IntN(12) == 0 {
			return errLost
		}
		return nil
	}
	tr.db.After = func() error {
		if !tr.quiet && tr.rng.IntN(10) == 0 {
			return errLost
		}
		return nil
	}
	return tr
}

// hire makes an owner with the highest epoch. It returns nil if the handler cannot be opened.
func (tr *trial) hire() *owner {
	tr.epoch += 2
	tr.spare = tr.epoch - 1
	return tr.begin(tr.epoch)
}

// begin makes an owner. It returns nil if the handler cannot be opened.
func (tr *trial) begin(epoch uint64) *owner {
	parts := []int{0, 2, 3, 16}[tr.rng.IntN(4)]
	s, err := sink.New(&tr.db, sink.Options{Partitions: parts})
	if err != nil {
		tr.t.Fatal(err)
	}
	o := &owner{trial: tr, parts: parts, epoch: epoch, next: map[int]int{}, done: map[int]bool{}, busy: true}
	tr.all = append(tr.all, o)
	defer func() { o.busy = false }()
	h := s.Handlers(func(_ context.Context, tx *sinktest.Tx, b *weir.Batch) error {
		if !tr.quiet && tr.rng.IntN(15) == 0 {
			return errLost
		}
		for _, r := range b.Records {
			tx.Add(r.PartitionKey + ":" + string(r.Data))
		}
		if b.End {
			tx.Add("end")
		}
		return nil
	})
	if h.Partitions != parts {
		tr.t.Fatalf("the handlers have %d partitions, not %d", h.Partitions, parts)
	}
	for range 1000 {
		at, err := h.Position(tr.t.Context(), "orders", "0")
		if err != nil {
			continue
		}
		for o.from < len(tr.records) && tr.records[o.from].Position().Compare(at) <= 0 {
			o.from++
		}
		if at.IsEnd() {
			o.from = tr.rng.IntN(len(tr.records)) // an operator has set the lease back
		}
		from := weir.Oldest
		if o.from > 0 {
			from = tr.records[o.from-1].Position()
		}
		o.h, err = h.Open(tr.t.Context(), weir.Term{Stream: "orders", Shard: "0", Epoch: o.epoch, From: from})
		if err == nil {
			return o
		}
		if errors.Is(err, sink.ErrFenced) || errors.Is(err, sink.ErrSetBack) {
			o.stopped = true
			return nil
		}
		o.from = 0
	}
	tr.t.Fatalf("the handler of epoch %d cannot be opened", epoch)
	return nil
}

// step handles one batch: of a partition, of the shard, or the end.
func (o *owner) step() {
	if o.stopped || o.ended || o.h == nil {
		return
	}
	o.busy = true
	defer func() { o.busy = false }()
	b := &weir.Batch{Stream: "orders", Shard: "0", Epoch: o.epoch, Attempt: 1}
	some := 1 + o.rng.IntN(8)
	part := o.rng.IntN(max(o.parts, 1))
	var mine []int
	for i := max(o.from, o.next[part]); i < len(o.records) && len(mine) < some; i++ {
		if !o.done[i] && shard.Partition(o.records[i].PartitionKey, o.parts) == part {
			mine = append(mine, i)
			b.Records = append(b.Records, o.records[i])
		}
	}
	mark := o.from
	for o.done[mark] {
		mark++
	}
	if o.parts > 0 {
		b.Partition = part
		if mark > o.from {
			b.DoneBefore = o.records[mark-1].Position()
		}
	}
	switch {
	case mark == len(o.records):
		b.End = true
	case len(mine) == 0:
		return
	}
	err := o.h.Handle(o.t.Context(), b)
	switch {
	case errors.Is(err, sink.ErrSetBack):
		if !o.torn {
			o.t.Errorf("epoch %d of %d: %v", o.epoch, o.trial.epoch, err)
		}
		fallthrough
	case errors.Is(err, sink.ErrFenced):
		o.stopped = true
	case err == nil:
		for _, i := range mine {
			o.done[i] = true
			o.next[part] = i + 1
		}
		o.ended = b.End
	}
}

func (tr *trial) run() {
	for range 3 + tr.rng.IntN(6) {
		o := tr.hire()
		for range tr.rng.IntN(60) {
			if o != nil {
				o.step()
			}
		}
		switch tr.rng.IntN(8) {
		case 0: // the database is restored, most often after all workers have stopped
			tr.torn = tr.torn || tr.rng.IntN(2) == 0
			for _, o := range tr.all {
				o.stopped = o.stopped || !tr.torn
			}
			tr.restore()
		case 1:
			tr.restore = tr.db.Backup()
		}
	}
	tr.quiet = true
	for attempt, done := 0, false; !done; attempt++ {
		if attempt == 10 {
			tr.t.Fatalf("no owner reaches the end of the shard; the effects are %v", tr.db.Effects())
		}
		for _, o := range tr.all {
			o.stopped = true
		}
		o := tr.hire()
		for range 10_000 {
			if o == nil || o.ended || o.stopped {
				break
			}
			o.step()
		}
		done = o != nil && o.ended
	}
	tr.judge()
}

// judge checks that each record has one effect, in order of its key, and that the end comes once,
// after all of them.
func (tr *trial) judge() {
	want := map[string][]string{}
	for _, r := range tr.records {
		want[r.PartitionKey] = append(want[r.PartitionKey], string(r.Data))
	}
	all := tr.db.Effects()
	for i, e := range all {
		if e == "end" {
			if i != len(all)-1 {
				tr.t.Errorf("the end of the shard is effect %d of %d", i+1, len(all))
			}
			continue
		}
		key, data, _ := strings.Cut(e, ":")
		if len(want[key]) == 0 || want[key][0] != data {
			tr.t.Errorf("effect %s, want %v", e, want[key])
			return
		}
		want[key] = want[key][1:]
	}
	for key, left := range want {
		if len(left) > 0 {
			tr.t.Errorf("%s lacks the effects %v", key, left)
		}
	}
	rows, _ := tr.db.Read(tr.t.Context(), "orders", "0")
	if len(rows) != 1 {
		tr.t.Errorf("a shard that has ended has the rows %v", rows)
	}
}

func TestRandomOwners(t *testing.T) {
	for seed := range uint64(*trials) {
		newTrial(t, seed).run()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// If the answer of a COMMIT was lost and its record became a dead letter, the end of the shard
// still has the position after the record. Otherwise a reset would apply the record again.
func TestTheEndHasWhatALostCommitStored(t *testing.T) {
	lose := false
	db := &sinktest.Memory{After: func() error {
		if lose {
			return errLost
		}
		return nil
	}}
	s, err := sink.New(db, sink.Options{Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	open := func(epoch uint64) weir.ShardHandler {
		h, err := s.Handlers(func(_ context.Context, tx *sinktest.Tx, b *weir.Batch) error {
			for _, r := range b.Records {
				tx.Add(string(r.Data))
			}
			return nil
		}).Open(t.Context(), weir.Term{Stream: "orders", Shard: "0", Epoch: epoch, From: weir.Oldest})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	part := shard.Partition("k", 2)
	records := []weir.Record{{SequenceNumber: "1", PartitionKey: "k", Data: []byte("a")}, {SequenceNumber: "2", PartitionKey: "k", Data: []byte("b")}}
	handle := func(h weir.ShardHandler, epoch uint64, end bool, records ...weir.Record) error {
		return h.Handle(t.Context(), &weir.Batch{Stream: "orders", Shard: "0", Epoch: epoch, Partition: part, Records: records, End: end, Attempt: 1})
	}
	h := open(1)
	if err := handle(h, 1, false, records[0]); err != nil {
		t.Fatal(err)
	}
	lose = true
	if err := handle(h, 1, false, records[1]); !errors.Is(err, errLost) {
		t.Fatalf("the lost answer was %v", err)
	}
	lose = false // weir puts a dead letter of the record, without Letters
	if err := handle(h, 1, true); err != nil {
		t.Fatal(err)
	}
	again := open(2) // after a reset
	if err := errors.Join(handle(again, 2, false, records...), handle(again, 2, true)); err != nil {
		t.Fatal(err)
	}
	if got := db.Effects(); len(got) != 2 {
		t.Errorf("the effects are %q", got)
	}
}
