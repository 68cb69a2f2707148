package wire

import (
	"strconv"
	"time"

	"github.com/weir-go/weir/internal/wire/codec"
)

// appendTo appends the body of the request.
func (r *SubscribeRequest) appendTo(b []byte, f codec.Format) []byte {
	if f == codec.JSON {
		b = codec.AppendQuoted(append(b, `{"ConsumerARN":`...), r.ConsumerARN)
		b = codec.AppendQuoted(append(b, `,"ShardId":`...), r.Shard)
		b = codec.AppendQuoted(append(b, `,"StartingPosition":{"Type":`...), string(r.At.Type))
		if r.At.SequenceNumber != nil {
			b = codec.AppendQuoted(append(b, `,"SequenceNumber":`...), *r.At.SequenceNumber)
		}
		if r.At.Timestamp != nil {
			b = appendSeconds(append(b, `,"Timestamp":`...), *r.At.Timestamp)
		}
		return append(b, '}', '}')
	}
	b = codec.AppendMap(b, 3)
	b = codec.AppendText(codec.AppendText(b, "ConsumerARN"), r.ConsumerARN)
	b = codec.AppendText(codec.AppendText(b, "ShardId"), r.Shard)
	b = codec.AppendOpenMap(codec.AppendText(b, "StartingPosition"))
	b = codec.AppendText(codec.AppendText(b, "Type"), string(r.At.Type))
	if r.At.SequenceNumber != nil {
		b = codec.AppendText(codec.AppendText(b, "SequenceNumber"), *r.At.SequenceNumber)
	}
	if r.At.Timestamp != nil {
		b = codec.AppendMillis(codec.AppendText(b, "Timestamp"), r.At.Timestamp.UnixMilli())
	}
	return codec.AppendEnd(b)
}

// appendSeconds appends a time in the form of JSON: seconds since 1970 with milliseconds as
// decimals.
func appendSeconds(b []byte, t time.Time) []byte {
	return strconv.AppendFloat(b, float64(t.UnixMilli())/1000, 'f', -1, 64)
}
