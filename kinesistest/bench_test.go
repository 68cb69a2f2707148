package kinesistest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
)

// sink is a ResponseWriter that discards the answer and counts its bytes.
type sink struct {
	header http.Header
	status int
	n      int64
}

func (w *sink) Header() http.Header { return w.header }
func (w *sink) WriteHeader(s int)   { w.status = s }
func (w *sink) Write(p []byte) (int, error) {
	w.n += int64(len(p))
	return len(p), nil
}

// serve passes a request to the server directly, without a network.
func serve(tb testing.TB, s *kinesistest.Server, action, contentType string, body []byte) int64 {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, "http://localhost/", bytes.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("X-Amz-Target", "Kinesis_20131202."+action)
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=k, SignedHeaders=host, Signature=0")
	r.Header.Set("X-Amz-Date", "20200101T000000Z")
	w := &sink{header: http.Header{}, status: 200}
	s.ServeHTTP(w, r)
	if w.status != 200 {
		tb.Fatalf("%s was answered with %d", action, w.status)
	}
	return w.n
}

// cborText encodes a text string, and cborBlob a byte string.
func cborText(s string) []byte { return append(cborHead(0x60, len(s)), s...) }
func cborBlob(b []byte) []byte { return append(cborHead(0x40, len(b)), b...) }

func cborHead(major byte, n int) []byte {
	return []byte{major | 26, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

// BenchmarkGetRecords measures how long the server takes for an answer with a thousand records of 1
// KiB, without the network.
func BenchmarkGetRecords(b *testing.B) {
	s, c := start(b)
	s.CreateStream("s", 1)
	key := strings.Repeat("k", 36)
	for range 1000 {
		s.Put("s", key, bytes.Repeat([]byte{0xa5}, 1024))
	}
	it := *reader{b, b.Context(), c, "s"}.iterator(shardID(0), types.ShardIteratorTypeTrimHorizon)
	for format, body := range map[string][]byte{
		jsonType: fmt.Appendf(nil, `{"ShardIterator":%q}`, it),
		cborType: append(append([]byte{0xa1}, cborText("ShardIterator")...), cborText(it)...),
	} {
		b.Run(format[len("application/x-amz-"):], func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(1000 << 10)
			for b.Loop() {
				serve(b, s, "GetRecords", format, body)
			}
		})
	}
}

// BenchmarkSubscribeToShard measures how long the server takes for a subscription and one event of
// 950 records of 1 KiB, without the network.
func BenchmarkSubscribeToShard(b *testing.B) {
	s, _ := start(b)
	s.CreateStream("s", 1)
	key := strings.Repeat("k", 36)
	for range 950 { // 950, because keys count toward the limit too
		s.Put("s", key, bytes.Repeat([]byte{0xa5}, 1024))
	}
	s.Split("s", shardID(0))
	arn := s.RegisterConsumer("s", "c")
	cbor := append(append([]byte{0xa3}, cborText("ConsumerARN")...), cborText(arn)...)
	cbor = append(append(cbor, cborText("ShardId")...), cborText(shardID(0))...)
	cbor = append(append(append(cbor, cborText("StartingPosition")...), 0xa1), cborText("Type")...)
	for format, body := range map[string][]byte{
		jsonType: fmt.Appendf(nil, `{"ConsumerARN":%q,"ShardId":%q,"StartingPosition":{"Type":"TRIM_HORIZON"}}`, arn, shardID(0)),
		cborType: append(cbor, cborText("TRIM_HORIZON")...),
	} {
		b.Run(format[len("application/x-amz-"):], func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(950 << 10)
			for b.Loop() {
				if n := serve(b, s, "SubscribeToShard", format, body); n < 950<<10 {
					b.Fatalf("%d bytes", n)
				}
			}
		})
	}
}

// BenchmarkPutRecords measures how long the server takes for five hundred records of 1 KiB, without
// the network. It replaces the stream before the stream gets large.
func BenchmarkPutRecords(b *testing.B) {
	data := bytes.Repeat([]byte{0xa5}, 1024)
	type entry struct{ Data, PartitionKey string }
	type request struct {
		StreamName string
		Records    []entry
	}
	var in request
	in.StreamName = "s"
	cbor := append([]byte{0xa2}, cborText("StreamName")...)
	cbor = append(append(cbor, cborText("s")...), cborText("Records")...)
	cbor = append(cbor, cborHead(0x80, 500)...)
	for i := range 500 {
		key := fmt.Sprintf("%036d", i)
		in.Records = append(in.Records, entry{base64.StdEncoding.EncodeToString(data), key})
		cbor = append(append(append(cbor, 0xa2), cborText("Data")...), cborBlob(data)...)
		cbor = append(append(cbor, cborText("PartitionKey")...), cborText(key)...)
	}
	body, err := json.Marshal(in)
	if err != nil {
		b.Fatal(err)
	}
	for format, body := range map[string][]byte{jsonType: body, cborType: cbor} {
		b.Run(format[len("application/x-amz-"):], func(b *testing.B) {
			s, _ := start(b)
			s.CreateStream("s", 4)
			b.ReportAllocs()
			b.SetBytes(500 << 10)
			n := 0
			for b.Loop() {
				if n++; n%500 == 0 {
					s.DeleteStream("s")
					s.CreateStream("s", 4)
				}
				serve(b, s, "PutRecords", format, body)
			}
		})
	}
}

// BenchmarkPoll measures an empty GetRecords call over a connection on the loopback interface.
func BenchmarkPoll(b *testing.B) {
	s, c := start(b, kinesistest.Config{NoLimits: true})
	s.CreateStream("s", 1)
	it := *reader{b, b.Context(), c, "s"}.iterator(shardID(0), types.ShardIteratorTypeLatest)
	client := s.HTTPClient()
	body := fmt.Appendf(nil, `{"ShardIterator":%q}`, it)
	b.ReportAllocs()
	for b.Loop() {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, s.URL(), bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Content-Type", jsonType)
		r.Header.Set("X-Amz-Target", "Kinesis_20131202.GetRecords")
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=k, SignedHeaders=host, Signature=0")
		r.Header.Set("X-Amz-Date", "20200101T000000Z")
		res, err := client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != 200 {
			b.Fatal(res.StatusCode, err)
		}
		if err := res.Body.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
