package queue

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/retry"
)

// acks contains the deliveries that wait for their acknowledgements.
type acks struct {
	queue []*delivery // without those in flight
	calls int         // in flight
}

// release is a record that becomes visible again.
type release struct {
	handle string
	delay  time.Duration
}

// acknowledge sends the acknowledgements that are due, and returns when the next one is.
func (r *run) acknowledge(now time.Time) (next time.Time) {
	for r.acks.calls < mostCalls {
		var batch []*delivery
		if batch, next = r.acks.take(now, r.stopping); len(batch) == 0 {
			return next
		}
		r.sendAcks(batch, now)
	}
	return time.Time{}
}

// take removes the next batch from the queue. A batch is due when one of its entries is, or when it
// is full. While the run stops, entries that have not failed are due at once.
func (a *acks) take(now time.Time, stopping bool) (batch []*delivery, next time.Time) {
	fresh, due := 0, false
	for _, d := range a.queue {
		if d.ackFails == 0 {
			fresh++
		}
		if !d.ackAt.After(now) {
			due = true
		}
		next = earlier(next, d.ackAt)
	}
	if !due && fresh < mostPerCall && (!stopping || fresh == 0) {
		return nil, next
	}
	var handles []string
	rest := a.queue[:0]
	for _, d := range a.queue {
		if len(batch) < mostPerCall && (d.ackFails == 0 || !d.ackAt.After(now)) && !slices.Contains(handles, d.ReceiptHandle) {
			batch, handles = append(batch, d), append(handles, d.ReceiptHandle)
			continue
		}
		rest = append(rest, d)
	}
	clear(a.queue[len(rest):])
	a.queue = rest
	return batch, next
}

// sendAcks acknowledges a batch.
func (r *run) sendAcks(batch []*delivery, now time.Time) {
	handles := make([]string, len(batch))
	for i, d := range batch {
		handles[i], d.sending = d.ReceiptHandle, true
	}
	r.acks.calls++
	r.start(func() func() {
		ctx, cancel := context.WithTimeout(r.calls, callTimeout)
		defer cancel()
		out, err := r.api.Acknowledge(ctx, r.arn, handles)
		end := time.Now()
		return func() {
			r.acks.calls--
			r.acknowledged(batch, handles, &out, err, now, end)
		}
	})
}

// acknowledged takes the result of a batch.
func (r *run) acknowledged(batch []*delivery, handles []string, out *BatchOutput, err error, began, end time.Time) {
	e := Acknowledged{Time: began, Took: end.Sub(began), Records: len(batch), Err: err}
	if err != nil {
		r.failed(err, "an acknowledgement failed")
	}
	done := 0
	for i, d := range batch {
		d.sending = false
		code, k, failed := outcomeOf(handles[i], out, err)
		switch {
		case !failed:
			done++
			r.finished.remove(d.RecordID)
			r.endAck(d, true, "")
		case d.ReceiptHandle != handles[i]: // it has arrived again meanwhile
			e.Again++
			r.ackAgain(d, end)
		case k.again() && !d.hold.lost:
			e.Again++
			e.Code = code
			d.ackFails++
			r.ackAgain(d, end.Add(retry.Pause(100*time.Millisecond, 5*time.Second, d.ackFails)))
		default:
			e.Failed++
			e.Code = code
			r.finished.addAll(d.RecordID)
			r.endAck(d, false, code)
		}
	}
	r.count(func(n *Counts) {
		n.AckCalls++
		n.Acknowledged += done
		n.NotAcknowledged += e.Failed
	})
	if e.Failed > 0 {
		r.options.Logger.Warn("handled records could not be acknowledged; they may be handled again", "queue", r.options.Queue, "records", e.Failed, "code", e.Code)
	}
	tell(r, r.options.Events.Acknowledged, e)
}

// ackAgain returns a delivery to the queue of acknowledgements.
func (r *run) ackAgain(d *delivery, at time.Time) {
	d.ackAt = at
	r.acks.queue = append(r.acks.queue, d)
}

// endAck ends a delivery after its acknowledgement.
func (r *run) endAck(d *delivery, ok bool, code string) {
	if !ok && r.stopping {
		r.unacked++
	}
	if d.late {
		tell(r, r.options.Events.HandledLate, HandledLate{Time: time.Now(), RecordID: d.RecordID, Acknowledged: ok, Code: code})
		r.options.Logger.Warn("a record was handled after its hold was lost; it may have been handled twice", "queue", r.options.Queue, "record", d.RecordID, "acknowledged", ok)
	}
	r.drop(d)
}

// outcomeOf returns the outcome of one entry of a batch.
func outcomeOf(handle string, out *BatchOutput, err error) (code string, k kind, failed bool) {
	if err != nil {
		k = kindOf(err)
		var coded interface{ ErrorCode() string }
		if errors.As(err, &coded) {
			code = coded.ErrorCode()
		}
		if k == denied { // permissions can return while the hold lasts
			k = transient
		}
		return code, k, true
	}
	for _, f := range out.Failed {
		if f.ReceiptHandle == handle {
			return f.Code, codeKind(f.Code), true
		}
	}
	return "", 0, false
}

// release makes records visible again. A failure is not repeated, because the hold ends by itself.
func (r *run) release() {
	for len(r.releases) > 0 && r.releasing < mostCalls {
		n := min(len(r.releases), mostPerCall)
		entries := make([]Visibility, n)
		for i, of := range r.releases[:n] {
			entries[i] = Visibility{of.handle, of.delay}
		}
		r.releases = r.releases[n:]
		r.releasing++
		r.start(func() func() {
			ctx, cancel := context.WithTimeout(r.calls, callTimeout)
			defer cancel()
			_, err := r.api.SetVisibility(ctx, r.arn, entries)
			return func() {
				r.releasing--
				r.count(func(n *Counts) { n.VisibilityCalls++ })
				if err != nil {
					r.failed(err, "records could not be released; they return when their holds end")
				}
			}
		})
	}
}
