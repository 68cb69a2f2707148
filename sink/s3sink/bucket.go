package s3sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// bucket makes the few requests that the chain is made of. Each is bounded in time.
type bucket struct {
	client *s3.Client
	name   string
}

const (
	callTimeout = time.Minute
	slowest     = 256 << 10 // bytes a second at which an object is sent at least
	// a write that met another one is made again so many times
	conflicts = 5
)

// putNew writes an object unless there is one with its key, and reports whether it did. When the
// answer to a write got lost, it reports false of an object that it has made.
func (b bucket) putNew(ctx context.Context, key string, body []byte, about map[string]string) (made bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout+time.Duration(len(body)/slowest)*time.Second)
	defer cancel()
	for try := range conflicts {
		_, err = b.client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &b.name, Key: &key, Body: bytes.NewReader(body), IfNoneMatch: aws.String("*"), Metadata: about,
		})
		switch status(err) {
		case http.StatusPreconditionFailed:
			return false, nil
		case http.StatusConflict: // another write of the key is under way
			select {
			case <-time.After(100 * time.Millisecond << try):
				continue
			case <-ctx.Done():
			}
		}
		break
	}
	if err != nil {
		return false, fmt.Errorf("s3sink: writing %s: %w", key, err)
	}
	return true, nil
}

// get reads an object of at most so many bytes, nil if there is none.
func (b bucket) get(ctx context.Context, key string, most int64) (body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &key})
	if status(err) == http.StatusNotFound {
		return nil, nil
	}
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(answer.Body, most+1))
		err = errors.Join(err, answer.Body.Close())
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("s3sink: reading %s: %w", key, err)
	case int64(len(body)) > most:
		return nil, fmt.Errorf("s3sink: %s has more than %d bytes: it is not one of this package", key, most)
	}
	return body, nil
}

func (b bucket) exists(ctx context.Context, key string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := b.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: &key})
	if status(err) == http.StatusNotFound {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("s3sink: looking for %s: %w", key, err)
	}
	return true, nil
}

// first is the first key that begins with prefix, "" if none does.
func (b bucket) first(ctx context.Context, prefix string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := b.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &prefix, MaxKeys: aws.Int32(1)})
	if err != nil {
		return "", fmt.Errorf("s3sink: listing %s: %w", prefix, err)
	}
	if len(answer.Contents) == 0 {
		return "", nil
	}
	return aws.ToString(answer.Contents[0].Key), nil
}

// status is the status of the answer that err is about, 0 if there was none.
func status(err error) int {
	var answered *awshttp.ResponseError
	if errors.As(err, &answered) {
		return answered.HTTPStatusCode()
	}
	return 0
}
