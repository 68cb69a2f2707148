// Package s3payload stores large payloads in S3. The record in the stream then has a claim check: a
// short JSON text with the place of the object. It is a separate module, because it needs AWS's
// client for S3.
//
// A producer uploads the object before it accepts the record. So the order per key is the order of
// the calls of Put, and a failed upload is the error of Put. The package never deletes objects: let
// a lifecycle rule of the bucket delete them after the retention of the stream, and after the time
// for which dead letters are kept.
package s3payload

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/payload"
)

var (
	// ErrMissing means that the object of a claim check does not exist. A lifecycle rule may have
	// deleted it. Without the permission s3:ListBucket, S3 denies access instead.
	ErrMissing = errors.New("s3payload: the object is missing")
	// ErrElsewhere means that a claim check names a bucket or a key that the codec may not read.
	ErrElsewhere = errors.New("s3payload: the claim check names another place")
)

// Options configures a [Codec]. The zero value is ready to use.
type Options struct {
	// Prefix is the beginning of the keys of objects. Decode reads no other objects, because
	// everyone who writes to the stream can choose the key in a claim check. The default is
	// "payloads/".
	Prefix string
	// Threshold is the size in bytes above which Encode stores data in S3. It ranges from 1 KiB to
	// 10 MiB. The default is 900 KiB.
	Threshold int
	// Fields are top-level fields of JSON objects that the claim check also contains, so that
	// filters can match them. lifion-kinesis calls them nonS3Keys. By default there are none.
	// Encode returns an error if the claim check is then larger than Threshold.
	Fields []string
	// MaxBytes limits the size of an object in bytes. It ranges from Threshold to 1 GiB. The
	// default is 64 MiB.
	MaxBytes int
	// Timeout limits the time of an upload or a download, including the retries of the client. It
	// ranges from 1 s to 1 h. The default is one minute.
	Timeout time.Duration
	// Lifion is the name of a stream that lifion-kinesis also reads or writes, with its option
	// useS3ForLargeItems. Encode then writes claim checks of lifion-kinesis, with its keys instead
	// of Prefix, and Decode reads both forms.
	Lifion string
}

// Codec moves large payloads to S3 and back. It implements [payload.Codec], and has no goroutines.
//
// Each Decode of a claim check downloads the object into memory. So use the codec in handlers, not
// with [payload.Matching].
type Codec struct {
	client *s3.Client
	bucket string
	o      Options
}

