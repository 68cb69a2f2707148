package queuesim

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/queue"
)

var errNetwork = errors.New("queuesim: the connection was reset")

// link is the connection of a process to the service. It implements [queue.API].
type link struct{ *life }

const arn = "arn:aws:kinesis:eu-west-1:000000000000:queue/q-1"

func (l *link) ListQueues(context.Context, queue.ListQueuesInput) (queue.ListQueuesOutput, error) {
	return queue.ListQueuesOutput{}, errors.New("queuesim: the consumers have the ARN")
}

func (l *link) DescribeQueue(ctx context.Context, _ string) (queue.Description, error) {
	if err := l.send(ctx, "DescribeQueue"); err != nil {
		return queue.Description{}, err
	}
	a := queue.Attributes{DeadLetters: "NONE"}
	if l.service.most > 0 {
		a = queue.Attributes{DeadLetters: "BUILT_IN", MaxReceiveCount: l.service.most}
	}
	return queue.Description{Name: "q", ARN: arn, Status: queue.Active, Attributes: a}, l.answer(ctx, 0)
}

// send carries a request to the service. An error means that the request did not arrive.
func (l *link) send(ctx context.Context, operation string) error {
	if err := l.thaw(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	latency := l.some(l.profile.latency)
	var out time.Duration
	if l.outageOf == "" || l.outageOf == operation {
		out = time.Until(l.outage)
	}
	fault, code := l.drawFault(operation)
	l.mu.Unlock()
	if err := sleep(ctx, latency); err != nil {
		return err
	}
	switch {
	case out > 0 && l.outageHangs:
		l.happened("a call hangs")
		if err := sleep(ctx, out); err != nil {
			return err
		}
		return errNetwork
	case out > 0:
		l.happened("a call is refused")
		return errNetwork
	case fault == throttled:
		l.happened("a call is throttled")
		return &queue.Error{Operation: operation, Code: "ThrottlingException", Status: 400}
	case fault == failing:
		l.happened("a call fails")
		return &queue.Error{Operation: operation, Code: code, Status: 500}
	}
	return nil
}

// answer carries an answer to the process. An error means that it was lost.
func (l *link) answer(ctx context.Context, slow time.Duration) error {
	l.mu.Lock()
	latency := l.some(l.profile.latency)
	l.mu.Unlock()
	if err := sleep(ctx, latency+slow); err != nil {
		return err
	}
	return l.thaw(ctx)
}

// drawn returns the faults of a call that was carried out.
func (l *link) drawn(operation string) (lost bool, slow time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.faulty() || l.profile.onlyHolds && operation != "SetVisibility" {
		return false, 0
	}
	if lost = l.chance(l.profile.lost); lost {
		l.happenedLocked("the answer of " + operation + " is lost")
	}
	if l.chance(l.profile.slow) {
		l.happenedLocked("a slow answer")
		slow = l.some(4 * time.Second)
	}
	return lost, slow
}

func (l *link) Receive(ctx context.Context, in queue.ReceiveInput) (queue.ReceiveOutput, error) {
	var none queue.ReceiveOutput
	called := time.Now()
	if err := l.send(ctx, "Receive"); err != nil {
		return none, err
	}
	until := time.Now().Add(in.Wait)
	for {
		l.mu.Lock()
		got, out, next := l.service.receive(l.life, in.Limit, in.Hold)
		changed := l.service.changed
		l.mu.Unlock()
		wait := time.Until(until)
		if len(got) > 0 || wait <= 0 {
			return l.received(ctx, in, called, got, out)
		}
		if !next.IsZero() {
			wait = min(wait, time.Until(next))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return none, context.Cause(ctx)
		case <-l.poke:
			timer.Stop()
			if err := l.thaw(ctx); err != nil {
				return none, err
			}
			return none, errNetwork
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// received carries the records of a receive to the process. called is when the process made the
// call. If it was frozen before the request was sent, it takes the answer for an old one.
func (l *link) received(ctx context.Context, in queue.ReceiveInput, called time.Time, got []*record, out []queue.Delivery) (queue.ReceiveOutput, error) {
	lost, slow := l.drawn("Receive")
	began := time.Now()
	err := l.answer(ctx, slow)
	if lost && err == nil {
		err = errNetwork
	}
	at := time.Now()
	if at.Sub(began) > 2*time.Second { // the Date of the answer shows it
		at = began
	}
	if err == nil && in.Admit != nil && len(out) > 0 {
		var size int64
		for _, d := range out {
			size += int64(len(d.Data))*4/3 + 200
		}
		err = in.Admit(ctx, size)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range got {
		if r.holder != l.life {
			continue
		}
		if err != nil {
			r.excused = "the answer with it was lost"
		}
		if at.Sub(called) > in.Wait+time.Second {
			r.excused = "its receive was sent late"
		}
		if ctx.Err() != nil && !l.crashed { // the process ended the call
			r.own++
		}
		r.late = at.Sub(began) >= in.Hold/10 || at.Sub(began) >= 2*time.Second
	}
	if err != nil {
		return queue.ReceiveOutput{}, err
	}
	l.arrived(got)
	return queue.ReceiveOutput{Records: out, Answered: at}, nil
}

func (l *link) Acknowledge(ctx context.Context, _ string, handles []string) (queue.BatchOutput, error) {
	return l.entries(ctx, "Acknowledge", handles, func(i int) string { return l.service.acknowledge(l.life, handles[i]) }, l.acknowledged)
}

func (l *link) SetVisibility(ctx context.Context, _ string, entries []queue.Visibility) (queue.BatchOutput, error) {
	handles := make([]string, len(entries))
	for i, e := range entries {
		handles[i] = e.ReceiptHandle
	}
	return l.entries(ctx, "SetVisibility", handles, func(i int) string { return l.service.setVisibility(l.life, handles[i], entries[i].Hold) }, nil)
}

// entries makes a call with entries. done is called for the successful ones of an answer that
// arrives.
func (l *link) entries(ctx context.Context, operation string, handles []string, do func(i int) string, done func(handle string)) (out queue.BatchOutput, err error) {
	if err := l.send(ctx, operation); err != nil {
		return out, err
	}
	l.mu.Lock()
	seen := map[string]bool{}
	for i, h := range handles {
		if seen[h] || len(handles) > 10 {
			l.broken("a call has an entry twice or more than ten entries")
		}
		seen[h] = true
		code := ""
		if l.faulty() && l.chance(l.profile.partial) {
			code = []string{"ThrottlingException", "InternalFailureException"}[l.random.IntN(2)]
			l.happenedLocked("an entry of " + operation + " fails")
		}
		if code == "" {
			code = do(i)
		}
		if code != "" {
			out.Failed = append(out.Failed, queue.FailedEntry{ReceiptHandle: h, Code: code})
		}
	}
	l.mu.Unlock()
	lost, slow := l.drawn(operation)
	if err := l.answer(ctx, slow); err != nil {
		return queue.BatchOutput{}, err
	}
	if lost {
		return queue.BatchOutput{}, errNetwork
	}
	if done != nil {
		l.mu.Lock()
		for _, f := range out.Failed {
			delete(seen, f.ReceiptHandle)
		}
		for h := range seen {
			done(h)
		}
		l.mu.Unlock()
	}
	return out, nil
}

// thaw waits while the process is frozen. A process that has crashed makes no calls.
func (l *link) thaw(ctx context.Context) error {
	for {
		l.mu.Lock()
		rest, crashed := time.Until(l.frozen), l.crashed
		l.mu.Unlock()
		switch {
		case crashed:
			return errNetwork
		case rest <= 0:
			return context.Cause(ctx)
		}
		time.Sleep(rest) // a frozen process does not notice the end of its contexts
	}
}

// sleep waits for a time or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
