package wire

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/schemas"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
	"github.com/aws/smithy-go/transport/http/protocol/rpcv2"

	"github.com/weir-go/weir/shard"
)

func floatBits(f float64) uint64 { return math.Float64bits(f) }

var getRecordsSchema = smithy.NewOperationSchema(schemas.GetRecords, schemas.GetRecordsInput, schemas.GetRecordsOutput)

// sdkDecode has the SDK read an answer: with the protocol that its Kinesis client uses, or, for
// CBOR, with that of other services, which reads the same structures but takes times for seconds.
func sdkDecode(f Format, body []byte) (out *kinesis.GetRecordsOutput, err error) {
	var protocol smithyhttp.ClientProtocol = awsjson.New11(schemas.Kinesis_20131202)
	if f == CBOR {
		protocol = rpcv2.NewCBOR(schemas.Kinesis_20131202)
	}
	defer func() {
		if r := recover(); r != nil { // it reads beyond the end of some broken answers
			out, err = nil, fmt.Errorf("the SDK panicked: %v", r)
		}
	}()
	out = new(kinesis.GetRecordsOutput)
	resp := &smithyhttp.Response{Response: &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}}
	err = protocol.DeserializeResponse(context.Background(), getRecordsSchema, kinesis.TypeRegistry, resp, out)
	return out, err
}

// fromSDK is what the SDK read as a page. Times that no record has come out as oddTime.
func fromSDK(f Format, out *kinesis.GetRecordsOutput) *Page {
	p := &Page{Behind: -1, Next: aws.ToString(out.NextShardIterator), Children: out.ChildShards}
	if out.MillisBehindLatest != nil {
		p.Behind = millis(*out.MillisBehindLatest)
	}
	for _, r := range out.Records {
		rec := Record{Data: r.Data, Key: aws.ToString(r.PartitionKey), SequenceNumber: aws.ToString(r.SequenceNumber), Encrypted: r.EncryptionType == types.EncryptionTypeKms}
		if t := r.ApproximateArrivalTimestamp; t != nil {
			rec.Arrival = oddTime
			if y := t.Year(); y > 1700 && y < 2250 || f == CBOR {
				rec.Arrival = t.UnixMilli()
			}
		}
		p.Bytes += len(rec.Data) + len(rec.Key)
		p.Records = append(p.Records, rec)
	}
	return p
}

const oddTime = math.MinInt64

