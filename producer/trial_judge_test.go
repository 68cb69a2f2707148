package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/kinesistest"
)

// spot is the place of a record in the stream, with its tag.
type spot struct {
	shard, sequence string
	sub             int
	tag             string
	number          aggregate.Number
}

// judge compares the outcomes with the stream.
func (tr *trial) judge() {
	copies := copiesOf(tr.server)
	got, _ := history(tr.server, rangesOf(tr.T, lister(tr.T, tr.server)))
	for _, w := range tr.writers {
		tr.judgeCounts(w)
		for _, r := range w.records {
			tr.judgeRecord(w, r, copies[r.data])
			delete(copies, r.data)
		}
		tr.judgeOrder(w, got)
	}
	for data := range copies {
		tr.failf("the stream has %.20q, which no writer put", data)
	}
	for _, w := range tr.writers {
		tr.Logf("%s: %s; Close returns %v; %+v", w.name, w.outcomes(), w.closed, w.p.Counts())
	}
}

// outcomes returns how many records have each outcome.
func (w *writer) outcomes() string {
	n := map[string]int{}
	for _, r := range w.records {
		var failed *Error
		switch {
		case r.pending == nil:
			n["not accepted"]++
		case r.result.Repeated:
			n["stored, repeated"]++
		case r.err == nil:
			n["stored"]++
		case errors.As(r.err, &failed) && failed.MaybeStored:
			n["maybe stored"]++
		default:
			n[failed.reason.Error()]++
		}
	}
	return fmt.Sprint(n)
}

// copiesOf returns the places of each payload. Payloads are unique.
func copiesOf(server *kinesistest.Server) map[string][]spot {
	copies := map[string][]spot{}
	for _, r := range server.Records("s") {
		var a aggregate.Aggregate
		if packed, _ := a.Parse(r.Data); !packed {
			data := string(r.Data)
			copies[data] = append(copies[data], spot{shard: r.Shard, sequence: r.SequenceNumber})
			continue
		}
		for sub := range a.All() {
			data := string(sub.Data())
			tag, _ := sub.Tags().Get("n")
			copies[data] = append(copies[data], spot{r.Shard, r.SequenceNumber, int(sub.Sub()), tag, sub.Number()})
		}
	}
	return copies
}

