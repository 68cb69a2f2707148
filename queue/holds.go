package queue

import (
	"context"
	"time"

	"github.com/weir-go/weir/internal/retry"
)

// keepHolds extends the holds that are due and ends the lost ones.
func (r *run) keepHolds(now time.Time) {
	var batch []*delivery
	var lengths []time.Duration
	send := func() {
		if len(batch) > 0 {
			r.extend(batch, lengths, now)
			batch, lengths = nil, nil
		}
	}
	for d, ok := r.holds.pop(now); ok; d, ok = r.holds.pop(now) {
		do, length, again := d.hold.decide(now)
		switch {
		case do == stepLose:
			r.lose(d, "")
			continue
		case do == stepExtend && r.extending >= mostCalls:
			again = earlier(again, now.Add(100*time.Millisecond))
		case do == stepExtend:
			d.hold.asked = true
			batch, lengths = append(batch, d), append(lengths, length)
			if len(batch) == mostPerCall {
				send()
			}
		}
		r.holds.set(d, again)
	}
	if len(batch) > 0 { // a call for few holds may also extend those that are due soon
		soon := now.Add(r.options.Hold / 8)
		for d, ok := r.holds.pop(soon); ok; d, ok = r.holds.pop(soon) {
			do, length, _ := d.hold.decide(d.at)
			if do != stepExtend || len(batch) == mostPerCall {
				r.holds.set(d, d.at)
				break
			}
			d.hold.asked = true
			batch, lengths = append(batch, d), append(lengths, length)
			r.holds.set(d, d.hold.until)
		}
	}
	send()
}

// extend asks for extensions of up to ten holds.
func (r *run) extend(batch []*delivery, lengths []time.Duration, now time.Time) {
	entries := make([]Visibility, len(batch))
	for i, d := range batch {
		entries[i] = Visibility{d.ReceiptHandle, lengths[i]}
	}
	r.extending++
	r.start(func() func() {
		// A silent call must leave time for another one.
		ctx, cancel := context.WithTimeout(r.calls, min(callTimeout, r.options.Hold/5))
		defer cancel()
		out, err := r.api.SetVisibility(ctx, r.arn, entries)
		return func() {
			r.extending--
			r.extended(batch, entries, &out, err, now)
		}
	})
}

// extended takes the result of extensions that were sent at the time sent.
func (r *run) extended(batch []*delivery, entries []Visibility, out *BatchOutput, err error, sent time.Time) {
	now, done := time.Now(), 0
	if err != nil {
		r.failed(err, "an extension of holds failed")
	}
	for i, d := range batch {
		code, k, failed := outcomeOf(entries[i].ReceiptHandle, out, err)
		if !failed {
			done++
		}
		if r.deliveries[d.RecordID] != d || d.ReceiptHandle != entries[i].ReceiptHandle || d.hold.lost {
			continue // it has ended, or has arrived again
		}
		switch {
		case !failed:
			d.hold.extended(sent, entries[i].Hold)
		case k.again() || d.sending: // an acknowledgement in flight decides
			if d.acking {
				d.ackAt = now // while the hold lasts
			}
			d.hold.extensionFailed(now, retry.Pause(200*time.Millisecond, min(time.Second, d.hold.length/8), d.hold.failures+1))
		default:
			r.lose(d, code)
			continue
		}
		r.holds.set(d, now) // decide again
	}
	r.count(func(n *Counts) { n.VisibilityCalls++; n.Extended += done })
}

// lose ends the hold of a delivery. Records that no handler has are given up, because the queue
// delivers them again. A handled one is acknowledged once more.
func (r *run) lose(d *delivery, code string) {
	phase := d.phase()
	d.hold.lost = true
	r.holds.set(d, time.Time{})
	r.count(func(n *Counts) { n.HoldsLost++ })
	r.spend(d)
	tell(r, r.options.Events.HoldLost, HoldLost{Time: time.Now(), RecordID: d.RecordID, Phase: phase, Code: code})
	switch phase {
	case Acknowledging:
		d.ackAt, d.late = time.Now(), true
		return
	case Waiting, Backoff:
		r.drop(d)
		return
	}
	d.late = true
	for _, t := range d.tasks {
		switch {
		case t.state == taskRunning && t.cancel != nil:
			t.cancel(ErrHoldLost)
		case t.state != taskDone && t.state != taskStoring:
			t.enter(r, taskGone)
		}
	}
}
