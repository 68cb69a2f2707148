package queue

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/guard"
)

// part is a record of a delivery, with what the filter decides about it.
type part struct {
	rec     Record
	verdict verdict
}

// verdict is what becomes of a record because of the filter.
type verdict uint8

const (
	pass verdict = iota
	drop
	refuse // FailNotJSON applies: the record fails without a call of the handler
	unread // the filter panicked, which is a failure like that; the filter decides later
)

var errNotJSON = errors.New("weir: the payload is not JSON, which the filter needs")

// unpack returns the records of a delivery. It is called concurrently.
func (o *Options) unpack(d *Delivery, queue string) []part {
	rec := Record{
		Data: d.Data, Queue: queue, PartitionKey: d.PartitionKey, ID: d.RecordID, Arrived: d.Arrived, FirstReceived: d.FirstReceived, ReceiveCount: d.ReceiveCount,
	}
	if !o.KeepPacked && aggregate.Marked(d.Data) {
		var a aggregate.Aggregate
		if ok, _ := a.Parse(d.Data); ok { // a damaged aggregate is handed over unchanged
			var parts []part
			for sub := range a.All() {
				p := rec
				p.Data, p.PartitionKey, p.Sub, p.Tags = sub.Data(), sub.PartitionKey(), int(sub.Sub())+1, sub.Tags()
				parts = append(parts, part{rec: p})
			}
			return parts
		}
	}
	return []part{{rec: rec}}
}

// filtered has the numbers of records that the filter dropped and that it could not read.
type filtered struct{ dropped, notJSON int }

// unpackAll returns the records of an answer, and what the filter decides about them.
func (o *Options) unpackAll(all []Delivery, queue string) (parts [][]part, n filtered) {
	parts = make([][]part, len(all))
	for i := range all {
		parts[i] = o.unpack(&all[i], queue)
		for j := range parts[i] {
			p := &parts[i][j]
			var isJSON bool
			p.verdict, isJSON, _ = o.judge(&p.rec)
			if !isJSON {
				n.notJSON++
			}
			if p.verdict == drop {
				n.dropped++
			}
		}
	}
	return parts, n
}

// judge applies the filter to a record. err is the reason to refuse it.
func (o *Options) judge(r *Record) (v verdict, isJSON bool, err error) {
	if o.Filter.By == nil {
		return pass, true, nil
	}
	var matches bool
	err = guard.Call(func() error {
		matches, isJSON = o.Filter.By.Match(r.Data, r.PartitionKey, r.Arrived)
		return nil
	})
	if p := (*guard.Panic)(nil); errors.As(err, &p) {
		err = &weir.PanicError{Who: "Options.Filter", Value: p.Value, Stack: p.Stack}
	}
	switch {
	case err != nil:
		return unread, true, err
	case isJSON && matches:
		return pass, true, nil
	case isJSON:
		return drop, true, nil
	case o.Filter.NotJSON == weir.FailNotJSON:
		return refuse, false, weir.Reject(errNotJSON)
	case o.Filter.NotJSON == weir.DropNotJSON:
		return drop, false, nil
	}
	return pass, false, nil
}

// retryFilter applies the filter again to a record that it refused or could not decide about. It
// calls the handler only if the record passes now. n has the new decision.
func (r *run) retryFilter(ctx context.Context, records []Record, before verdict) (n filtered, err error) {
	v, isJSON, err := r.options.judge(&records[0])
	if !isJSON && before == unread {
		n.notJSON = 1
	}
	switch v {
	case drop:
		n.dropped = 1
	case pass:
		err = r.handler.handle(ctx, records)
	}
	return n, err
}

// dropped finishes a record that the filter dropped after it had panicked.
func (r *run) dropped(t *task) {
	r.ready--
	t.cancel = nil
	r.finish(t)
}

// tellFiltered counts and reports records that the filter dropped or could not read.
func (r *run) tellFiltered(n filtered, at time.Time) {
	if n.dropped+n.notJSON == 0 {
		return
	}
	r.count(func(c *Counts) {
		c.Filtered += n.dropped
		c.NotJSON += n.notJSON
	})
	tell(r, r.options.Events.Filtered, Filtered{Time: at, Dropped: n.dropped, NotJSON: n.notJSON})
}
