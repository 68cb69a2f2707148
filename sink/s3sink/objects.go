package s3sink

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-go/weir"
)

// Object is one object of a chain. It contains all records after From, up to and including To.
type Object struct {
	Stream, Shard string
	// Key is the key of the object. It is "" if the shard ended without further records.
	Key string
	// From is zero for the first object of a chain.
	From weir.Position
	// To is the position after the last record of the object. It is [shard.End] if that was the
	// last record of the shard; then no object follows.
	To weir.Position
}

// Objects yields the objects of a shard in order, starting after a position. To begin with the
// first object, pass the zero Position. To continue, pass [Object].To of the last known object. The
// sequence ends at the current end of the chain. It does not include an object that is still being
// written. A program that follows a chain must therefore call Objects again later. Objects makes
// one request per object. If there is an error, it is in the last pair.
func (s *Sink) Objects(ctx context.Context, stream, shardID string, after weir.Position) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		c := s.chain(stream, shardID)
		if after.IsEnd() {
			return
		}
		if !after.IsZero() && !whole(after) {
			yield(Object{}, fmt.Errorf("s3sink: no object begins at %s: use Object.To, or the zero Position", after))
			return
		}
		l, err := c.read(ctx, after)
		if err == nil && l == nil && after.IsZero() {
			err = c.empty(ctx)
		}
		for err == nil && l != nil {
			var following *link
			written := true // if another link follows
			if !l.To.IsEnd() {
				following, err = c.read(ctx, l.To)
			}
			if err == nil && following == nil {
				written, err = c.written(ctx, l)
			}
			if err != nil || !written || !yield(Object{l.Stream, l.Shard, l.Object, l.At, l.To}, nil) {
				break
			}
			l = following
		}
		if err != nil {
			yield(Object{}, err)
		}
	}
}

// empty returns an error if a chain without a start link has other links.
func (c *chain) empty(ctx context.Context) error {
	keys, err := c.bucket.List(ctx, c.links, "", 1)
	if err == nil && len(keys) > 0 {
		err = fmt.Errorf("s3sink: the beginning of the chain was removed: %s is there, and %s is not; begin after a position", keys[0], c.key(weir.Position{}))
	}
	return err
}

// Shards yields the sorted IDs of all shards of a stream that have a chain. If there is an error,
// it is in the last pair.
func (s *Sink) Shards(ctx context.Context, stream string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		prefix := s.o.Prefix + "_weir/" + stream + "/"
		pages := s3.NewListObjectsV2Paginator(s.bucket.Client, &s3.ListObjectsV2Input{Bucket: &s.bucket.Name, Prefix: &prefix, Delimiter: aws.String("/")})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield("", fmt.Errorf("s3sink: listing %s: %w", prefix, err))
				return
			}
			for _, p := range page.CommonPrefixes {
				if !yield(strings.TrimSuffix(strings.TrimPrefix(aws.ToString(p.Prefix), prefix), "/"), nil) {
					return
				}
			}
		}
	}
}

// Open returns a reader of the decompressed lines of an object. The caller must close it.
func (s *Sink) Open(ctx context.Context, o Object) (io.ReadCloser, error) {
	if o.Key == "" {
		return io.NopCloser(strings.NewReader("")), nil
	}
	answer, err := s.bucket.Client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket.Name, Key: &o.Key})
	if err != nil {
		return nil, fmt.Errorf("s3sink: reading %s: %w", o.Key, err)
	}
	if !compressed(o.Key) {
		return answer.Body, nil
	}
	z, err := gzip.NewReader(answer.Body)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("s3sink: reading %s: %w", o.Key, err), answer.Body.Close())
	}
	return lines{z, answer.Body}, nil
}

// lines is a decompressor that also closes its source.
type lines struct {
	*gzip.Reader
	body io.Closer
}

func (l lines) Close() error { return errors.Join(l.Reader.Close(), l.body.Close()) }

// compressed reports whether the object with this key is compressed.
func compressed(key string) bool { return strings.HasSuffix(key, ".gz") }
