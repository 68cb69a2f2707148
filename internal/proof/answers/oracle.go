package answers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/schemas"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
	"github.com/aws/smithy-go/transport/http/protocol/rpcv2"

	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/shard"
)

var getRecordsSchema = smithy.NewOperationSchema(schemas.GetRecords, schemas.GetRecordsInput, schemas.GetRecordsOutput)

// SDKDecode decodes an answer with the SDK. For JSON it uses the protocol of the SDK's Kinesis
// client. For CBOR it uses the protocol of other services, which reads the same structures but
// treats times as seconds.
func SDKDecode(f codec.Format, body []byte) (out *kinesis.GetRecordsOutput, err error) {
	var protocol smithyhttp.ClientProtocol = awsjson.New11(schemas.Kinesis_20131202)
	if f == codec.CBOR {
		protocol = rpcv2.NewCBOR(schemas.Kinesis_20131202)
	}
	defer func() {
		if r := recover(); r != nil { // the SDK reads beyond the end of some invalid answers
			out, err = nil, fmt.Errorf("the SDK panicked: %v", r)
		}
	}()
	out = new(kinesis.GetRecordsOutput)
	resp := &smithyhttp.Response{Response: &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}}
	err = protocol.DeserializeResponse(context.Background(), getRecordsSchema, kinesis.TypeRegistry, resp, out)
	return out, err
}

// FromSDK converts the SDK's result to a page. In JSON it replaces impossible arrival times by
// OddTime.
func FromSDK(f codec.Format, out *kinesis.GetRecordsOutput) *codec.Page {
	p := &codec.Page{Behind: -1, Next: aws.ToString(out.NextShardIterator), Children: out.ChildShards}
	if out.MillisBehindLatest != nil {
		p.Behind = behind(*out.MillisBehindLatest)
	}
	for _, r := range out.Records {
		rec := codec.Record{Data: r.Data, Key: aws.ToString(r.PartitionKey), SequenceNumber: aws.ToString(r.SequenceNumber), Encrypted: r.EncryptionType == types.EncryptionTypeKms}
		if t := r.ApproximateArrivalTimestamp; t != nil {
			rec.Arrival = OddTime
			if y := t.Year(); y > 1700 && y < 2250 || f == codec.CBOR {
				rec.Arrival = t.UnixMilli()
			}
		}
		p.Bytes += len(rec.Data) + len(rec.Key)
		p.Records = append(p.Records, rec)
	}
	return p
}

// OddTime replaces impossible arrival times in [FromSDK].
const OddTime = math.MinInt64

// The limits of arrival times, in milliseconds: the years 0 and 10,000.
const (
	MinArrival = -62_167_219_200_000
	MaxArrival = 253_402_300_800_000
)

// behind converts a lag in milliseconds to a duration. A negative lag becomes 0. A lag that is too
// large for a duration becomes the largest one.
func behind(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// Differ describes how two pages differ. It returns "" if they are equal. sameTime compares two
// arrival times.
func Differ(got, want *codec.Page, sameTime func(got, want int64) bool) string {
	if misplaced, marked := Noted(got.Records); got.Misplaced != misplaced || got.Marked != marked {
		return fmt.Sprintf("misplaced %d, marked %v, want %d, %v", got.Misplaced, got.Marked, misplaced, marked)
	}
	if len(got.Records) != len(want.Records) {
		return fmt.Sprintf("%d records, want %d", len(got.Records), len(want.Records))
	}
	for i := range got.Records {
		g, w := &got.Records[i], &want.Records[i]
		if !bytes.Equal(g.Data, w.Data) || (g.Data == nil) != (w.Data == nil) || g.Key != w.Key || g.SequenceNumber != w.SequenceNumber ||
			g.Encrypted != w.Encrypted || g.Done != shard.Whole || !sameTime(g.Arrival, w.Arrival) {
			return fmt.Sprintf("record %d is %+v, want %+v", i, *g, *w)
		}
	}
	if got.Bytes != want.Bytes || got.Next != want.Next || got.Behind != want.Behind {
		return fmt.Sprintf("bytes, next, behind are %d, %q, %v, want %d, %q, %v", got.Bytes, got.Next, got.Behind, want.Bytes, want.Next, want.Behind)
	}
	if len(got.Children) != len(want.Children) {
		return fmt.Sprintf("%d children, want %d", len(got.Children), len(want.Children))
	}
	for i := range got.Children {
		if !reflect.DeepEqual(got.Children[i], want.Children[i]) {
			return fmt.Sprintf("child %d is %+v, want %+v", i, got.Children[i], want.Children[i])
		}
	}
	return ""
}

// Noted returns what a page should report about its records: the first record that is out of order,
// and whether a record is marked.
func Noted(records []codec.Record) (misplaced int, marked bool) {
	for i, r := range records {
		if misplaced == 0 && i > 0 && shard.CompareSequence(records[i-1].SequenceNumber, r.SequenceNumber) >= 0 {
			misplaced = i
		}
		marked = marked || bytes.HasPrefix(r.Data, []byte("\xf3\x89\x9a\xc2"))
	}
	return misplaced, marked
}

// EqualTime compares two arrival times; pass it to [Differ].
func EqualTime(a, b int64) bool { return a == b }

// Bounded reports whether an answer was refused because of a limit that only weir's codec has.
func Bounded(err error) bool {
	for _, what := range []string{"nested too deep", "too many", "longer than"} {
		if strings.Contains(err.Error(), what) {
			return true
		}
	}
	return false
}
