package delivery

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/failure"
	"github.com/weir-go/weir/internal/proof/pooled"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

var from = &source.Origin{Stream: "s", Shard: "1"}

// begun returns the delivery of the records 1 to n.
func begun(n int, b Batch) *Delivery {
	run := make([]source.Record, n)
	for i := range run {
		run[i] = source.Record{SequenceNumber: strconv.Itoa(i + 1), Done: shard.Whole, Key: "key"}
	}
	d := &Delivery{From: from}
	d.Begin(b, Keep(run, from))
	return d
}

func position(t *testing.T, n int) shard.Position {
	t.Helper()
	p, err := shard.After(strconv.Itoa(n))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// doneTo marks the records up to n as done, for the first batch.
func (d *Delivery) doneTo(n int) Noted { return d.MarkDone(1, strconv.Itoa(n), shard.Whole, nil) }

// A reused delivery equals a new one.
func TestADeliveryIsUsedAgain(t *testing.T) {
	run := []source.Record{{SequenceNumber: "7", Done: shard.Whole}}
	d, fresh := &Delivery{From: from}, &Delivery{From: from}
	pooled.Fill(d, "From", "use")
	if use := d.Begin(Batch{Behind: time.Second}, Keep(run, from)); use != 1 {
		t.Errorf("the first use is %d", use)
	}
	fresh.Begin(Batch{Behind: time.Second}, Keep(run, from))
	for _, difference := range pooled.Differences(d, fresh) {
		t.Errorf("%s is not reset", difference)
	}
	if n := d.MarkDone(0, "7", shard.Whole, nil); n.Found || !n.Over || !n.Whole || d.Done() != 0 {
		t.Errorf("a batch of an earlier use notes %+v, %d are done", n, d.Done())
	}
}

// The records of the next call depend on the earlier calls.
func TestWhatTheNextCallGets(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
		name     string
		records  int
		batch    Batch
		before   func(d *Delivery)
		filtered bool
		from, n  int // n < 0 means that there is no call
		end      bool
		upTo     int
	}{
		{"all of it", 4, Batch{}, func(*Delivery) {}, false, 0, 4, false, 0},
		{"with the end of the shard", 4, Batch{End: true}, func(*Delivery) {}, false, 0, 4, true, 0},
		{"what is not done", 4, Batch{}, func(d *Delivery) { d.doneTo(3) }, false, 3, 1, false, 0},
		{"nothing, because all is done", 4, Batch{}, func(d *Delivery) { d.doneTo(4) }, false, 0, -1, false, 0},
		{"the end alone", 4, Batch{End: true}, func(d *Delivery) { d.doneTo(4) }, false, 4, 0, true, 0},
		{"an idle call", 0, Batch{Idle: true}, func(*Delivery) {}, false, 0, 0, false, 0},
		{"one record", 4, Batch{End: true}, func(d *Delivery) { d.Single() }, false, 0, 1, false, 1},
		{"the last record by itself", 4, Batch{End: true}, func(d *Delivery) { d.doneTo(3); d.Single() }, false, 3, 1, true, 0},
		{"the first half", 5, Batch{End: true}, func(d *Delivery) { d.Next(false); d.NoteFailure(failed, false, time.Now()); d.Halve(5) }, false, 0, 3, false, 3},
		{"a quarter", 5, Batch{}, func(d *Delivery) { d.Next(false); d.Halve(5); d.Next(false); d.Halve(3) }, false, 0, 2, false, 2},
		{"the other half", 5, Batch{End: true}, func(d *Delivery) { d.Next(false); d.Halve(5); d.Next(false); d.Advance() }, false, 3, 2, true, 0},
		{"what follows a record that was passed over", 3, Batch{}, func(d *Delivery) { d.PassOver() }, false, 1, 2, false, 0},
		{"what follows records that were dead-lettered", 3, Batch{}, func(d *Delivery) { d.GaveUp(failure.Verdict{Records: 2}, 2) }, false, 2, 1, false, 0},
		{"what is before one that a filter failed at", 4, Batch{}, func(d *Delivery) { d.records.all[2].Failed = true }, true, 0, 2, false, 2},
		{"one that a filter failed at", 4, Batch{}, func(d *Delivery) { d.records.all[0].Failed = true }, true, 0, 1, false, 1},
	} {
		d := begun(c.records, c.batch)
		c.before(d)
		p, some := d.Next(c.filtered)
		want := shard.Position{}
		if c.upTo > 0 {
			want = position(t, c.upTo)
		}
		if !some {
			p.Records = nil
		}
		if some != (c.n >= 0) || len(p.Records) != max(c.n, 0) || p.From != c.from || p.End != c.end || p.UpTo != want || some && p.Use != 1 {
			t.Errorf("%s: %t, from %d, %+v", c.name, some, p.From, p)
		}
	}
}

