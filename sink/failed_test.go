package sink_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/sink"
	"github.com/weir-go/weir/sink/sinktest"
)

// TestRecordsBeforeTheFailedOneTakeEffect lets a function name the record at which it fails, in an
// error or a panic. weir counts the records before that one as done, so they must be stored.
func TestRecordsBeforeTheFailedOneTakeEffect(t *testing.T) {
	bad, other := errors.New("bad"), weir.Record{SequenceNumber: "99"}
	for _, tt := range []struct {
		name   string
		fails  func(r weir.Record) error
		panics bool
		want   []string
		named  bool // weir learns which record failed
	}{
		{"an error", func(r weir.Record) error { return weir.FailedAt(r, bad) }, false, []string{"1", "2"}, true},
		{"a panic", func(r weir.Record) error { return weir.FailedAt(r, bad) }, true, []string{"1", "2"}, true},
		{"too old, a panic", func(r weir.Record) error { return weir.RejectOld(r, 1, bad) }, true, []string{"1", "2"}, true},
		{"a panic without a record", func(weir.Record) error { return bad }, true, nil, false},
		{"a panic with another record", func(weir.Record) error { return weir.FailedAt(other, bad) }, true, nil, false},
	} {
		for _, parts := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s, %d partitions", tt.name, parts), func(t *testing.T) {
				var db sinktest.Memory
				s, err := sink.New(&db, sink.Options{Partitions: parts})
				if err != nil {
					t.Fatal(err)
				}
				h, err := s.Handlers(func(_ context.Context, tx *sinktest.Tx, b *weir.Batch) error {
					for _, r := range b.Records {
						if r.SequenceNumber == "3" && tt.panics {
							panic(tt.fails(r))
						} else if r.SequenceNumber == "3" {
							return tt.fails(r)
						}
						tx.Add(r.SequenceNumber)
					}
					return nil
				}).Open(t.Context(), weir.Term{Stream: "orders", Shard: "0", Epoch: 1, From: weir.Oldest})
				if err != nil {
					t.Fatal(err)
				}
				b := &weir.Batch{Stream: "orders", Shard: "0", Epoch: 1, Attempt: 1}
				for i := range 4 {
					b.Records = append(b.Records, weir.Record{SequenceNumber: fmt.Sprint(i + 1)})
				}
				err = func() (err error) {
					defer func() {
						if p := recover(); p != nil {
							err = p.(error)
						}
					}()
					return h.Handle(t.Context(), b)
				}()
				if at, named := weir.FailedRecord(err); !errors.Is(err, bad) || named != tt.named || named && at.SequenceNumber != "3" {
					t.Errorf("the error is %v, at %q", err, at.SequenceNumber)
				}
				if got := db.Effects(); !slices.Equal(got, tt.want) {
					t.Errorf("the effects are %v, want %v", got, tt.want)
				}
			})
		}
	}
}

