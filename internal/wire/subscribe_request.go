package wire

import (
	"strconv"
	"time"
)

// appendTo writes the body of the request.
func (r *SubscribeRequest) appendTo(b []byte, f Format) []byte {
	if f == JSON {
		b = appendQuoted(append(b, `{"ConsumerARN":`...), r.ConsumerARN)
		b = appendQuoted(append(b, `,"ShardId":`...), r.Shard)
		b = appendQuoted(append(b, `,"StartingPosition":{"Type":`...), string(r.At.Type))
		if r.At.SequenceNumber != nil {
			b = appendQuoted(append(b, `,"SequenceNumber":`...), *r.At.SequenceNumber)
		}
		if r.At.Timestamp != nil {
			b = appendSeconds(append(b, `,"Timestamp":`...), *r.At.Timestamp)
		}
		return append(b, '}', '}')
	}
	b = append(b, cborMap|3)
	b = appendText(appendText(b, "ConsumerARN"), r.ConsumerARN)
	b = appendText(appendText(b, "ShardId"), r.Shard)
	b = append(appendText(b, "StartingPosition"), cborMap|cborOpen)
	b = appendText(appendText(b, "Type"), string(r.At.Type))
	if r.At.SequenceNumber != nil {
		b = appendText(appendText(b, "SequenceNumber"), *r.At.SequenceNumber)
	}
	if r.At.Timestamp != nil {
		b = append(appendText(b, "Timestamp"), cborTag|1)
		if ms := r.At.Timestamp.UnixMilli(); ms >= 0 {
			b = appendHead(b, cborUint, uint64(ms))
		} else {
			b = appendHead(b, cborNeg, uint64(-1-ms))
		}
	}
	return append(b, cborBreak)
}

// appendSeconds writes a time as JSON has it: seconds since 1970 with milliseconds behind the
// point.
func appendSeconds(b []byte, t time.Time) []byte {
	return strconv.AppendFloat(b, float64(t.UnixMilli())/1000, 'f', -1, 64)
}
