package sqsletters

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/weir-go/weir/deadletter"
)

// Lambda is a [deadletter.Destination] in a queue for programs that read what AWS Lambda's event
// source sends to one: a message in its form about letters that were put together, without a
// record. Whoever reads it reads the range again from the stream, before it expires there. So they
// are no letters: [Queue.Peek] and [Queue.Retry] say so, and leave them where they are.
//
// In a FIFO queue, which Lambda itself does not allow, messages about a shard are in one group, and
// one that is put again within five minutes is there once.
//
// Its methods may be called concurrently.
type Lambda struct {
	queue *Queue
	form  deadletter.Lambda
}

// NewLambda is [New] for messages of Lambda's form. It makes no call. form.Payload must be false:
// a queue has no room for the records of a batch.
func NewLambda(client *sqs.Client, queueURL string, form deadletter.Lambda) (*Lambda, error) {
	q, err := New(client, queueURL)
	if err != nil {
		return nil, err
	}
	if form.Payload {
		return nil, errors.New("sqsletters: Lambda.Payload is for a bucket: a message of a queue has no room for the records of a batch")
	}
	return &Lambda{q, form}, form.Check()
}

// Check is [Queue.Check].
func (l *Lambda) Check(ctx context.Context) error { return l.queue.Check(ctx) }

// Put puts messages, and returns nil when the queue has all of them. See [deadletter.Destination].
func (l *Lambda) Put(ctx context.Context, letters []deadletter.Letter) error {
	messages, err := l.form.Messages(letters)
	if err != nil {
		return err
	}
	left := make([]message, len(messages))
	for i, m := range messages {
		first, last := &m.Letters[0], &m.Letters[len(m.Letters)-1]
		left[i] = message{id: first.ID, text: string(allowed(m.Text))}
		if l.queue.fifo {
			left[i].group, left[i].dedup = hashOf(first.Stream, first.Shard), hashOf(first.ID, last.ID)
		}
	}
	return l.queue.put(ctx, left)
}
