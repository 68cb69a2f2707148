package s3letters

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/sink/s3sink/internal/bucket"
)

// Lambda is a [deadletter.Destination] in a bucket for programs that read the objects of AWS
// Lambda's event source mappings: one object in Lambda's form for letters that were put together,
// with their records. These objects are not letters: a [Box] ignores them.
//
// Keys are those of Lambda after the prefix, with the time in UTC:
//
//	PREFIX/aws/lambda/MAPPING/shardId-000000000007/2026/11/23/2026-11-23T01.02.03-REQUEST
//
// MAPPING identifies the function and the stream, and REQUEST the letters, both in the form of a
// UUID. The same letters have the same key when they are put again. A worker that takes the shard
// over and gives the same records up again makes another object.
//
// Its methods may be called concurrently.
type Lambda struct {
	bucket bucket.Bucket
	prefix string
	form   deadletter.Lambda
}

// NewLambda is like [New], for objects in Lambda's form. It makes no call. The objects always
// contain the records, as they do with Lambda, regardless of form.Payload.
func NewLambda(client *s3.Client, bucketName, prefix string, form deadletter.Lambda) (*Lambda, error) {
	b, err := New(client, bucketName, prefix)
	if err != nil {
		return nil, err
	}
	form.Payload = true
	return &Lambda{b.bucket, b.prefix, form}, form.Check()
}

// Writable returns why objects cannot be written, so that the problem is found before a record is
// at stake. It leaves a small object, PREFIX/_weir/letters.
func (l *Lambda) Writable(ctx context.Context) error {
	_, _, err := l.bucket.Put(ctx, l.prefix+trialKey, trial, nil, bucket.Condition{})
	return err
}

// Put writes objects, several at a time. See [deadletter.Destination].
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
