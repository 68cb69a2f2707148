package wire

import (
	"encoding/binary"
	"encoding/json"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// Request is what GetRecords is asked for.
type Request struct {
	Iterator string
	Limit    int // records, 1 to 10,000; 0 leaves it to the service
	// of the stream; optional, but account-based endpoints and policies may need it
	StreamARN string
	Window    int    // how much of the answer [Caller.Read] holds at a time; 0 is [Options.Window]
	Line      *Line  // that keeps the connection for the next call; may be nil
	Retry     *Retry // about a second try; may be nil
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

// appendTo writes the body of the request.
func (r *Request) appendTo(b []byte, f Format) []byte {
	if f == JSON {
		b = appendQuoted(append(b, `{"ShardIterator":`...), r.Iterator)
		if r.Limit > 0 {
			b = strconv.AppendInt(append(b, `,"Limit":`...), int64(r.Limit), 10)
		}
		if r.StreamARN != "" {
			b = appendQuoted(append(b, `,"StreamARN":`...), r.StreamARN)
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
	b = append(b, cborMap|byte(members))
	b = appendText(appendText(b, "ShardIterator"), r.Iterator)
	if r.Limit > 0 {
		b = appendHead(appendText(b, "Limit"), cborUint, uint64(r.Limit))
	}
	if r.StreamARN != "" {
		b = appendText(appendText(b, "StreamARN"), r.StreamARN)
	}
	return b
}

// appendInput writes an input of the SDK in CBOR, which somebody's middleware may have filled in
// further.
func appendInput(b []byte, in *kinesis.GetRecordsInput) []byte {
	b = append(b, cborMap|cborOpen)
	for _, m := range []struct {
		name  string
		value *string
	}{{"ShardIterator", in.ShardIterator}, {"StreamARN", in.StreamARN}, {"StreamId", in.StreamId}} {
		if m.value != nil {
			b = appendText(appendText(b, m.name), *m.value)
		}
	}
	if in.Limit != nil {
		b = appendText(b, "Limit")
		if n := int64(*in.Limit); n >= 0 {
			b = appendHead(b, cborUint, uint64(n))
		} else {
			b = appendHead(b, cborNeg, uint64(-1-n))
		}
	}
	if in.DryRun != nil {
		value := byte(cborFalse)
		if *in.DryRun {
			value = cborTrue
		}
		b = append(appendText(b, "DryRun"), value)
	}
	return append(b, cborBreak)
}

func appendText(b []byte, s string) []byte {
	return append(appendHead(b, cborText, uint64(len(s))), s...)
}

func appendHead(b []byte, major byte, n uint64) []byte {
	switch {
	case n < 24:
		return append(b, major|byte(n))
	case n < 1<<8:
		return append(b, major|24, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, major|25), uint16(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(b, major|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(b, major|27), n)
	}
}

// appendQuoted writes s as a JSON string.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil {
				return append(b, `""`...) // a string can always be written
			}
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
