package s3letters

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/sink/s3sink/internal/bucket"
)

// Lambda is a [deadletter.Destination] in a bucket, in the format of AWS Lambda's event source
// mappings. Use it for programs that read such objects. Dead letters that were put together become
// one object with their records. A [Box] ignores these objects, because they are not letters.
//
// Keys are those of Lambda after the prefix, with the time in UTC:
//
//	PREFIX/aws/lambda/MAPPING/shardId-000000000007/2026/11/23/2026-11-23T01.02.03-REQUEST
//
// MAPPING identifies the function and the stream, and REQUEST identifies the letters. Both have the
// form of a UUID. If the same dead letters are put again, they have the same key. If another worker
// takes the shard over and dead-letters the same records again, it creates another object.
//
// The methods of Lambda may be called concurrently.
type Lambda struct {
	bucket bucket.Bucket
	prefix string
	form   deadletter.Lambda
}

// NewLambda returns a destination that writes objects in Lambda's format. Like [New] it makes no
// call. The objects always contain the records, as with Lambda, whatever form.Payload is.
func NewLambda(client *s3.Client, bucketName, prefix string, form deadletter.Lambda) (*Lambda, error) {
	b, err := New(client, bucketName, prefix)
	if err != nil {
		return nil, err
	}
	form.Payload = true
	return &Lambda{b.bucket, b.prefix, form}, form.Check()
}

// Writable returns an error if objects cannot be written. Call it at the start to find such a
// problem before a record has to be dead-lettered. Writable leaves a small object,
// PREFIX/_weir/letters.
func (l *Lambda) Writable(ctx context.Context) error {
	_, _, err := l.bucket.Put(ctx, l.prefix+trialKey, trial, nil, bucket.Condition{})
	return err
}

// Put writes the objects for dead letters, several at a time. See [deadletter.Destination].
func (l *Lambda) Put(ctx context.Context, letters []deadletter.Letter) error {
	messages, err := l.form.Messages(letters)
	if err != nil {
		return err
	}
	return inParallel(len(messages), func(i int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, _, err := l.bucket.Put(ctx, l.key(&messages[i]), messages[i].Text, nil, bucket.Condition{})
		return err
	})
}

// key returns the key that Lambda uses for a message.
func (l *Lambda) key(m *deadletter.LambdaMessage) string {
	last := &m.Letters[len(m.Letters)-1]
	at := last.GivenUp.UTC()
	return fmt.Sprintf("%saws/lambda/%s/%s/%s/%s-%s", l.prefix, m.Mapping, escape(last.Shard), at.Format("2006/01/02"), at.Format("2006-01-02T15.04.05"), m.ID)
}
