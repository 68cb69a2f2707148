package wire

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/wire/codec"
)

// Request contains the parameters of GetRecords.
type Request struct {
	Iterator string
	Limit    int // records, 1 to 10,000; 0 means the service's default
	// StreamARN is the ARN of the stream. It is optional, but account-based endpoints and policies
	// may need it.
	StreamARN string
	// Window is the maximum amount of the answer in memory for [Caller.Read]. 0 means
	// [Options.Window].
	Window int
	Line   *Line  // keeps the connection for the next call; may be nil
	Retry  *Retry // configures the retry; may be nil
}

func (r *Request) input() *kinesis.GetRecordsInput {
	in := &kinesis.GetRecordsInput{ShardIterator: aws.String(r.Iterator)}
	if r.Limit > 0 {
		in.Limit = aws.Int32(int32(min(r.Limit, 1<<30)))
	}
	if r.StreamARN != "" {
		in.StreamARN = aws.String(r.StreamARN)
	}
	return in
}

// appendTo appends the body of the request.
func (r *Request) appendTo(b []byte, f codec.Format) []byte {
	if f == codec.JSON {
		b = codec.AppendQuoted(append(b, `{"ShardIterator":`...), r.Iterator)
		if r.Limit > 0 {
			b = strconv.AppendInt(append(b, `,"Limit":`...), int64(r.Limit), 10)
		}
		if r.StreamARN != "" {
			b = codec.AppendQuoted(append(b, `,"StreamARN":`...), r.StreamARN)
		}
		return append(b, '}')
	}
	members := 1
	if r.Limit > 0 {
		members++
	}
	if r.StreamARN != "" {
		members++
	}
	b = codec.AppendMap(b, members)
	b = codec.AppendText(codec.AppendText(b, "ShardIterator"), r.Iterator)
	if r.Limit > 0 {
		b = codec.AppendInt(codec.AppendText(b, "Limit"), int64(r.Limit))
	}
	if r.StreamARN != "" {
		b = codec.AppendText(codec.AppendText(b, "StreamARN"), r.StreamARN)
	}
	return b
}

// appendInput appends an input of the SDK in CBOR. A user's middleware may have set further fields.
func appendInput(b []byte, in *kinesis.GetRecordsInput) []byte {
	b = codec.AppendOpenMap(b)
	for _, m := range []struct {
		name  string
		value *string
	}{{"ShardIterator", in.ShardIterator}, {"StreamARN", in.StreamARN}, {"StreamId", in.StreamId}} {
		if m.value != nil {
			b = codec.AppendText(codec.AppendText(b, m.name), *m.value)
		}
	}
	if in.Limit != nil {
		b = codec.AppendInt(codec.AppendText(b, "Limit"), int64(*in.Limit))
	}
	if in.DryRun != nil {
		b = codec.AppendBool(codec.AppendText(b, "DryRun"), *in.DryRun)
	}
	return codec.AppendEnd(b)
}
