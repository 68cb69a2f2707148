package sqsletters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/guard"
)

const (
	// hidden is how long a received message is hidden from other readers. Every sayAgain, the
	// holder hides its messages for this time again.
	hidden    = 2 * time.Minute
	sayAgain  = 30 * time.Second
	waitFor   = 2 * time.Second // for a message; any wait makes SQS query all of its servers
	mostErrs  = 3
	mostPeeks = 1000
)

// Received is a dead letter that was received.
type Received struct {
	deadletter.Item
	Receives int // how often it was received, including this time
}

// Peek returns up to most dead letters without taking them. A number above 1000 counts as 1000.
// Peek receives each dead letter, which increases its receive count, and makes it visible again at
// once. A queue with a redrive policy moves a message to its dead-letter queue if all readers
// together have received it too often ([About].MaxReceives). SQS selects the dead letters. If
// messages are not dead letters, Peek reports them in its error, and still returns the dead
// letters.
func (q *Queue) Peek(ctx context.Context, most int) (letters []Received, err error) {
	h := holder{q: q, handles: map[string]string{}}
	defer func() { err = errors.Join(err, h.release(context.WithoutCancel(ctx))) }()
	var bad problems
	for most = min(most, mostPeeks); len(letters) < most; {
		messages, err := q.receive(ctx, min(most-len(letters), mostEntries))
		if err != nil || len(messages) == 0 {
			return letters, errors.Join(err, bad.err())
		}
		for _, m := range messages {
			if !h.hold(m) {
				continue
			}
			item, err := parse(m)
			if err != nil {
				bad.add(err)
				continue
			}
			n, _ := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
			letters = append(letters, Received{item, n})
		}
	}
	return letters, bad.err()
}

// Retry receives dead letters and passes those for which wants returns true to handle, one after
// the other. It deletes a dead letter that was handled. Retry ends when it receives no more dead
// letters, or when ctx ends. Then it makes the other dead letters visible again: those that failed,
// and those that wants did not select. Until then no other reader receives them, even if handle
// takes long. If the process dies, they become visible after two minutes.
//
// If the deletion of a dead letter fails, the dead letter will be handled again later. In a FIFO
// queue, a dead letter that failed or was not selected blocks the other dead letters of its group.
// Select by stream, shard or key there.
//
// Retry continues after an error of handle, and returns the first such error.
func (q *Queue) Retry(ctx context.Context, wants func(deadletter.Item) bool, handle func(context.Context, deadletter.Item) error) (o deadletter.Outcome, err error) {
	h := holder{q: q, handles: map[string]string{}}
	over := make(chan struct{})
	var keeping sync.WaitGroup
	keeping.Go(func() { h.keep(context.WithoutCancel(ctx), over) })
	defer func() {
		close(over)
		keeping.Wait()
		err = errors.Join(err, h.release(context.WithoutCancel(ctx)))
	}()
	var bad problems
	var first error
	done, atOnce := map[string]bool{}, mostEntries
	if q.fifo {
		atOnce = 1 // so that no dead letter is handled after a failed one of its group
	}
	for ctx.Err() == nil {
		messages, err := q.receive(ctx, atOnce)
		if ctx.Err() != nil {
			break
		}
		if err != nil || len(messages) == 0 {
			return o, errors.Join(err, first, bad.err())
		}
		fresh := messages[:0]
		for _, m := range messages {
			if h.hold(m) { // all of them, before the first is handled
				fresh = append(fresh, m)
			}
		}
		for _, m := range fresh {
			if ctx.Err() != nil {
				break
			}
			item, err := parse(m)
			if err != nil {
				bad.add(err)
				continue
			}
			if !wants(item) {
				continue
			}
			if !done[item.ID] { // a standard queue may contain it twice
				if err := handle(ctx, item); err != nil {
					if ctx.Err() != nil {
						break
					}
					o.Failed++
					if first == nil {
						first = fmt.Errorf("weir: dead letter %s: %w", item.ID, err)
					}
					continue
				}
				done[item.ID] = true
				o.Done++
			}
			if err := h.remove(context.WithoutCancel(ctx), m); err != nil {
				return o, errors.Join(fmt.Errorf("sqsletters: dead letter %s was handled but could not be deleted, so it comes again: %w", item.ID, err), first)
			}
		}
	}
	return o, errors.Join(context.Cause(ctx), first, bad.err())
}

// receive requests up to n messages.
func (q *Queue) receive(ctx context.Context, n int) ([]types.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &q.url, MaxNumberOfMessages: int32(n), VisibilityTimeout: int32(hidden / time.Second), WaitTimeSeconds: int32(waitFor / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameApproximateReceiveCount},
	})
	if err != nil {
		return nil, fmt.Errorf("sqsletters: receiving: %w", err)
	}
	return out.Messages, nil
}

// holder contains messages that were received and not deleted.
type holder struct {
	q       *Queue
	mu      sync.Mutex
	handles map[string]string // by message
}

// hold takes over a message. It returns false if the holder already had the message.
func (h *holder) hold(m types.Message) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := aws.ToString(m.MessageId)
	_, known := h.handles[id]
	h.handles[id] = aws.ToString(m.ReceiptHandle)
	return !known
}

// keep hides the messages from other readers until over is closed. If hiding a message fails,
// another reader may also handle the message. The failure only shows when the message is received
// again.
func (h *holder) keep(ctx context.Context, over <-chan struct{}) {
	every := time.NewTicker(sayAgain)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			_ = guard.Call(func() error { return h.change(ctx, hidden) }) // retried soon
		case <-over:
			return
		}
	}
}

// release makes all messages visible again.
func (h *holder) release(ctx context.Context) error { return h.change(ctx, 0) }

// change hides the messages for d from now on.
func (h *holder) change(ctx context.Context, d time.Duration) error {
	h.mu.Lock()
	handles := slices.Collect(maps.Values(h.handles))
	h.mu.Unlock()
	var errs problems
	for some := range slices.Chunk(handles, mostEntries) {
		in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &h.q.url}
		for i := range some {
			in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &some[i], VisibilityTimeout: int32(d / time.Second)})
		}
		if err := func() error {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			_, err := h.q.client.ChangeMessageVisibilityBatch(ctx, in)
			return err
		}(); err != nil {
			errs.add(fmt.Errorf("sqsletters: dead letters are hidden from others for up to %v more: %w", hidden, err))
		}
	}
	return errs.err()
}

// remove deletes a message.
func (h *holder) remove(ctx context.Context, m types.Message) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	id := aws.ToString(m.MessageId)
	h.mu.Lock()
	handle := h.handles[id]
	h.mu.Unlock()
	_, err := h.q.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &h.q.url, ReceiptHandle: &handle})
	if err == nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.handles, id)
	}
	return err
}

// parse parses a dead letter.
func parse(m types.Message) (deadletter.Item, error) {
	l, err := deadletter.Parse([]byte(aws.ToString(m.Body)))
	if err != nil {
		return deadletter.Item{}, fmt.Errorf("sqsletters: message %.100s is not a dead letter: %w", aws.ToString(m.MessageId), err)
	}
	return deadletter.Item{Letter: l, State: deadletter.Kept}, nil
}

// problems contains the first few errors and the number of all errors.
type problems struct {
	errs []error
	n    int
}

func (p *problems) add(err error) {
	if p.n++; p.n <= mostErrs {
		p.errs = append(p.errs, err)
	}
}

func (p *problems) err() error {
	if p.n > mostErrs {
		return errors.Join(append(p.errs, fmt.Errorf("sqsletters: … and %d more", p.n-mostErrs))...)
	}
	return errors.Join(p.errs...)
}
