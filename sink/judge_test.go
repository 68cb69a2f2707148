package sink

import (
	"errors"
	"reflect"
	"strconv"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/shard"
)

// numbered returns records with these sequence numbers. at returns the position after one of them.
func numbered(numbers ...int) (all []weir.Record) {
	for _, n := range numbers {
		all = append(all, weir.Record{SequenceNumber: strconv.Itoa(n), PartitionKey: "k" + strconv.Itoa(n)})
	}
	return all
}

func at(n int) weir.Position { return numbered(n)[0].Position() }

func sequences(all []weir.Record) (numbers []int) {
	for _, r := range all {
		n, _ := strconv.Atoi(r.SequenceNumber)
		numbers = append(numbers, n)
	}
	return numbers
}

func TestWhatBecomesOfABatch(t *testing.T) {
	own := Key{Stream: "orders", Shard: "0"}
	part := own
	part.Partition, part.Of = 1, 4
	// Of two partitions, the records 11 and 12 are in the first, and 10 in the second.
	old := earlier{}.add(Key{Partition: 0, Of: 2}, at(11)).add(Key{Partition: 1, Of: 2}, at(9))
	for _, c := range []struct {
		name  string
		k     Key
		was   Row
		gone  bool
		known weir.Position
		old   earlier
		batch weir.Batch
		todo  []int
		next  Row
		none  bool
		prune bool
		ends  bool
		err   error
	}{
		{name: "the first of a shard", was: Row{At: shard.Oldest}, known: shard.Oldest, batch: weir.Batch{Epoch: 1, Records: numbered(9, 10)},
			todo: []int{9, 10}, next: Row{Epoch: 1, At: at(10)}},
		{name: "the first after the tip", batch: weir.Batch{Epoch: 1, Records: numbered(9)}, todo: []int{9}, next: Row{Epoch: 1, At: at(9)}},
		{name: "all is covered", was: Row{Epoch: 1, At: at(10)}, known: at(9), batch: weir.Batch{Epoch: 2, Records: numbered(9, 10)}, none: true},
		{name: "some are covered", was: Row{Epoch: 1, At: at(10)}, known: at(10), batch: weir.Batch{Epoch: 2, Records: numbered(9, 10, 11)},
			todo: []int{11}, next: Row{Epoch: 2, At: at(11)}},
		{name: "nothing", was: Row{Epoch: 1, At: at(10)}, batch: weir.Batch{Epoch: 1}, none: true},
		{name: "the end", was: Row{Epoch: 1, At: at(10)}, known: at(10), batch: weir.Batch{Epoch: 1, Records: numbered(11), End: true},
			todo: []int{11}, next: Row{Epoch: 1, At: at(11), Ended: true}},
		{name: "the end alone", was: Row{Epoch: 1, At: at(10)}, batch: weir.Batch{Epoch: 1, End: true}, next: Row{Epoch: 1, At: at(10), Ended: true}},
		{name: "the end of covered records", was: Row{Epoch: 1, At: at(10)}, batch: weir.Batch{Epoch: 1, Records: numbered(10), End: true}, next: Row{Epoch: 1, At: at(10), Ended: true}},
		{name: "the end again", was: Row{Epoch: 1, At: at(10), Ended: true}, batch: weir.Batch{Epoch: 1, Records: numbered(10), End: true}, none: true},
		{name: "a shard that has ended is read again", was: Row{Epoch: 1, At: at(10), Ended: true}, batch: weir.Batch{Epoch: 1, Records: numbered(9, 10)}, none: true},
		{name: "a shard of the name of one that has ended", was: Row{Epoch: 1, At: at(10), Ended: true}, batch: weir.Batch{Epoch: 1, Records: numbered(20)},
			todo: []int{20}, next: Row{Epoch: 1, At: at(20)}},
		{name: "a later owner was here", was: Row{Epoch: 2, At: at(10)}, batch: weir.Batch{Epoch: 1, Records: numbered(11)}, err: ErrFenced},
		{name: "a later owner was here, as weir calls it", was: Row{Epoch: 2, At: at(10)}, batch: weir.Batch{Epoch: 1, Records: numbered(11)}, err: weir.ErrLeaseLost},
		{name: "the row is gone", gone: true, batch: weir.Batch{Epoch: 1, Records: numbered(11)}, err: ErrSetBack},
		{name: "the row went back", was: Row{Epoch: 1, At: at(9)}, known: at(10), batch: weir.Batch{Epoch: 1, Records: numbered(11)}, err: ErrSetBack},
		{name: "the row went back to the beginning", was: Row{Epoch: 1, At: shard.Oldest}, known: at(10), batch: weir.Batch{Epoch: 1, Records: numbered(11)}, err: ErrSetBack},

		{name: "a partition", k: part, was: Row{Epoch: 1, At: at(10)}, batch: weir.Batch{Epoch: 1, Records: numbered(11, 15)}, todo: []int{11, 15}, next: Row{Epoch: 1, At: at(15)}},
		{name: "an earlier partition has one of them", k: part, was: Row{Epoch: 1, At: at(10)}, old: old, batch: weir.Batch{Epoch: 1, Records: numbered(11, 12)},
			todo: []int{12}, next: Row{Epoch: 1, At: at(12)}},
		{name: "an earlier partition has the last one", k: part, was: Row{Epoch: 1, At: at(9)}, old: old, batch: weir.Batch{Epoch: 1, Records: numbered(10, 11)},
			todo: []int{10}, next: Row{Epoch: 1, At: at(11)}},
		{name: "without partitions, before the earlier partitions are passed", was: Row{Epoch: 1, At: at(8), Split: true}, old: old, batch: weir.Batch{Epoch: 1, Records: numbered(10)},
			todo: []int{10}, next: Row{Epoch: 1, At: at(10), Split: true}},
		{name: "without partitions, when they are passed", was: Row{Epoch: 1, At: at(10), Split: true}, old: old, batch: weir.Batch{Epoch: 1, Records: numbered(11)},
			next: Row{Epoch: 1, At: at(11)}, prune: true},
		{name: "without partitions, at the end", was: Row{Epoch: 1, At: at(8), Split: true}, old: old, batch: weir.Batch{Epoch: 1, End: true},
			next: Row{Epoch: 1, At: at(11), Ended: true}, prune: true, ends: true},
		{name: "without partitions, at an end that has taken effect", was: Row{Epoch: 1, At: at(12), Ended: true, Split: true}, batch: weir.Batch{Epoch: 1, End: true},
			next: Row{Epoch: 1, At: at(12), Ended: true}, prune: true},
	} {
		if c.k == (Key{}) {
			c.k = own
		}
		var v verdict
		err := check(c.k, c.was, !c.gone, c.known, c.batch.Epoch)
		if err == nil {
			v, err = judge(c.k, c.was, c.old, &c.batch)
		}
		if c.err != nil {
			if !errors.Is(err, c.err) {
				t.Errorf("%s: %v, want %v", c.name, err, c.err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(sequences(v.todo), c.todo) || v.none != c.none || v.prunes != c.prune || v.ends != (c.ends || c.next.Ended && !c.prune) || !v.none && v.next != c.next {
			t.Errorf("%s: %+v, %v; want %v to do, then %+v", c.name, v, err, c.todo, c.next)
		}
	}
	if _, err := judge(own, Row{}, nil, &weir.Batch{Records: []weir.Record{{SequenceNumber: "x"}}}); err == nil {
		t.Error("a record without a sequence number was taken")
	}
}

func TestWhoMayWriteTheRowOfAShardWithPartitions(t *testing.T) {
	k := Key{Stream: "orders", Shard: "0"}
	for _, c := range []struct {
		name    string
		was     Row
		gone    bool
		known   weir.Position
		last    weir.Position
		covered bool
		err     error
	}{
		{name: "records after the position", was: Row{Epoch: 2, At: at(9), Split: true}, known: at(9), last: at(10)},
		{name: "records before the position", was: Row{Epoch: 1, At: at(10), Split: true}, known: at(9), last: at(10), covered: true},
		{name: "the shard has ended", was: Row{Epoch: 2, At: at(10), Ended: true}, known: at(9), last: at(10), covered: true},
		{name: "records after the end", was: Row{Epoch: 2, At: at(10), Ended: true}, last: at(11), err: ErrSetBack},
		{name: "no partitions", was: Row{Epoch: 2, At: at(9)}, last: at(10), err: ErrSetBack},
		{name: "a later owner", was: Row{Epoch: 3, At: at(9), Split: true}, last: at(10), err: ErrFenced},
		{name: "a later owner has ended the shard", was: Row{Epoch: 3, At: at(10), Ended: true}, last: at(10), err: ErrFenced},
		{name: "the row is gone", gone: true, last: at(10), err: ErrSetBack},
		{name: "the row went back", was: Row{Epoch: 2, At: at(8), Split: true}, known: at(9), last: at(8), err: ErrSetBack},
	} {
		covered, err := checkSplit(k, c.was, !c.gone, c.known, 2, c.last)
		if covered != c.covered || !errors.Is(err, c.err) {
			t.Errorf("%s: %t, %v; want %t, %v", c.name, covered, err, c.covered, c.err)
		}
	}
}

func TestWhereAMarkMovesTheShard(t *testing.T) {
	old := earlier{}.add(Key{Partition: 1, Of: 2}, at(12))
	for _, c := range []struct {
		name  string
		was   Row
		old   earlier
		mark  weir.Position
		next  Row
		prune bool
	}{
		{"forward", Row{Epoch: 1, At: at(5), Split: true}, nil, at(9), Row{Epoch: 2, At: at(9), Split: true}, false},
		{"not back", Row{Epoch: 1, At: at(9), Split: true}, nil, at(5), Row{Epoch: 2, At: at(9), Split: true}, false},
		{"before earlier partitions", Row{Epoch: 1, At: at(5), Split: true}, old, at(11), Row{Epoch: 2, At: at(11), Split: true}, false},
		{"past earlier partitions", Row{Epoch: 1, At: at(5), Split: true}, old, at(12), Row{Epoch: 2, At: at(12), Split: true}, true},
	} {
		if next, prune := judgeMark(c.was, c.old, 2, c.mark); next != c.next || prune != c.prune {
			t.Errorf("%s: %+v, %t; want %+v, %t", c.name, next, prune, c.next, c.prune)
		}
	}
}

// The error that weir receives does not name a record, but keeps its other properties.
func TestAnUnnamedError(t *testing.T) {
	own := errors.New("own")
	for _, err := range []error{own, weir.Stop(own), weir.Reject(own), errors.Join(ErrFenced, own)} {
		hidden := unnamed{weir.FailedAt(weir.Record{}, err)}
		if _, named := weir.FailedRecord(hidden); named || !errors.Is(hidden, own) || hidden.Error() != err.Error() {
			t.Errorf("%v became %v", err, hidden)
		}
	}
	var p *weir.PanicError
	if !errors.As(unnamed{&weir.PanicError{Who: "it"}}, &p) || p.Who != "it" {
		t.Error("the type of an error is not found")
	}
}
