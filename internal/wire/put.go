package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/internal/wire/codec"
)

const (
	putOperation = "PutRecords"
	putTarget    = "Kinesis_20131202." + putOperation
)

var putTargetValue = []string{putTarget}

// PutRequest contains the parameters of PutRecords.
type PutRequest struct {
	StreamName, StreamARN string // at least one of them must be set
	Entries               []PutEntry
	Timeout               time.Duration // timeout of the call; 0 means [Options.Timeout]
}

// PutEntry is one record of a PutRecords call.
type PutEntry struct {
	PartitionKey    string
	ExplicitHashKey string // optional
	Data            []byte // ignored if Packed is set
	Packed          Packed // may be nil
}

// Packed writes its data directly into the request.
type Packed interface {
	// Size returns the number of bytes that AppendContainer appends.
	Size() int
	AppendContainer(to []byte) []byte
}

// errPutSlow is the cause of a timeout of PutRecords.
var errPutSlow = fmt.Errorf("the answer was not complete in time: %w", context.DeadlineExceeded)

// PutRecords makes a PutRecords call without retries. It returns the result of each record, from
// the answer. The results share memory. Errors are the same as for [Caller.GetRecords].
//
// If a call fails after the request was sent, the records may still be stored. Only an error of the
// service with a status below 500 means that no record is stored. A call is therefore never sent
// twice. The exception is a second call in JSON after the endpoint refused CBOR.
func (c *Caller) PutRecords(ctx context.Context, req *PutRequest) ([]codec.PutResult, error) {
	timeout := req.Timeout
	if timeout == 0 {
		timeout = c.opts.Timeout
	}
	l := live(ctx, &Request{}, timeout, errPutSlow)
	l.deaf = true // a retry could store the records twice
	defer l.end()
	if c.path != OwnCall {
		return c.putBySDK(l, req)
	}
	if err := c.prepareFor(l, putOperation, req.StreamARN); err != nil {
		return nil, err
	}
	if l.ep.reason != "" {
		return c.putBySDK(l, req)
	}
	results, err := c.putInFormat(l, req)
	c.strange(l.ep, err)
	if err != nil {
		return nil, errorOf(putOperation, err)
	}
	return results, nil
}

// putInFormat makes the call in the format that currently seems best for the endpoint, and updates
// that choice from the result.
func (c *Caller) putInFormat(l *life, req *PutRequest) ([]codec.PutResult, error) {
	if f := c.opts.Format; f != codec.Auto {
		return c.putOnce(l, f, req)
	}
	choice := &l.ep.puts
	state := choice.load()
	results, err := c.putOnce(l, state.format(), req)
	again := c.learn(choice, req.StreamARN, state, putOutcome(err), err)
	if again && refusedFormat(err) {
		state, _ = state.next(refused)
		results, err = c.putOnce(l, state.format(), req)
		c.learn(choice, req.StreamARN, state, putOutcome(err), err)
	}
	return results, err
}

// putOutcome derives the outcome for the format choice from the result of a call.
func putOutcome(err error) outcome {
	if err == nil {
		return readRecords
	}
	return outcomeOf(err, nil)
}

// refusedFormat reports whether the service returned an error because it could not read the
// request. If the answer could not be read, the records may be stored.
func refusedFormat(err error) bool {
	var malformed *codec.MalformedError
	var unexpected *unexpectedError
	return !errors.As(err, &malformed) && !errors.As(err, &unexpected)
}

// putOnce makes one call.
func (c *Caller) putOnce(l *life, f codec.Format, req *PutRequest) ([]codec.PutResult, error) {
	a, err := c.sendPut(l, f, req)
	if err != nil {
		return nil, l.sendError(err)
	}
	defer func() { _ = a.body.Close() }() // the data was read, so an error does not matter
	a.target = putTargetValue
	var results []codec.PutResult
	if a.status == http.StatusOK {
		results, err = readPut(&a, f, len(req.Entries))
	} else {
		err = readAPIError(l, &a)
		c.learnSkew(&a, err)
	}
	switch {
	case err == nil:
		return results, nil
	case l.over(err) && !isAPIError(err):
		err = l.sendError(err)
	}
	return nil, responseError(&a, err)
}

// sendPut makes the call over this package's HTTP client, or over net/http if that is necessary.
func (c *Caller) sendPut(l *life, f codec.Format, req *PutRequest) (answer, error) {
	d := putDrafts.Get().(*putDraft)
	if !c.byHand(l) {
		// net/http may read the body after it has returned, so the body is not reused.
		d.split = false
		d.reset(0, req.size(f))
		req.appendTo(d, f)
		return c.post(l, putCall(f), d.buf)
	}
	defer d.release()
	message, parts := l.ep.putMessage(d, c.now(), &l.cred, f, req)
	var err error
	l.answer, err = l.ep.lean.DoParts(l.caller, message, parts, l.limits())
	return l.answered(err)
}

// readPut reads a successful answer. records is the number of records in the request.
func readPut(a *answer, asked codec.Format, records int) ([]codec.PutResult, error) {
	if e := a.encoding(); e != "" {
		return nil, &smithy.DeserializationError{Err: &unexpectedError{asked, "the encoding " + e}}
	}
	body, err := readWhole(a.body, a.length, codec.MostPutAnswer(records))
	if err != nil {
		return nil, codec.Incomplete(len(body), err)
	}
	contentType := a.field("Content-Type")
	f, ok := codec.FormatOf(contentType, body)
	if !ok {
		return nil, &smithy.DeserializationError{Err: &unexpectedError{asked, fmt.Sprintf("the type %.100q", contentType)}}
	}
	results, err := codec.ReadPut(f, body, records)
	if err != nil {
		return nil, deserialization(err)
	}
	return results, nil
}

// putBySDK makes the call through the client.
func (c *Caller) putBySDK(l *life, req *PutRequest) ([]codec.PutResult, error) {
	in := &kinesis.PutRecordsInput{Records: make([]types.PutRecordsRequestEntry, len(req.Entries))}
	if req.StreamName != "" {
		in.StreamName = &req.StreamName
	}
	if req.StreamARN != "" {
		in.StreamARN = &req.StreamARN
	}
	for i := range req.Entries {
		e, to := &req.Entries[i], &in.Records[i]
		if to.Data = e.Data; e.Packed != nil {
			to.Data = e.Packed.AppendContainer(nil)
		}
		if to.Data == nil {
			to.Data = []byte{}
		}
		if e.PartitionKey != "" {
			to.PartitionKey = &e.PartitionKey
		}
		if e.ExplicitHashKey != "" {
			to.ExplicitHashKey = &e.ExplicitHashKey
		}
	}
	out, err := c.real.PutRecords(l, in, func(o *kinesis.Options) { o.Retryer = aws.NopRetryer{} })
	if err != nil {
		return nil, err
	}
	results := make([]codec.PutResult, len(out.Records))
	for i, r := range out.Records {
		results[i] = codec.PutResult{
			Shard: aws.ToString(r.ShardId), SequenceNumber: aws.ToString(r.SequenceNumber),
			Code: aws.ToString(r.ErrorCode), Message: aws.ToString(r.ErrorMessage),
		}
	}
	return results, nil
}
