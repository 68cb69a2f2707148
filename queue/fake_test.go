package queue

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// fakeQueue is a queue in memory. Its hooks change answers.
type fakeQueue struct {
	hooks     sync.Mutex // held during calls of the hooks
	mu        sync.Mutex // guards the fields below
	records   []*fakeRecord
	first     int // the records before it are gone
	most      int // MaxReceiveCount; 0 for no dead letters
	dead      []string
	receives  int
	empty     int
	calls     map[string]int
	handles   int
	inReceive int
	parallel  int // most receives at the same time
	status    string
	delay     time.Duration // of each answer

	receiveErr func() error                        // before a receive
	lost       func() bool                         // the answer of a receive with records is lost
	ackErr     func(handle string) (string, error) // code of an entry, or error of the call
	visErr     func(v Visibility) (string, error)  // the same for SetVisibility
	changed    chan struct{}                       // closed when a record may be visible
}

type fakeRecord struct {
	id, key, handle string
	data            []byte
	count           int
	hidden          time.Time
	gone            bool
}

func newFakeQueue() *fakeQueue {
	return &fakeQueue{most: 6, calls: map[string]int{}, status: Active, changed: make(chan struct{})}
}

// put adds records with the IDs r0, r1 and so on.
func (q *fakeQueue) put(n int, key func(i int) string, data []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for range n {
		i := len(q.records)
		r := &fakeRecord{id: fmt.Sprintf("r%d", i), data: data}
		if key != nil {
			r.key = key(i)
		}
		q.records = append(q.records, r)
	}
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *fakeQueue) ListQueues(_ context.Context, in ListQueuesInput) (ListQueuesOutput, error) {
	if in.NextToken == "" {
		return ListQueuesOutput{NextToken: "2"}, nil
	}
	return ListQueuesOutput{Queues: []Summary{{Name: "orders", ARN: testARN, Status: q.status}}}, nil
}

func (q *fakeQueue) DescribeQueue(context.Context, string) (Description, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := Attributes{DeadLetters: "NONE"}
	if q.most > 0 {
		a = Attributes{DeadLetters: builtIn, MaxReceiveCount: q.most}
	}
	return Description{Name: "orders", ARN: testARN, Status: q.status, Attributes: a}, nil
}

func (q *fakeQueue) Receive(ctx context.Context, in ReceiveInput) (ReceiveOutput, error) {
	if q.receiveErr != nil {
		q.hooks.Lock()
		err := q.receiveErr()
		q.hooks.Unlock()
		if err != nil {
			return ReceiveOutput{}, err
		}
	}
	q.mu.Lock()
	q.receives++
	q.inReceive++
	q.parallel = max(q.parallel, q.inReceive)
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		q.inReceive--
		q.mu.Unlock()
	}()
	time.Sleep(q.delay)
	until := time.Now().Add(in.Wait)
	for {
		got, next, changed := q.take(in)
		if len(got) > 0 {
			if q.isLost() {
				return ReceiveOutput{}, fmt.Errorf("connection reset")
			}
			return ReceiveOutput{Records: got, Answered: time.Now()}, nil
		}
		wait := time.Until(until)
		if wait <= 0 {
			q.mu.Lock()
			q.empty++
			q.mu.Unlock()
			return ReceiveOutput{}, nil
		}
		if !next.IsZero() {
			wait = min(wait, time.Until(next))
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ReceiveOutput{}, context.Cause(ctx)
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (q *fakeQueue) take(in ReceiveInput) (got []Delivery, next time.Time, changed chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	for q.first < len(q.records) && q.records[q.first].gone {
		q.first++
	}
	for _, r := range q.records[q.first:] {
		if len(got) == in.Limit {
			break
		}
		if r.gone {
			continue
		}
		if r.hidden.After(now) {
			next = earlier(next, r.hidden)
			continue
		}
		if q.most > 0 && r.count >= q.most {
			r.gone = true
			q.dead = append(q.dead, r.id)
			continue
		}
		r.count++
		q.handles++
		r.hidden, r.handle = now.Add(in.Hold), fmt.Sprintf("h%d", q.handles)
		got = append(got, Delivery{ReceiptHandle: r.handle, RecordID: r.id, PartitionKey: r.key, Data: r.data, ReceiveCount: r.count, Arrived: now.Add(-time.Second)})
	}
	return got, next, q.changed
}

// entry applies do to the record with a handle that still hides it.
func (q *fakeQueue) entry(handle string, out *BatchOutput, code string, do func(*fakeRecord)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if code == "" {
		code = "ResourceNotFoundException"
		for _, r := range q.records[q.first:] {
			if r.handle == handle && !r.gone && r.hidden.After(time.Now()) {
				do(r)
				return
			}
		}
	}
	out.Failed = append(out.Failed, FailedEntry{handle, code, ""})
}

func (q *fakeQueue) called(operation string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.calls[operation]++
}

func (q *fakeQueue) Acknowledge(_ context.Context, _ string, handles []string) (out BatchOutput, err error) {
	q.called("ack")
	time.Sleep(q.delay)
	for _, h := range handles {
		code := ""
		if q.ackErr != nil {
			q.hooks.Lock()
			code, err = q.ackErr(h)
			q.hooks.Unlock()
			if err != nil {
				return out, err
			}
		}
		q.entry(h, &out, code, func(r *fakeRecord) { r.gone = true })
	}
	return out, nil
}

func (q *fakeQueue) SetVisibility(_ context.Context, _ string, entries []Visibility) (out BatchOutput, err error) {
	q.called("visibility")
	time.Sleep(q.delay)
	for _, v := range entries {
		code := ""
		if q.visErr != nil {
			q.hooks.Lock()
			code, err = q.visErr(v)
			q.hooks.Unlock()
			if err != nil {
				return out, err
			}
		}
		q.entry(v.ReceiptHandle, &out, code, func(r *fakeRecord) { r.hidden = time.Now().Add(v.Hold) })
	}
	q.put(0, nil, nil) // something may be visible now
	return out, nil
}

// left returns the IDs of the records that are neither acknowledged nor dead.
func (q *fakeQueue) left() (ids []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.records {
		if !r.gone {
			ids = append(ids, r.id)
		}
	}
	return ids
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// consumer makes a consumer of the fake queue.
func (q *fakeQueue) consumer(t *testing.T, o Options) *Consumer {
	t.Helper()
	o.Queue = "orders"
	if o.API == nil {
		o.API = q
	}
	if o.Logger == nil {
		o.Logger = quiet()
	}
	c, err := New(aws.Config{}, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// runFor runs a consumer for a time, and returns how long it took to stop and the error of Run.
func runFor(t *testing.T, c *Consumer, d time.Duration, h Handler) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	began := time.Now()
	err := c.Run(ctx, h)
	return time.Since(began) - d, err
}

// seen counts calls per record.
type seen struct {
	mu sync.Mutex // guards n
	n  map[string]int
}

func (s *seen) add(r Record) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == nil {
		s.n = map[string]int{}
	}
	s.n[r.Key()]++
	return s.n[r.Key()]
}

func (q *fakeQueue) isLost() bool {
	q.hooks.Lock()
	defer q.hooks.Unlock()
	return q.lost != nil && q.lost()
}