// MarkDone moves the position that heartbeats report.
func TestWhatIsNotedAsDone(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(d *Delivery)
		record int
		part   int // index of the end of the part; 0 for all records
		want   Noted
		mark   int
	}{
		{"the first", func(*Delivery) {}, 1, 0, Noted{Found: true, Done: 1}, 1},
		{"a later one", func(*Delivery) {}, 3, 0, Noted{Found: true, Done: 3}, 3},
		{"an earlier one", func(d *Delivery) { d.doneTo(3) }, 2, 0, Noted{Found: true, Done: 3}, 3},
		{"one of another batch", func(*Delivery) {}, 9, 0, Noted{}, 0},
		{"the last of a part", func(*Delivery) {}, 2, 2, Noted{Found: true, Done: 2}, 2},
		{"one of a later part", func(*Delivery) {}, 3, 2, Noted{}, 0},
		{"when all is done", func(d *Delivery) { d.Finish() }, 2, 0, Noted{Found: true, Whole: true, Done: 4}, 4},
		{"when the records are gone", func(d *Delivery) { d.Finish(); d.Close() }, 2, 0, Noted{Found: true, Over: true, Whole: true, Done: 4}, 0},
		{"a later one when the records are gone", func(d *Delivery) { d.Finish(); d.Close() }, 5, 0, Noted{Over: true, Whole: true, Done: 4}, 0},
		{"when it is over and not all is done", func(d *Delivery) { d.doneTo(1); d.Close() }, 2, 0, Noted{Over: true, Done: 1}, 0},
		{"when it serves another key", func(d *Delivery) { d.Complete() }, 2, 0, Noted{Over: true, Whole: true, Done: 4}, 0},
	} {
		d := begun(4, Batch{})
		c.before(d)
		var part *shard.Position
		if c.part > 0 {
			p := position(t, c.part)
			part = &p
		}
		got := d.MarkDone(1, strconv.Itoa(c.record), shard.Whole, part)
		want := shard.Position{}
		if c.mark > 0 {
			want = position(t, c.mark)
		}
		if got != c.want || d.Mark() != want {
			t.Errorf("%s: %+v, want %+v; the mark is %v, want %v", c.name, got, c.want, d.Mark(), want)
		}
	}
}

// An error may name a record of the call. The call has the records 3 to 5 of six.
func TestWhatAnErrorBlames(t *testing.T) {
	name := func(n int) Named { return Named{SequenceNumber: strconv.Itoa(n), Done: shard.Whole} }
	elsewhere, rejected, untried := name(4), name(4), name(4)
	elsewhere.Elsewhere, rejected.Rejected, untried.Untried = true, true, 9
	for _, c := range []struct {
		name  string
		named []Named
		done  int
		want  failure.Blame
		place failure.Placing
		then  int
	}{
		{"the first", []Named{name(3)}, 2, failure.Blame{Named: true}, failure.NamedHere, 2},
		{"a later one", []Named{name(4)}, 2, failure.Blame{Named: true}, failure.NamedHere, 3},
		{"the first of two", []Named{name(5), rejected}, 2, failure.Blame{Named: true, Rejected: true}, failure.NamedHere, 3},
		{"what is too old, as far as it was handed over", []Named{untried}, 2, failure.Blame{Named: true, Untried: 2}, failure.NamedHere, 3},
		{"one of another shard", []Named{elsewhere}, 2, failure.Blame{}, failure.NamedOther, 2},
		{"one that was not handed over", []Named{name(6)}, 2, failure.Blame{}, failure.NamedOther, 2},
		{"one that was done before", []Named{name(1)}, 2, failure.Blame{}, failure.NamedOther, 2},
		{"one that was noted as done", []Named{name(3)}, 4, failure.Blame{Denied: true}, failure.NamedDone, 4},
	} {
		d := begun(6, Batch{})
		d.doneTo(2)
		d.Next(false)
		d.ends = []int{5}
		d.done = c.done
		of, place := d.Blame(c.named)
		if of != c.want || place != c.place || d.Done() != c.then {
			t.Errorf("%s: %+v, %d, %d done; want %+v, %d, %d", c.name, of, place, d.Done(), c.want, c.place, c.then)
		}
	}
}

// Failing describes the batch or the record at which the handler fails.
func TestWhatFails(t *testing.T) {
	const hash = "2c70e12b" // hash of the key
	for _, c := range []struct {
		name   string
		before func(d *Delivery)
		want   lease.Failing
	}{
		{"a batch", func(d *Delivery) { d.NoteFailure(nil, false, time.Now()) }, lease.Failing{Attempts: 1, Records: 3, KeyHash: hash, At: "1"}},
		{"a record of it", func(d *Delivery) { d.doneTo(1); d.NoteFailure(nil, true, time.Now()) }, lease.Failing{Attempts: 1, Records: 1, KeyHash: hash, At: "2"}},
		{"the last record", func(d *Delivery) { d.doneTo(2); d.NoteFailure(nil, false, time.Now()) }, lease.Failing{Attempts: 1, Records: 1, KeyHash: hash, At: "3"}},
		{"a record that may not be dead-lettered yet", func(d *Delivery) { d.NoteFailure(nil, true, time.Now()); d.Held = failure.WaitForOthers },
			lease.Failing{Attempts: 1, Records: 1, KeyHash: hash, At: "1", Held: lease.HeldForOutage}},
		{"… because of the rate", func(d *Delivery) { d.NoteFailure(nil, true, time.Now()); d.Held = failure.WaitForRoom },
			lease.Failing{Attempts: 1, Records: 1, KeyHash: hash, At: "1", Held: lease.HeldRate}},
		{"the end of the shard", func(d *Delivery) { d.doneTo(3); d.NoteFailure(nil, false, time.Now()) }, lease.Failing{Attempts: 1}},
	} {
		d := begun(3, Batch{End: true})
		c.before(d)
		if got := d.Failing(); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
