package producer

import (
	"context"
	"log/slog"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
	"github.com/weir-go/weir/internal/wire/codec"
)

// ownCalls returns the caller with which the producer itself makes the PutRecords calls of a
// client. It returns nil if the client's options need the SDK's stack.
func ownCalls(client *kinesis.Client, o Options) (*wire.Caller, error) {
	if client.Options().HTTPClient == nil {
		return nil, nil
	}
	c, err := wire.NewCaller(client, wire.Options{
		MaxConns: o.MaxRequests,
		Switched: func(_ string, to codec.Format, why error) { logSwitched(o.Logger, to, why) },
		FellBack: func(host string, why error) {
			o.Logger.Warn("weir could not parse an answer of the service; net/http makes all further calls to this endpoint, which needs more CPU time", "endpoint", host, "err", why)
		},
	})
	if err != nil {
		return nil, err
	}
	if path, _ := c.Path(); path != wire.OwnCall {
		return nil, nil
	}
	return c, nil
}

func logSwitched(to *slog.Logger, f codec.Format, why error) {
	to.Info("writes to a stream use another request format from now on", "format", f.String(), "why", why)
}

// call makes the call of a request.
func (p *Producer) call(r *request) answer {
	timeout := callTimeout(r.bytes)
	if p.wire == nil {
		ctx, cancel := context.WithTimeout(p.ctx, timeout)
		defer cancel()
		out, err := p.client.PutRecords(ctx, p.input(r), streams.Once)
		if err != nil {
			return answer{err: err}
		}
		return answer{entries: entriesOf(out)}
	}
	in := wireRequests.Get().(*wire.PutRequest)
	in.StreamName, in.StreamARN, in.Timeout = aws.ToString(p.name), aws.ToString(p.arn), timeout
	for i := range r.sendings {
		s := &r.sendings[i]
		first := s.records[0]
		e := wire.PutEntry{PartitionKey: first.key, ExplicitHashKey: first.explicit, Data: first.data}
		if s.box != nil {
			e.Packed = s.box
		}
		in.Entries = append(in.Entries, e)
	}
	results, err := p.wire.PutRecords(p.ctx, in)
	clear(in.Entries)
	*in = wire.PutRequest{Entries: in.Entries[:0]}
	wireRequests.Put(in)
	if err != nil {
		return answer{err: err}
	}
	return answer{entries: results}
}

var wireRequests = sync.Pool{New: func() any { return new(wire.PutRequest) }}

// input returns the client's input for a request. It shares the strings and the data of the
// records.
func (p *Producer) input(r *request) *kinesis.PutRecordsInput {
	in := &kinesis.PutRecordsInput{Records: make([]types.PutRecordsRequestEntry, len(r.sendings))}
	in.StreamName, in.StreamARN = p.name, p.arn
	for i := range r.sendings {
		s, e := &r.sendings[i], &in.Records[i]
		first := s.records[0]
		e.Data = first.data
		if s.box != nil {
			e.Data = s.box.AppendContainer(nil)
		}
		if e.Data == nil {
			e.Data = []byte{}
		}
		// A container has the keys of its first record, so the service stores it in the shard of
		// that record.
		if first.key != "" {
			e.PartitionKey = &first.key
		}
		if first.explicit != "" {
			e.ExplicitHashKey = &first.explicit
		}
	}
	return in
}

func entriesOf(out *kinesis.PutRecordsOutput) []entry {
	entries := make([]entry, len(out.Records))
	for i, r := range out.Records {
		entries[i] = entry{
			Shard: aws.ToString(r.ShardId), SequenceNumber: aws.ToString(r.SequenceNumber),
			Code: aws.ToString(r.ErrorCode), Message: aws.ToString(r.ErrorMessage),
		}
	}
	return entries
}
