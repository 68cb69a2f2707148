package sqsletters

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/weir-go/weir/deadletter"
)

// Lambda is a [deadletter.Destination] in a queue. It is for programs that read the messages of AWS
// Lambda's event source mappings. It sends one message in Lambda's form for consecutive dead
// letters of a shard, without their records. The receiver must read the range from the stream
// before the records expire. These messages are not dead letters: [Queue.Peek] and [Queue.Retry]
// report them and leave them in the queue.
//
// AWS Lambda itself does not allow FIFO queues, but this type does. In a FIFO queue, messages about
// a shard are in one group. A message that is put again within five minutes is in the queue only
// once.
//
// The methods of Lambda may be called concurrently.
type Lambda struct {
	queue *Queue
	form  deadletter.Lambda
}

// NewLambda is like [New], for messages in Lambda's form. It makes no call. form.Payload must be
// false, because a message has no room for the records of a batch.
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

// Check is like [Queue.Check].
func (l *Lambda) Check(ctx context.Context) error { return l.queue.Check(ctx) }

// Put sends messages, and returns nil when the queue has all of them. See [deadletter.Destination].
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
