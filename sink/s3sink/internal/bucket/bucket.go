// Package bucket makes the few kinds of requests to S3 that weir's packages need. It supports
// conditions, and sets a time limit for each request.
package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Bucket is a bucket in S3. Its methods may be called concurrently.
type Bucket struct {
	Client *s3.Client
	Name   string
	Who    string // beginning of error texts
}

const (
	callTimeout = time.Minute
	slowest     = 256 << 10 // lowest expected rate of a transfer in bytes per second
	// conflicts is how often a write is repeated if it collides with another write.
	conflicts = 5
)

// CheckPrefix returns a prefix of keys with a slash at its end, and reports whether the prefix is
// valid.
func CheckPrefix(prefix string) (string, bool) {
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	return prefix, len(prefix) <= 257 && utf8.ValidString(prefix) && !strings.HasPrefix(prefix, "/") && !strings.Contains(prefix, "//")
}

// Condition is the condition of a write. Set one of the fields, or none.
type Condition struct {
	New  bool   // no object with the key exists
	ETag string // the existing object has this ETag
}

// Put writes an object. It reports whether the condition was met, and returns the new ETag of the
// object. If the answer to a write is lost, the SDK repeats the write, and the condition is not met
// the second time. If the condition is not met, read the object to find out which write created it.
func (b Bucket) Put(ctx context.Context, key string, body []byte, about map[string]string, when Condition) (etag string, held bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout+time.Duration(len(body)/slowest)*time.Second)
	defer cancel()
	in := s3.PutObjectInput{Bucket: &b.Name, Key: &key, Metadata: about}
	switch {
	case when.New:
		in.IfNoneMatch = aws.String("*")
	case when.ETag != "":
		in.IfMatch = &when.ETag
	}
	for try := 0; ; try++ {
		in.Body = bytes.NewReader(body)
		out, err := b.Client.PutObject(ctx, &in)
		switch answered := status(err); {
		case err == nil:
			return aws.ToString(out.ETag), true, nil
		case answered == http.StatusPreconditionFailed, answered == http.StatusNotFound && when.ETag != "":
			return "", false, nil
		case answered == http.StatusConflict && try < conflicts: // another write of the key is in progress
			select {
			case <-time.After(100 * time.Millisecond << try):
				continue
			case <-ctx.Done():
			}
		}
		return "", false, fmt.Errorf("%s: writing %s: %w", b.Who, key, err)
	}
}

// Get reads an object with at most most bytes. body is nil if there is no object.
func (b Bucket) Get(ctx context.Context, key string, most int64) (body []byte, etag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout+time.Duration(most/slowest)*time.Second)
	defer cancel()
	answer, err := b.Client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.Name, Key: &key})
	if status(err) == http.StatusNotFound {
		return nil, "", nil
	}
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(answer.Body, most+1))
		err = errors.Join(err, answer.Body.Close())
	}
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("%s: reading %s: %w", b.Who, key, err)
	case int64(len(body)) > most:
		return nil, "", fmt.Errorf("%s: %s has more than %d bytes: weir did not write it", b.Who, key, most)
	}
	return body, aws.ToString(answer.ETag), nil
}

// Exists reports whether an object exists.
func (b Bucket) Exists(ctx context.Context, key string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := b.Client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.Name, Key: &key})
	if status(err) == http.StatusNotFound {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("%s: looking for %s: %w", b.Who, key, err)
	}
	return true, nil
}

// List returns up to most keys in order, at most 1,000. The keys begin with prefix and come after
// the key after.
func (b Bucket) List(ctx context.Context, prefix, after string, most int32) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	in := s3.ListObjectsV2Input{Bucket: &b.Name, Prefix: &prefix, MaxKeys: &most}
	if after != "" {
		in.StartAfter = &after
	}
	answer, err := b.Client.ListObjectsV2(ctx, &in)
	if err != nil {
		return nil, fmt.Errorf("%s: listing %s: %w", b.Who, prefix, err)
	}
	var keys []string
	for _, o := range answer.Contents {
		keys = append(keys, aws.ToString(o.Key))
	}
	return keys, nil
}

// status returns the HTTP status of the answer in err, or 0 if there was no answer.
func status(err error) int {
	var answered *awshttp.ResponseError
	if errors.As(err, &answered) {
		return answered.HTTPStatusCode()
	}
	return 0
}