// judgeRecord checks that a record has exactly one outcome, and that the outcome agrees with the
// stream.
func (tr *trial) judgeRecord(w *writer, r *written, copies []spot) {
	tr.Helper()
	if r.pending == nil {
		if r.calls != 0 || len(copies) != 0 {
			tr.failf("%.20q, not accepted: %d callbacks, %d copies", r.data, r.calls, len(copies))
		}
		return
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	result, err := r.pending.Wait(ended)
	if r.calls != 1 || result != r.result || err != r.err { //nolint:errorlint // the same error
		tr.failf("%.20q has %d callbacks with %+v, %v; Wait returns %+v, %v",
			r.data, r.calls, r.result, r.err, result, err)
	}
	if err == nil {
		at := spot{shard: result.Shard, sequence: result.SequenceNumber, sub: result.SubSequenceNumber, tag: r.tag}
		if result.Untagged {
			at.tag = ""
		}
		if w.options.Numbered && !result.Unnumbered {
			at.number = tr.judgeNumber(r, copies)
		}
		if !slices.Contains(copies, at) || result.Attempts < 1 {
			tr.failf("%.20q is at %v, not at %+v", r.data, copies, result)
		}
		if !result.Repeated && len(copies) != 1 {
			tr.failf("%.20q is stored %d times: %+v", r.data, len(copies), result)
		}
		return
	}
	var failed *Error
	if !errors.As(err, &failed) || result != (Result{}) {
		tr.failf("%.20q has %+v, %#v", r.data, result, err)
	}
	if !failed.MaybeStored && len(copies) > 0 || failed.MaybeStored && failed.Attempts == 0 {
		tr.failf("%.20q is stored %d times, after %d attempts: %v",
			r.data, len(copies), failed.Attempts, err)
	}
	allowed := errors.Is(err, ErrRefused) ||
		errors.Is(err, ErrExpired) && w.options.MaxAge > 0 ||
		errors.Is(err, ErrStopped) && w.options.StopOnFailure ||
		errors.Is(err, ErrClosed) && w.closed != nil
	if !allowed {
		tr.failf("%.20q fails with %v; Close returns %v", r.data, err, w.closed)
	}
}

// judgeNumber checks that all numbered copies of a record have the same number, which no other
// record has.
func (tr *trial) judgeNumber(r *written, copies []spot) (n aggregate.Number) {
	tr.Helper()
	for _, c := range copies {
		switch {
		case c.number.IsZero():
		case n.IsZero():
			n = c.number
		case n != c.number:
			tr.failf("%.20q has the numbers %v and %v", r.data, n, c.number)
		}
	}
	if other := tr.numbers[n]; other != "" || n.IsZero() {
		tr.failf("%.20q has the number %v, as %.20q", r.data, n, other)
	}
	tr.numbers[n] = r.data
	return n
}

// judgeCounts compares the counters and the result of Close with the records.
func (tr *trial) judgeCounts(w *writer) {
	tr.Helper()
	var accepted, stored, failed, closed uint64
	for _, r := range w.records {
		switch {
		case r.pending == nil:
			continue
		case r.err == nil:
			stored++
		case errors.Is(r.err, ErrClosed):
			closed++
			failed++
		default:
			failed++
		}
		accepted++
	}
	c := w.p.Counts()
	if c.Records != accepted || c.Stored != stored || c.Failed != failed {
		tr.failf("%s: %d accepted, %d stored, %d failed: %+v", w.name, accepted, stored, failed, c)
	}
	if c.BufferedRecords != 0 || c.BufferedBytes != 0 || c.InFlight != 0 ||
		c.Blocked != 0 || c.CallbacksWaiting != 0 {
		tr.failf("%s: something remains: %+v", w.name, c)
	}
	var codes uint64
	for _, n := range c.Codes {
		codes += n
	}
	if codes != c.Throttled+c.Postponed+c.Unknown+c.Unsigned+c.Invalid {
		tr.failf("%s: the codes do not add up: %+v", w.name, c)
	}
	remaining := &RemainingError{}
	if w.closed != nil && !errors.As(w.closed, &remaining) {
		tr.failf("%s: Close returns %v", w.name, w.closed)
	}
	if n := uint64(remaining.Records); n < closed || n > failed || w.closed != nil && n == 0 {
		tr.failf("%s: Close returns %v; %d records failed, %d because of it",
			w.name, w.closed, failed, closed)
	}
}

// judgeOrder checks the order of each key: in the history of the stream, and of callbacks. If a
// writer stops at a failure, the stored records of each key are the first ones that were put.
func (tr *trial) judgeOrder(w *writer, got map[string][]string) {
	tr.Helper()
	want, stopped := map[string][]string{}, map[string]bool{}
	for _, r := range w.records {
		switch {
		case r.pending == nil:
		case r.err != nil:
			stopped[r.key] = true
		case stopped[r.key] && w.options.StopOnFailure && !w.options.Unordered:
			tr.failf("%.20q is stored, and an older record of its key is not", r.data)
		default:
			want[r.key] = append(want[r.key], r.data)
		}
	}
	for key, all := range want {
		have := got[key]
		called := []string{}
		for _, r := range w.calls[key] {
			if r.err == nil {
				called = append(called, r.data)
			}
		}
		has := map[string]bool{}
		for _, data := range all {
			has[data] = true
		}
		have = slices.DeleteFunc(slices.Clone(have), func(data string) bool { return !has[data] })
		if w.options.Unordered {
			slices.Sort(have)
			slices.Sort(called)
		}
		if !slices.Equal(have, all) {
			tr.failf("consumers get %d of %d records of %s, in order: %v",
				len(have), len(all), key, slices.IsSorted(have))
		}
		if !slices.Equal(called, all) {
			tr.failf("%d of %d callbacks of %s, in order: %v",
				len(called), len(all), key, slices.IsSorted(called))
		}
	}
}
