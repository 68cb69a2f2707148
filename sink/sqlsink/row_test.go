package sqlsink

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/shard"
)

// numbered returns records with these sequence numbers. at returns the position after one of them.
func numbered(numbers ...int) (all []weir.Record) {
	for _, n := range numbers {
		all = append(all, weir.Record{SequenceNumber: strconv.Itoa(n)})
	}
	return all
}

func at(n int) weir.Position { return numbered(n)[0].Position() }

func TestWhatBecomesOfABatch(t *testing.T) {
	for _, c := range []struct {
		name  string
		was   row
		gone  bool
		known weir.Position
		batch weir.Batch
		todo  int // number of remaining records, counted from the end
		next  row
		none  bool
		err   error
	}{
		{name: "the first of a shard", was: row{at: shard.Oldest}, known: shard.Oldest, batch: weir.Batch{Epoch: 1, Records: numbered(9, 10)},
			todo: 2, next: row{epoch: 1, at: at(10)}},
		{name: "the first after the tip", batch: weir.Batch{Epoch: 1, Records: numbered(9)}, todo: 1, next: row{epoch: 1, at: at(9)}},
		{name: "all is covered", was: row{1, at(10), false}, known: at(9), batch: weir.Batch{Epoch: 2, Records: numbered(9, 10)}, none: true},
		{name: "some are covered", was: row{1, at(10), false}, known: at(10), batch: weir.Batch{Epoch: 2, Records: numbered(9, 10, 11)},
			todo: 1, next: row{epoch: 2, at: at(11)}},
		{name: "nothing", was: row{1, at(10), false}, batch: weir.Batch{Epoch: 1}, none: true},
		{name: "the end", was: row{1, at(10), false}, known: at(10), batch: weir.Batch{Epoch: 1, Records: numbered(11), End: true},
			todo: 1, next: row{1, at(11), true}},
		{name: "the end alone", was: row{1, at(10), false}, batch: weir.Batch{Epoch: 1, End: true}, next: row{1, at(10), true}},
		{name: "the end of covered records", was: row{1, at(10), false}, batch: weir.Batch{Epoch: 1, Records: numbered(10), End: true}, next: row{1, at(10), true}},
		{name: "the end again", was: row{1, at(10), true}, batch: weir.Batch{Epoch: 1, Records: numbered(10), End: true}, none: true},
		{name: "a shard that has ended is read again", was: row{1, at(10), true}, batch: weir.Batch{Epoch: 1, Records: numbered(9, 10)}, none: true},
		{name: "a shard of the name of one that has ended", was: row{1, at(10), true}, batch: weir.Batch{Epoch: 1, Records: numbered(20)},
			todo: 1, next: row{1, at(20), false}},
		{name: "a later owner was here", was: row{2, at(10), false}, batch: weir.Batch{Epoch: 1, Records: numbered(11)}, err: ErrFenced},
		{name: "a later owner was here, as weir calls it", was: row{2, at(10), false}, batch: weir.Batch{Epoch: 1, Records: numbered(11)}, err: weir.ErrLeaseLost},
		{name: "the row is gone", gone: true, batch: weir.Batch{Epoch: 1, Records: numbered(11)}, err: ErrSetBack},
		{name: "the row went back", was: row{1, at(9), false}, known: at(10), batch: weir.Batch{Epoch: 1, Records: numbered(11)}, err: ErrSetBack},
		{name: "the row went back to the beginning", was: row{1, shard.Oldest, false}, known: at(10), batch: weir.Batch{Epoch: 1, Records: numbered(11)}, err: ErrSetBack},
	} {
		v, err := judge(c.was, !c.gone, c.known, &c.batch)
		if c.err != nil {
			if !errors.Is(err, c.err) {
				t.Errorf("%s: %v, want %v", c.name, err, c.err)
			}
			continue
		}
		if err != nil || len(v.todo) != c.todo || v.none != c.none || !v.none && v.next != c.next {
			t.Errorf("%s: %+v, %v; want %d to do, then %+v", c.name, v, err, c.todo, c.next)
		}
	}
	for _, b := range []weir.Batch{{Epoch: 1 << 63}, {Records: []weir.Record{{SequenceNumber: "x"}}}} {
		if _, err := judge(row{}, true, weir.Position{}, &b); err == nil {
			t.Errorf("%+v was taken", b)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "oldest", "latest", "end", "5", "5+3", "2026-01-02T15:04:05Z", "-1", strings.Repeat("9", 129), strings.Repeat("9", 130)} {
		f.Add(int64(1), s, int64(0))
	}
	f.Fuzz(func(t *testing.T, epoch int64, position string, ended int64) {
		r, err := decode(epoch, position, ended)
		if err != nil {
			return
		}
		if again, err := shard.Parse(r.at.String()); err != nil || again != r.at || int64(r.epoch) != epoch || r.ended != (ended == 1) {
			t.Errorf("%d %q %d is %+v, and again %q, %v", epoch, position, ended, r, again, err)
		}
	})
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
