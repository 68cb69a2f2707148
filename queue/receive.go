package queue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// poll is a receive in flight.
type poll struct {
	limit    int
	reserved int64 // memory for its answer; the loop owns it
	began    time.Time
	claim    atomic.Int32 // who has the reservation: unclaimed, claimed or revoked
}

const (
	unclaimed int32 = iota
	claimed         // the answer has begun, and fits
	revoked         // another answer needs the memory, so this one has to wait for memory
)

// admission is an answer that waits for memory.
type admission struct {
	poll  *poll
	bytes int64
	grant chan struct{} // closed when the memory is reserved
	ctx   context.Context
}

// receive starts the receives that the flow allows.
func (r *run) receive(now time.Time) {
	if r.stopping || r.checking || len(r.admissions) > 0 || now.Before(r.pollAgain) {
		return
	}
	for {
		r.flow.held = r.active + max(0, r.pausing-10*r.options.Concurrency) + max(0, len(r.acks.queue)-10*r.options.Concurrency-mostAcks)
		limit, bytes := r.flow.want()
		if limit == 0 {
			return
		}
		p := &poll{limit: limit, reserved: bytes, began: now}
		r.inFlight[p] = true
		r.flow.calls++
		r.flow.asked += limit
		r.flow.reserved += bytes
		r.start(func() func() {
			out, err := r.api.Receive(r.receives, ReceiveInput{
				QueueARN: r.arn, Limit: limit, Wait: r.options.Wait, Hold: r.options.Hold, Admit: r.admitter(p),
			})
			end := time.Now()
			if out.Answered.IsZero() {
				out.Answered = later(p.began, end.Add(-time.Second))
			}
			if latest := p.began.Add(r.options.Wait); out.Answered.After(latest) {
				out.Answered = latest // a frozen process reads an answer later than it was sent
			}
			parts, n := r.options.unpackAll(out.Records, r.arn)
			return func() {
				r.answered(p, &out, parts, err, end)
				r.tellFiltered(n, end)
			}
		})
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// admitter returns the function that makes an answer wait until there is memory for it. An answer
// within its reservation does not wait.
func (r *run) admitter(p *poll) func(context.Context, int64) error {
	reserved := p.reserved
	return func(ctx context.Context, length int64) error {
		data := length * 3 / 4 // base64
		bytes := answerBytes(data)
		if p.claim.CompareAndSwap(unclaimed, claimed) && bytes <= reserved {
			return nil
		}
		a := &admission{poll: p, bytes: bytes, grant: make(chan struct{}), ctx: ctx}
		r.post(func() {
			r.unreserve(p)
			r.flow.largest = max(r.flow.largest, data/int64(p.limit))
			r.admissions = append(r.admissions, a)
		})
		select {
		case <-a.grant:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// admit gives memory to waiting answers, in their order. A single answer always fits, because
// flow.want limits its records. To make room, receives whose answers have not begun lose their
// reservations. Otherwise two answers could wait for each other.
func (r *run) admit() {
	for len(r.admissions) > 0 {
		a := r.admissions[0]
		if a.ctx.Err() == nil && !r.flow.fits(a.bytes) {
			for p := range r.inFlight {
				if p.claim.CompareAndSwap(unclaimed, revoked) {
					r.unreserve(p)
				}
			}
			if !r.flow.fits(a.bytes) {
				return
			}
		}
		r.admissions = r.admissions[1:]
		if a.ctx.Err() == nil {
			a.poll.reserved = a.bytes
			r.flow.reserved += a.bytes
			close(a.grant)
		}
	}
}

// unreserve gives the memory back that is reserved for an answer.
func (r *run) unreserve(p *poll) {
	r.flow.reserved -= p.reserved
	p.reserved = 0
}

// answered handles the result of a receive.
func (r *run) answered(p *poll, out *ReceiveOutput, parts [][]part, err error, end time.Time) {
	delete(r.inFlight, p)
	r.flow.calls--
	r.flow.asked -= p.limit
	r.flow.reserved -= p.reserved
	bytes := 0
	for i := range out.Records {
		bytes += len(out.Records[i].Data)
	}
	tell(r, r.options.Events.Received, Received{Time: p.began, Took: end.Sub(p.began), Limit: p.limit, Records: len(out.Records), Bytes: bytes, Err: err})
	r.count(func(n *Counts) {
		n.Receives++
		switch {
		case err != nil && kindOf(err) != canceled:
			n.FailedReceives++
		case len(out.Records) == 0:
			n.EmptyReceives++
		}
	})
	if err != nil {
		r.receiveFailed(err)
		return
	}
	r.received = true
	r.stand(func(s *standing) { s.receiveWorked(end) })
	r.polls.Reset()
	r.flow.answered(p.limit, len(out.Records), end.Sub(p.began))
	for i, rec := range out.Records {
		r.arrive(rec, parts[i], out.Answered)
	}
}

// receiveFailed decides what follows a failed receive.
func (r *run) receiveFailed(err error) {
	if r.stopping {
		return
	}
	k := kindOf(err)
	r.stand(func(s *standing) { s.receiveFailed(err, time.Now()) })
	r.flow.allowed = 1
	r.pollAgain = time.Now().Add(r.polls.Next())
	switch {
	case k == missing:
		r.checkQueue(err)
	case (k == denied || k == invalid) && !r.received:
		r.stop(fmt.Errorf("weir: the queue %s cannot be received from: %w", r.arn, err))
	default:
		r.failed(err, "a receive failed; weir tries again")
	}
}

// checkQueue stops the run if the queue no longer exists.
func (r *run) checkQueue(why error) {
	if r.checking {
		return
	}
	r.checking = true
	r.start(func() func() {
		d, err := r.api.DescribeQueue(r.calls, r.arn)
		return func() {
			r.checking = false
			switch {
			case err == nil && d.Status == Deleting:
				r.stop(fmt.Errorf("%w: %s is being deleted", ErrQueueNotFound, r.arn))
			case err != nil && (kindOf(err) == missing || kindOf(err) == denied && !r.received):
				r.stop(fmt.Errorf("%w: %s: %w", ErrQueueNotFound, r.arn, errors.Join(why, err)))
			default:
				r.failed(why, "the queue delivers no records now; weir tries again")
			}
		}
	})
}