// New returns a codec for a bucket, which must exist. The error names each option that is out of
// range.
func New(client *s3.Client, bucket string, o Options) (*Codec, error) {
	var problems []error
	problem := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("s3payload: "+format, args...))
	}
	number := func(name string, value *int, usual, low, high int) {
		if *value == 0 {
			*value = usual
		}
		if *value < low || *value > high {
			problem("Options.%s is %d, and must be %d to %d", name, *value, low, high)
		}
	}
	if client == nil {
		problem("client is nil")
	}
	if bucket == "" {
		problem("bucket is required")
	}
	if o.Prefix == "" {
		o.Prefix = "payloads/"
	}
	if len(o.Prefix) > 512 || !utf8.ValidString(o.Prefix) || strings.HasPrefix(o.Prefix, "/") {
		problem("Options.Prefix is %.80q: use up to 512 bytes of UTF-8, without a slash at the beginning", o.Prefix)
	}
	number("Threshold", &o.Threshold, 900<<10, 1<<10, 10<<20)
	number("MaxBytes", &o.MaxBytes, 64<<20, o.Threshold, 1<<30)
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	if o.Timeout < time.Second || o.Timeout > time.Hour {
		problem("Options.Timeout is %v, and must be 1s to 1h", o.Timeout)
	}
	o.Fields = slices.Clone(o.Fields)
	for i, field := range o.Fields {
		if slices.Contains(o.Fields[:i], field) {
			problem("Options.Fields has %q twice", field)
		}
		if field == ownMark || field == lifionMark {
			problem("Options.Fields has %q, which is the mark of a claim check", field)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return &Codec{client: client, bucket: bucket, o: o}, nil
}

// Encode implements [payload.Codec]. It stores large data in S3, and also data that look like a
// claim check. The error wraps [payload.ErrTooLarge], the error of the client, or the cause of
// ctx's end. After an error, the object may exist although no record names it.
func (c *Codec) Encode(ctx context.Context, data []byte) ([]byte, error) {
	if len(data) <= c.o.Threshold && !c.marked(data) {
		return data, nil
	}
	if len(data) > c.o.MaxBytes {
		return nil, fmt.Errorf("%w: Options.MaxBytes allows %d bytes, and they have %d", payload.ErrTooLarge, c.o.MaxBytes, len(data))
	}
	kept := keptFields(data, c.o.Fields)
	p := place{Bucket: c.bucket, Key: c.o.Prefix + rand.Text()}
	if c.o.Lifion != "" {
		p.Key = c.o.Lifion + "-" + rand.Text() + ".json"
	}
	etag, err := c.upload(ctx, p.Key, data)
	if err != nil {
		return nil, err
	}
	var claim []byte
	if c.o.Lifion != "" {
		p.ETag = strings.Trim(etag, `"`)
		claim, err = write(lifionMark, p, c.o.Fields, kept)
	} else {
		sum := sha256.Sum256(data)
		p.Version, p.Bytes, p.SHA256 = 1, int64(len(data)), sum[:]
		claim, err = write(ownMark, p, c.o.Fields, kept)
	}
	if err != nil {
		return nil, err
	}
	if len(claim) > c.o.Threshold {
		return nil, fmt.Errorf("s3payload: the claim check has %d bytes, more than Options.Threshold: name fewer Options.Fields", len(claim))
	}
	return claim, nil
}

// marked reports whether a payload looks like a claim check of the codec.
func (c *Codec) marked(data []byte) bool {
	return isOwn(data) || c.o.Lifion != "" && isLifion(data)
}

// Decode implements [payload.Codec]. The error wraps [ErrMissing], [ErrElsewhere],
// [payload.ErrTooLarge], [payload.ErrDamaged], the error of the client, or the cause of ctx's end.
func (c *Codec) Decode(ctx context.Context, encoded []byte) (data []byte, marked bool, err error) {
	var p place
	var prefix string
	switch {
	case isOwn(encoded):
		prefix = c.o.Prefix
		if p, err = parseOwn(encoded); err != nil {
			return nil, true, err
		}
	case c.o.Lifion != "" && isLifion(encoded):
		prefix = c.o.Lifion + "-"
		p = parseLifion(encoded)
	default:
		return nil, false, nil
	}
	if p.Bucket != c.bucket || !strings.HasPrefix(p.Key, prefix) {
		return nil, true, fmt.Errorf("%w: the key %.200q of the bucket %.80q; this codec reads keys that begin with %q of the bucket %q",
			ErrElsewhere, p.Key, p.Bucket, prefix, c.bucket)
	}
	data, err = c.download(ctx, p)
	return data, true, err
}

// upload writes an object, and returns its ETag.
func (c *Codec) upload(ctx context.Context, key string, data []byte) (etag string, err error) {
	limited, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	kind := "application/octet-stream"
	if c.o.Lifion != "" && isLifionJSON(data) {
		kind = "application/json"
	}
	out, err := c.client.PutObject(limited, &s3.PutObjectInput{
		Bucket: &c.bucket, Key: &key, Body: bytes.NewReader(data), ContentType: &kind,
	})
	if err != nil {
		return "", c.failed(ctx, limited, "writing", key, err)
	}
	return aws.ToString(out.ETag), nil
}

// download reads the object of a claim check, and compares the object with the claim check.
func (c *Codec) download(ctx context.Context, p place) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	out, err := c.client.GetObject(limited, &s3.GetObjectInput{Bucket: &c.bucket, Key: &p.Key})
	if err != nil {
		if isMissing(err) {
			return nil, fmt.Errorf("%w: key %q of the bucket %q", ErrMissing, p.Key, c.bucket)
		}
		return nil, c.failed(ctx, limited, "reading", p.Key, err)
	}
	defer func() { _ = out.Body.Close() }() // a failed close loses no data
	etag := aws.ToString(out.ETag)
	var read bytes.Buffer
	if out.ContentLength != nil {
		if err := p.check(*out.ContentLength, etag, c.o.MaxBytes); err != nil {
			return nil, err
		}
		read.Grow(int(*out.ContentLength) + bytes.MinRead)
	}
	if _, err := read.ReadFrom(io.LimitReader(out.Body, int64(c.o.MaxBytes)+1)); err != nil {
		return nil, c.failed(ctx, limited, "reading", p.Key, err)
	}
	data := read.Bytes()
	if err := p.check(int64(len(data)), etag, c.o.MaxBytes); err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); p.SHA256 != nil && !bytes.Equal(sum[:], p.SHA256) {
		return nil, fmt.Errorf("%w: the object %q is not the one that the producer wrote", payload.ErrDamaged, p.Key)
	}
	return data, nil
}

// failed returns the error of a call. limited is the context of the call, and ctx that of the
// caller.
func (c *Codec) failed(ctx, limited context.Context, doing, key string, err error) error {
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case limited.Err() != nil:
		err = fmt.Errorf("it took longer than %v (Options.Timeout): %w", c.o.Timeout, err)
	}
	return fmt.Errorf("s3payload: %s %q of the bucket %q: %w", doing, key, c.bucket, err)
}

// isMissing reports whether the error of a call means that the bucket has no such object.
func isMissing(err error) bool {
	var code smithy.APIError
	if errors.As(err, &code) && code.ErrorCode() != "NotFound" && code.ErrorCode() != "UnknownError" {
		return code.ErrorCode() == "NoSuchKey"
	}
	var answered *awshttp.ResponseError
	return errors.As(err, &answered) && answered.HTTPStatusCode() == http.StatusNotFound
}
