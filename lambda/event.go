package lambda

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/weir-go/weir"
)

// MaxBytes is the maximum size of an event and of an answer. Lambda has the same limit for
// synchronous calls.
const MaxBytes = 6 << 20

// Source describes the origin of the records in an event.
type Source struct {
	Region    string // for example eu-west-1
	StreamARN string
	RoleARN   string // execution role of the function
}

const (
	eventHead = `{"Records":[`
	eventTail = `]}`
)

// AppendEvent appends the event that Lambda creates from the given records to dst. All records must
// be from one shard. Fields have Lambda's order, and numbers have Lambda's format. Records that
// [weir.Unpack] unpacked from one aggregate share a sequence number. The eventID of such a record
// ends in its index in the aggregate, for example "…+2".
func AppendEvent(dst []byte, s Source, records []weir.Record) []byte {
	dst = append(dst, eventHead...)
	for i, r := range records {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = s.appendRecord(dst, r)
	}
	return append(dst, eventTail...)
}

func (s Source) appendRecord(dst []byte, r weir.Record) []byte {
	return s.appendItem(dst, item{r.PartitionKey, r.SequenceNumber, r.Data, r.ArrivalTime().UnixMilli(), r.Shard() + ":" + r.Position().String()})
}

// item is a record in an event.
type item struct {
	key, number string
	data        []byte
	arrived     int64 // in milliseconds
	id          string
}

func (s Source) appendItem(dst []byte, i item) []byte {
	dst = append(dst, `{"kinesis":{"kinesisSchemaVersion":"1.0","partitionKey":`...)
	dst = appendString(dst, i.key)
	dst = append(dst, `,"sequenceNumber":`...)
	dst = appendString(dst, i.number)
	dst = append(dst, `,"data":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, i.data)
	dst = append(dst, `","approximateArrivalTimestamp":`...)
	dst = appendSeconds(dst, i.arrived)
	dst = append(dst, `},"eventSource":"aws:kinesis","eventVersion":"1.0","eventID":`...)
	dst = appendString(dst, i.id)
	dst = append(dst, `,"eventName":"aws:kinesis:record","invokeIdentityArn":`...)
	dst = appendString(dst, s.RoleARN)
	dst = append(dst, `,"awsRegion":`...)
	dst = appendString(dst, s.Region)
	dst = append(dst, `,"eventSourceARN":`...)
	dst = appendString(dst, s.StreamARN)
	return append(dst, '}')
}

// appendSeconds appends a time in milliseconds as seconds with three decimals.
func appendSeconds(dst []byte, ms int64) []byte {
	return strconv.AppendFloat(dst, float64(ms)/1000, 'f', 3, 64)
}

func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, _ := json.Marshal(s) // encoding a string cannot fail
			return append(dst, quoted...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}
