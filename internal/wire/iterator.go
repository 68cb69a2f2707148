package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/internal/wire/codec"
)

const (
	iteratorOperation = "GetShardIterator"
	iteratorTarget    = "Kinesis_20131202." + iteratorOperation
)

var iteratorTargetValue = []string{iteratorTarget}

// ErrNoIterator is returned if an answer to GetShardIterator contains no iterator.
var ErrNoIterator = errors.New("the service returned no shard iterator")

// Iterator calls GetShardIterator. It does not retry errors. On the path [OwnCall] it makes its own
// call in JSON, which saves 25 KB of allocations. This matters when thousands of shards start.
// Other paths, and endpoints that need the SDK, call the client. OwnCall and UnderSDK repeat a call
// once if its connection is silent. line and retry may be nil. A line that is not used is parked.
// Errors are the same as for [Caller.GetRecords], plus [ErrNoIterator].
func (c *Caller) Iterator(ctx context.Context, in *kinesis.GetShardIteratorInput, line *Line, retry *Retry) (it string, err error) {
	l := live(ctx, &Request{Line: line, Retry: retry}, c.opts.Timeout, c.slow)
	defer l.end()
	if c.path == OwnCall {
		if err := c.prepareFor(l, iteratorOperation, aws.ToString(in.StreamARN)); err != nil {
			return "", err
		}
		if l.ep.reason == "" {
			err := c.twice(l, func() error {
				it, err = c.iterator(l, in)
				return err
			})
			if err != nil {
				err = errorOf(iteratorOperation, err)
			}
			return it, err
		}
	}
	if line != nil {
		line.Park()
	}
	var out *kinesis.GetShardIteratorOutput
	if l.deaf = c.path == PlainSDK || c.path == Methods; l.deaf {
		out, err = c.client.GetShardIterator(l, in, asWrapped)
	} else {
		err = c.twice(l, func() error {
			out, err = c.client.GetShardIterator(l, in, c.once(l))
			return err
		})
	}
	switch {
	case err != nil:
		return "", err
	case aws.ToString(out.ShardIterator) == "":
		return "", ErrNoIterator
	}
	return *out.ShardIterator, nil
}

func (c *Caller) iterator(l *life, in *kinesis.GetShardIteratorInput) (string, error) {
	a, err := c.askIterator(l, in)
	if err != nil {
		return "", l.sendError(err)
	}
	defer func() { _ = a.body.Close() }() // the data was read, so an error does not matter
	a.target = iteratorTargetValue
	it := ""
	if a.status == http.StatusOK {
		it, err = readIterator(&a)
	} else {
		err = readAPIError(l, &a)
		c.learnSkew(&a, err)
	}
	switch {
	case err == nil:
		return it, nil
	case l.over(err) && !isAPIError(err):
		err = l.sendError(err)
	}
	return "", responseError(&a, err)
}

// askIterator makes the call in the same way as [Caller.send].
func (c *Caller) askIterator(l *life, in *kinesis.GetShardIteratorInput) (answer, error) {
	if !c.byHand(l) {
		if l.line != nil {
			l.line.Park()
		}
		return c.post(l, iteratorJSON, appendIteratorInput(make([]byte, 0, 256), in))
	}
	d := drafts.Get().(*draft)
	d.body = appendIteratorInput(d.body[:0], in)
	message := l.ep.signed(d, c.now(), &l.cred, iteratorJSON)
	err := l.do(message, true)
	drafts.Put(d)
	return l.answered(err)
}

// readIterator reads a successful answer.
func readIterator(a *answer) (it string, err error) {
	if e := a.encoding(); e != "" {
		return "", &smithy.DeserializationError{Err: &unexpectedError{codec.JSON, "the encoding " + e}}
	}
	body, err := readAtMost(a.body, 2*codec.MaxIterator)
	if err != nil {
		return "", codec.Incomplete(len(body), err)
	}
	contentType := a.field("Content-Type")
	f, ok := codec.FormatOf(contentType, body)
	if !ok {
		return "", &smithy.DeserializationError{Err: &unexpectedError{codec.JSON, fmt.Sprintf("the type %.100q", contentType)}}
	}
	it, err = codec.ReadIterator(f, body)
	if err != nil {
		return "", deserialization(err)
	}
	if it == "" {
		return "", ErrNoIterator
	}
	return it, nil
}

// appendIteratorInput appends the body of a request in JSON, because one server silently misreads
// times in CBOR.
func appendIteratorInput(b []byte, in *kinesis.GetShardIteratorInput) []byte {
	b = append(b, '{')
	for _, m := range [...]struct{ name, value string }{
		{"ShardId", aws.ToString(in.ShardId)}, {"ShardIteratorType", string(in.ShardIteratorType)}, {"StreamARN", aws.ToString(in.StreamARN)},
		{"StreamName", aws.ToString(in.StreamName)}, {"StartingSequenceNumber", aws.ToString(in.StartingSequenceNumber)},
	} {
		if m.value == "" {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), m.name...), `":`...)
		b = codec.AppendQuoted(b, m.value)
	}
	if in.Timestamp != nil {
		b = strconv.AppendFloat(append(b, `,"Timestamp":`...), float64(in.Timestamp.UnixMilli())/1000, 'f', -1, 64)
	}
	return append(b, '}')
}