// TestTheEndIsRepeatedWithItsRecord loses the answer of the COMMIT that ends a shard with
// partitions. The last batch has a record, as while weir tries records one by one.
func TestTheEndIsRepeatedWithItsRecord(t *testing.T) {
	lost, updates := errors.New("lost"), 0
	db := sinktest.Memory{After: func() error {
		if updates++; updates == 4 { // after the epoch, the row of the partition, and the record
			return lost
		}
		return nil
	}}
	s, err := sink.New(&db, sink.Options{Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Handlers(func(_ context.Context, tx *sinktest.Tx, b *weir.Batch) error {
		for _, r := range b.Records {
			tx.Add(r.SequenceNumber)
		}
		if b.End {
			tx.Add("end")
		}
		return nil
	}).Open(t.Context(), weir.Term{Stream: "orders", Shard: "0", Epoch: 1, From: weir.Oldest})
	if err != nil {
		t.Fatal(err)
	}
	b := &weir.Batch{Stream: "orders", Shard: "0", Epoch: 1, Attempt: 1, End: true, Records: []weir.Record{{SequenceNumber: "1"}}}
	b.Partition = shard.Partition("", 2)
	if err := h.Handle(t.Context(), b); !errors.Is(err, lost) {
		t.Fatalf("the first call returns %v, want the lost answer", err)
	}
	if err := h.Handle(t.Context(), b); err != nil {
		t.Errorf("the second call returns %v", err)
	}
	if got, want := db.Effects(), []string{"1", "end"}; !slices.Equal(got, want) {
		t.Errorf("the effects are %v, want %v", got, want)
	}
	// If weir dead-letters the record instead, its partition has no row any more.
	put := 0
	letters := s.Letters(deadletter.Func(func(context.Context, []deadletter.Letter) error { put++; return nil }))
	err = letters.Put(t.Context(), []deadletter.Letter{letterOf(b.Records[0], 1)})
	if got := leftOut(err); !slices.Equal(got, []string{"1"}) || put != 0 {
		t.Errorf("a dead letter of a record with an effect was put %d times, and then came %v", put, err)
	}
	killed := letterOf(b.Records[0], 1)
	killed.Reason = deadletter.Killed
	if err := letters.Put(t.Context(), []deadletter.Letter{killed}); err != nil || put != 1 {
		t.Errorf("a dead letter of a record that killed workers was put %d times, and then came %v", put, err)
	}
}

// TestOldRecordsOfAShorterBatch lets a function fail twice: at a record, and then among the records
// before it, which it gets alone. The second error must not leave out records of the first call.
func TestOldRecordsOfAShorterBatch(t *testing.T) {
	s, err := sink.New(&sinktest.Memory{}, sink.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Handlers(func(_ context.Context, _ *sinktest.Tx, b *weir.Batch) error {
		if len(b.Records) == 4 {
			return weir.FailedAt(b.Records[2], errors.New("oops"))
		}
		return weir.RejectOld(b.Records[0], 100, errors.New("too late")) // both
	}).Open(t.Context(), weir.Term{Stream: "orders", Shard: "0", Epoch: 1, From: weir.Oldest})
	if err != nil {
		t.Fatal(err)
	}
	b := &weir.Batch{Stream: "orders", Shard: "0", Epoch: 1, Attempt: 1}
	for i := range 4 {
		b.Records = append(b.Records, weir.Record{SequenceNumber: fmt.Sprint(i + 1)})
	}
	err = h.Handle(t.Context(), b)
	if at, _ := weir.FailedRecord(err); at.SequenceNumber != "1" || weir.RejectedOld(err) != 2 {
		t.Errorf("the error leaves out %d records from %q on, want 2 from 1 on: %v", weir.RejectedOld(err), at.SequenceNumber, err)
	}
}

// letterOf returns the dead letter of a record. TestAPositionThatFailsToMoveIsNotAnEffect loses the
// answer of the COMMIT that moves a position past a dead letter. The repeated call must not report
// that the record has effects.
func TestAPositionThatFailsToMoveIsNotAnEffect(t *testing.T) {
	var db sinktest.Memory
	s, err := sink.New(&db, sink.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Handlers(func(context.Context, *sinktest.Tx, *weir.Batch) error { return nil }).
		Open(t.Context(), weir.Term{Stream: "orders", Shard: "0", Epoch: 1, From: weir.Oldest})
	if err != nil {
		t.Fatal(err)
	}
	lost := errors.New("lost")
	put, fails := 0, false
	db.After = func() error {
		if fails {
			fails = false
			return lost
		}
		return nil
	}
	letters := s.Letters(deadletter.Func(func(context.Context, []deadletter.Letter) error {
		put++
		fails = true // the next transaction moves the position
		return nil
	}))
	all := []deadletter.Letter{letterOf(weir.Record{SequenceNumber: "1"}, 1)}
	if err := letters.Put(t.Context(), all); !errors.Is(err, lost) {
		t.Fatalf("the first call returns %v, want the lost answer", err)
	}
	if err := letters.Put(t.Context(), all); err != nil || put != 1 {
		t.Errorf("the second call returns %v; the dead letter was put %d times", err, put)
	}
	if got := leftOut(letters.Put(t.Context(), all)); !slices.Equal(got, []string{"1"}) {
		t.Errorf("a third call, which is no repetition, leaves out %q", got)
	}
}

// leftOut returns the IDs of the letters that were left out, according to an error of Put.
func leftOut(err error) []string {
	var left *deadletter.LeftOutError
	if errors.As(err, &left) {
		return left.IDs
	}
	return nil
}

func letterOf(r weir.Record, epoch uint64) deadletter.Letter {
	return deadletter.Letter{ID: r.SequenceNumber, Stream: "orders", Shard: "0", Epoch: epoch, Position: r.Position().String(), PartitionKey: r.PartitionKey}
}

// TestLettersOfRecordsWithEffects puts letters of a batch that was handled in part, by owners with
// several numbers of partitions. Letters puts only those without effects. After that, their records
// have no effects, either.
func TestLettersOfRecordsWithEffects(t *testing.T) {
	for _, parts := range [][2]int{{0, 0}, {16, 0}, {0, 2}, {2, 2}, {16, 2}} {
		t.Run(fmt.Sprint(parts), func(t *testing.T) {
			var db sinktest.Memory
			var records []weir.Record
			for i := range 4 {
				records = append(records, weir.Record{SequenceNumber: fmt.Sprint(i + 1), PartitionKey: "k"})
			}
			open := func(parts int, epoch uint64) (*sink.Sink[*sinktest.Tx], weir.ShardHandler) {
				s, err := sink.New(&db, sink.Options{Partitions: parts})
				if err != nil {
					t.Fatal(err)
				}
				h, err := s.Handlers(func(_ context.Context, tx *sinktest.Tx, b *weir.Batch) error {
					for _, r := range b.Records {
						tx.Add(r.SequenceNumber)
					}
					return nil
				}).Open(t.Context(), weir.Term{Stream: "orders", Shard: "0", Epoch: epoch, From: weir.Oldest})
				if err != nil {
					t.Fatal(err)
				}
				return s, h
			}
			batch := func(epoch uint64, parts int, records []weir.Record) *weir.Batch {
				return &weir.Batch{Stream: "orders", Shard: "0", Epoch: epoch, Partition: shard.Partition("k", parts), Records: slices.Clone(records), Attempt: 1}
			}
			_, former := open(parts[0], 1)
			if err := former.Handle(t.Context(), batch(1, parts[0], records[:2])); err != nil {
				t.Fatal(err)
			}
			s, h := open(parts[1], 2)
			var put []string
			letters := s.Letters(deadletter.Func(func(_ context.Context, all []deadletter.Letter) error {
				for _, l := range all {
					put = append(put, l.ID)
				}
				// The former owner is late with a record whose letter is being stored.
				if err := former.Handle(t.Context(), batch(1, parts[0], records[:3])); !errors.Is(err, sink.ErrFenced) {
					t.Errorf("the former owner: %v", err)
				}
				return nil
			}))
			var all []deadletter.Letter
			for _, r := range records[:3] {
				all = append(all, letterOf(r, 2))
			}
			oops := errors.New("oops")
			failing := s.Letters(deadletter.Func(func(context.Context, []deadletter.Letter) error { return oops }))
			if err := failing.Put(t.Context(), all); !errors.Is(err, oops) { // the position does not move
				t.Errorf("the error of the destination became %v", err)
			}
			err := letters.Put(t.Context(), all)
			if got := leftOut(err); !slices.Equal(got, []string{"1", "2"}) || !slices.Equal(put, []string{"3"}) {
				t.Errorf("letters of %v were put, %v", put, err)
			}
			if err := h.Handle(t.Context(), batch(2, parts[1], records)); err != nil {
				t.Fatal(err)
			}
			if got := db.Effects(); !slices.Equal(got, []string{"1", "2", "4"}) {
				t.Errorf("the effects are %v", got)
			}
			if err := letters.Put(t.Context(), []deadletter.Letter{letterOf(records[3], 1)}); !errors.Is(err, sink.ErrFenced) {
				t.Errorf("letters of a late owner: %v", err)
			}
		})
	}
}

// TestOldRecordsThatTheSinkHas lets a function leave out records because of their age. The sink has
// the record between them already, from another number of partitions. weir must not dead-letter it.
func TestOldRecordsThatTheSinkHas(t *testing.T) {
	const had = 3 // index of the record that the sink has
	for _, parts := range []int{0, 2} {
		t.Run(fmt.Sprint(parts, " partitions"), func(t *testing.T) {
			var records []weir.Record // of one partition of two
			for i := 0; len(records) < 6; i++ {
				key := "a"
				if len(records) == had {
					key = fmt.Sprint("b", i)
				}
				if shard.Partition(key, 2) == shard.Partition("a", 2) && (key == "a" || shard.Partition(key, 16) != shard.Partition("a", 16)) {
					records = append(records, weir.Record{SequenceNumber: fmt.Sprint(len(records) + 1), PartitionKey: key})
				}
			}
			var db sinktest.Memory
			var got []string // by the function
			open := func(parts int, epoch uint64, old int) weir.ShardHandler {
				s, err := sink.New(&db, sink.Options{Partitions: parts})
				if err != nil {
					t.Fatal(err)
				}
				h, err := s.Handlers(func(_ context.Context, tx *sinktest.Tx, b *weir.Batch) error {
					got = nil
					for _, r := range b.Records {
						got = append(got, r.SequenceNumber)
					}
					for _, r := range b.Records {
						if old > 0 && r.SequenceNumber != "1" {
							return weir.RejectOld(r, old, nil)
						}
						tx.Add(r.SequenceNumber)
					}
					return nil
				}).Open(t.Context(), weir.Term{Stream: "orders", Shard: "0", Epoch: epoch, From: weir.Oldest})
				if err != nil {
					t.Fatal(err)
				}
				return h
			}
			handle := func(h weir.ShardHandler, epoch uint64, parts int, records []weir.Record) (at string, n int, err error) {
				err = h.Handle(t.Context(), &weir.Batch{
					Stream: "orders", Shard: "0", Epoch: epoch, Attempt: 1, Partition: shard.Partition(records[0].PartitionKey, parts), Records: slices.Clone(records),
				})
				r, _ := weir.FailedRecord(err)
				return r.SequenceNumber, weir.RejectedOld(err), err
			}
			if _, _, err := handle(open(16, 1, 0), 1, 16, records[had:had+1]); err != nil {
				t.Fatal(err)
			}
			for i, c := range []struct {
				old, from int
				at        string
				left      int
			}{
				{100, 0, "2", 2}, // up to the record that the sink has
				{2, 0, "2", 2},
				{1, 0, "2", 1},
				{100, had, "5", 2}, // the rest of the batch
			} {
				epoch := uint64(i + 2)
				at, n, err := handle(open(parts, epoch, c.old), epoch, parts, records[c.from:])
				if at != c.at || n != c.left {
					t.Errorf("%d old records from %d on: the error leaves out %d from %q on, want %d from %q on (%v)", c.old, c.from, n, at, c.left, c.at, err)
				}
			}
			if !slices.Equal(got, []string{"5", "6"}) || !slices.Equal(db.Effects(), []string{"4", "1"}) {
				t.Errorf("the function got %v at last, and the effects are %v", got, db.Effects())
			}
			got = nil
			if _, _, err := handle(open(parts, 9, 100), 9, parts, records[had:had+1]); err != nil || got != nil {
				t.Errorf("with a batch of a record that the sink has, the function got %v, and the error is %v", got, err)
			}
		})
	}
}
