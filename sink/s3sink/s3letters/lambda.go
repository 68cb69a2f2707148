package s3letters

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/sink/s3sink/internal/bucket"
)

// Lambda is a [deadletter.Destination] in a bucket for programs that read what AWS Lambda's event
// source puts there: an object in its form about letters that were put together, with their
// records. They are no letters: a [Box] does not see them.
//
// Keys are those of Lambda behind the prefix, the time in UTC:
//
//	PREFIX/aws/lambda/MAPPING/shardId-000000000007/2026/11/23/2026-11-23T01.02.03-REQUEST
//
// MAPPING stands for the function and the stream and REQUEST for the letters, both in the form of a
// UUID. The same letters have the same key when they are put again; a worker that takes the shard
// over and gives the same records up again makes another object.
//
// Its methods may be called concurrently.
type Lambda struct {
	bucket bucket.Bucket
	prefix string
	form   deadletter.Lambda
}

// NewLambda is [New] for objects of Lambda's form. It makes no call. They always have the records,
// whatever form.Payload says, as they do with Lambda.
func NewLambda(client *s3.Client, bucketName, prefix string, form deadletter.Lambda) (*Lambda, error) {
	b, err := New(client, bucketName, prefix)
	if err != nil {
		return nil, err
	}
	form.Payload = true
	return &Lambda{b.bucket, b.prefix, form}, form.Check()
}

// Writable returns why objects cannot be put, so that it is known before a record is at stake. It
// leaves a small object, PREFIX/_weir/letters.
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

// key is where Lambda puts a message.
func (l *Lambda) key(m *deadletter.LambdaMessage) string {
	last := &m.Letters[len(m.Letters)-1]
	at := last.GivenUp.UTC()
	return fmt.Sprintf("%saws/lambda/%s/%s/%s/%s-%s", l.prefix, m.Mapping, escape(last.Shard), at.Format("2006/01/02"), at.Format("2006-01-02T15.04.05"), m.ID)
}