// differ says where two pages differ, "" for nowhere. sameTime judges arrival times.
func differ(got, want *Page, sameTime func(got, want int64) bool) string {
	if misplaced, marked := noted(got.Records); got.Misplaced != misplaced || got.Marked != marked {
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

// noted is what a page should say about its records.
func noted(records []Record) (misplaced int, marked bool) {
	for i, r := range records {
		if misplaced == 0 && i > 0 && shard.CompareSequence(records[i-1].SequenceNumber, r.SequenceNumber) >= 0 {
			misplaced = i
		}
		marked = marked || bytes.HasPrefix(r.Data, []byte("\xf3\x89\x9a\xc2"))
	}
	return misplaced, marked
}

func equalTime(a, b int64) bool { return a == b }

// A naive reader of CBOR: the whole answer becomes a tree first, then the tree a page.

type pair struct{ key, value any }
type cborList []any
type cborDict []pair
type cborNil struct{}
type cborSimple byte

var errNaive = errors.New("malformed")

type naive struct {
	in []byte
}

func (n *naive) take(k uint64) ([]byte, error) {
	if k > uint64(len(n.in)) {
		return nil, errNaive
	}
	b := n.in[:k]
	n.in = n.in[k:]
	return b, nil
}

// item reads one item, or a break where that may stand.
func (n *naive) item(depth, tags int) (v any, isBreak bool, err error) {
	if tags > maxTags {
		return nil, false, errNaive
	}
	h, err := n.take(1)
	if err != nil {
		return nil, false, err
	}
	major, info := h[0]>>5, h[0]&31
	if h[0] == 0xff {
		return nil, true, nil
	}
	arg := uint64(info)
	if info >= 24 && info <= 27 {
		b, err := n.take(1 << (info - 24))
		if err != nil {
			return nil, false, err
		}
		arg = 0
		for _, c := range b {
			arg = arg*256 + uint64(c)
		}
	} else if info > 27 && (info != 31 || major < 2 || major > 5) {
		return nil, false, errNaive
	}
	open := info == 31
	switch major {
	case 0, 1:
		return int128{arg, major == 1}, false, nil
	case 2, 3:
		var b []byte
		if !open {
			if b, err = n.take(arg); err != nil {
				return nil, false, err
			}
		}
		for open {
			if len(n.in) > 0 && n.in[0] != 0xff && (n.in[0]>>5 != major || n.in[0]&31 == 31) {
				return nil, false, errNaive
			}
			v, end, err := n.item(depth, 0)
			if err != nil {
				return nil, false, err
			}
			if end {
				break
			}
			switch v := v.(type) {
			case []byte:
				b = append(b, v...)
			case string:
				b = append(b, v...)
			}
		}
		if major == 3 {
			return string(b), false, nil
		}
		return append([]byte{}, b...), false, nil
	case 4, 5:
		var all []any
		if !open && arg > uint64(len(n.in)) {
			return nil, false, errNaive
		}
		for i := uint64(0); open || i < arg*uint64(major-3); i++ {
			v, end, err := n.item(depth+1, 0)
			if err != nil {
				return nil, false, err
			}
			if end {
				if !open || (major == 5 && i%2 == 1) {
					return nil, false, errNaive
				}
				break
			}
			all = append(all, v)
		}
		if major == 4 {
			return cborList(all), false, nil
		}
		var m cborDict
		for i := 0; i+1 < len(all); i += 2 {
			m = append(m, pair{all[i], all[i+1]})
		}
		return m, false, nil
	case 6:
		v, end, err := n.item(depth, tags+1)
		if end {
			err = errNaive
		}
		return v, false, err
	}
	switch {
	case info == 22 || info == 23:
		return cborNil{}, false, nil
	case info == 24 && arg < 32:
		return nil, false, errNaive
	case info == 25:
		return float16(uint16(arg)), false, nil
	case info == 26:
		return float64(math.Float32frombits(uint32(arg))), false, nil
	case info == 27:
		return math.Float64frombits(arg), false, nil
	}
	return cborSimple(arg), false, nil
}

type int128 struct {
	arg      uint64
	negative bool
}

func (i int128) int64() (int64, error) {
	if i.arg > math.MaxInt64 {
		return 0, errNaive
	}
	if i.negative {
		return -1 - int64(i.arg), nil
	}
	return int64(i.arg), nil
}

// naiveDecode reads a page from CBOR. It panics with errNaive inside, for brevity.
func naiveDecode(body []byte) (p *Page, err error) {
	n := &naive{in: body}
	v, end, err := n.item(0, 0)
	if err != nil || end || len(n.in) > 0 {
		return nil, errNaive
	}
	defer func() {
		if r := recover(); r == errNaive { //nolint:errorlint // it is compared with itself
			p, err = nil, errNaive
		} else if r != nil {
			panic(r)
		}
	}()
	return naivePage(v), nil
}

func must[T any](v any) T {
	t, ok := v.(T)
	if !ok {
		panic(errNaive)
	}
	return t
}

func naivePage(v any) *Page {
	p := &Page{Behind: -1}
	for _, m := range must[cborDict](v) {
		if m.value == (any)(cborNil{}) {
			continue
		}
		switch m.key {
		case "Records":
			p.Records, p.Bytes = nil, 0
			for _, v := range must[cborList](m.value) {
				r := naiveRecord(v, p)
				p.Bytes += len(r.Data) + len(r.Key)
				p.Records = append(p.Records, r)
			}
		case "MillisBehindLatest":
			p.Behind = millis(naiveInt(m.value))
		case "NextShardIterator":
			p.Next = must[string](m.value)
		case "ChildShards":
			p.Children = nil
			for _, v := range must[cborList](m.value) {
				p.Children = append(p.Children, naiveChild(v))
			}
		}
	}
	return p
}

func naiveInt(v any) int64 {
	if i, ok := v.(int128); ok {
		n, err := i.int64()
		if err != nil {
			panic(errNaive)
		}
		return n
	}
	f := must[float64](v)
	if math.IsNaN(f) || math.Abs(f) > 1<<53 {
		panic(errNaive)
	}
	return int64(f)
}

func naiveRecord(v any, p *Page) (r Record) {
	if v == (any)(cborNil{}) {
		return r
	}
	for _, m := range must[cborDict](v) {
		if m.value == (any)(cborNil{}) {
			continue
		}
		switch m.key {
		case "Data":
			if s, ok := m.value.(string); ok {
				b, err := base64.StdEncoding.DecodeString(s)
				if err != nil {
					panic(errNaive)
				}
				r.Data, p.text = b, true
				continue
			}
			r.Data = must[[]byte](m.value)
		case "PartitionKey":
			r.Key = must[string](m.value)
		case "SequenceNumber":
			r.SequenceNumber = must[string](m.value)
		case "EncryptionType":
			r.Encrypted = must[string](m.value) == "KMS"
		case "ApproximateArrivalTimestamp":
			var ms float64
			if i, ok := m.value.(int128); ok {
				n, err := i.int64()
				if err != nil {
					panic(errNaive)
				}
				ms = float64(n)
			} else {
				ms = must[float64](m.value)
			}
			if math.Abs(ms) < 1e11 {
				ms *= 1000
			}
			if ms = math.Round(ms); math.IsNaN(ms) || ms < minArrival || ms > maxArrival {
				panic(errNaive)
			}
			r.Arrival = int64(ms)
		}
	}
	return r
}

func naiveChild(v any) (c types.ChildShard) {
	if v == (any)(cborNil{}) {
		return c
	}
	for _, m := range must[cborDict](v) {
		if m.value == (any)(cborNil{}) {
			continue
		}
		switch m.key {
		case "ShardId":
			c.ShardId = aws.String(must[string](m.value))
		case "ParentShards":
			c.ParentShards = []string{}
			for _, v := range must[cborList](m.value) {
				id := ""
				if v != (any)(cborNil{}) {
					id = must[string](v)
				}
				c.ParentShards = append(c.ParentShards, id)
			}
		case "HashKeyRange":
			c.HashKeyRange = new(types.HashKeyRange)
			for _, m := range must[cborDict](m.value) {
				if m.value == (any)(cborNil{}) {
					continue
				}
				switch m.key {
				case "StartingHashKey":
					c.HashKeyRange.StartingHashKey = aws.String(must[string](m.value))
				case "EndingHashKey":
					c.HashKeyRange.EndingHashKey = aws.String(must[string](m.value))
				}
			}
		}
	}
	return c
}
