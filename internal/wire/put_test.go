package wire

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/wire/codec"
	"github.com/weir-go/weir/kinesistest"
)

// putRequests returns requests with all kinds of records.
func putRequests(tb testing.TB) map[string]*PutRequest {
	tb.Helper()
	box := new(aggregate.Builder)
	for i := range 50 {
		if err := box.Add(fmt.Sprint("key-", i%7), "", bytes.Repeat([]byte{byte(i)}, i)); err != nil {
			tb.Fatal(err)
		}
	}
	many := &PutRequest{StreamName: "s"}
	for i := range 300 {
		many.Entries = append(many.Entries, PutEntry{PartitionKey: fmt.Sprintf("key-%d-é\"\\", i), Data: bytes.Repeat([]byte{byte(i), 0xff}, i*i%3000)})
	}
	return map[string]*PutRequest{
		"one":             {StreamName: "s", Entries: []PutEntry{{PartitionKey: "k", Data: []byte("data")}}},
		"empty data":      {StreamName: "s", Entries: []PutEntry{{PartitionKey: "k"}, {PartitionKey: "k", Data: []byte{}}}},
		"a hash key":      {StreamARN: "arn:aws:kinesis:eu-west-3:123456789012:stream/s", Entries: []PutEntry{{PartitionKey: "k", ExplicitHashKey: "17", Data: []byte{0}}}},
		"name and ARN":    {StreamName: "s", StreamARN: "arn:aws:kinesis:eu-west-3:123456789012:stream/s", Entries: []PutEntry{{PartitionKey: "k", Data: []byte("x")}}},
		"no key":          {StreamName: "s", Entries: []PutEntry{{Data: []byte("x")}}},
		"packed":          {StreamName: "s", Entries: []PutEntry{{PartitionKey: "a", ExplicitHashKey: "5", Packed: box}, {PartitionKey: "b", Data: []byte("x")}}},
		"many":            many,
		"a large record":  {StreamName: "s", Entries: []PutEntry{{PartitionKey: "k", Data: bytes.Repeat([]byte("large"), 100_000)}}},
		"not one of them": {StreamName: "s"},
	}
}

const putAnswer = `{"FailedRecordCount":1,"EncryptionType":"NONE","Records":[` +
	`{"SequenceNumber":"49","ShardId":"shardId-1"},{"ErrorCode":"InternalFailure","ErrorMessage":"a \"b\"","SequenceNumber":null}]}`

// In JSON the request equals the SDK's request. In both formats the signature equals the SDK's
// signature.
func TestPutsAreThoseOfTheSDK(t *testing.T) {
	server := newFake(t, func(w http.ResponseWriter, _ seen) { write(w, 200, codec.JSONType, putAnswer) })
	for name, req := range putRequests(t) {
		var bodies [2]any
		for i, test := range []struct {
			opts    Options
			client  func(*kinesis.Options)
			content string
		}{
			{Options{Format: codec.JSON}, nothing, codec.JSONType}, {Options{}, traced, codec.JSONType},
			{Options{}, nothing, codec.CBORType}, {Options{NetHTTP: true}, nothing, codec.CBORType},
		} {
			client := fakeClient(server.URL+"/some/path", test.client)
			results, err := newCaller(t, client, test.opts).PutRecords(t.Context(), req)
			if len(req.Entries) < 2 {
				if test.content == codec.CBORType || i == 0 {
					if err == nil {
						t.Errorf("%s, %d: more results than records: %v", name, i, results)
					}
				}
			} else if want := []codec.PutResult{{Shard: "shardId-1", SequenceNumber: "49"}, {Code: "InternalFailure", Message: `a "b"`}}; err != nil || !slices.Equal(results, want) {
				t.Errorf("%s, %d: %v, %v", name, i, results, err)
			}
			all := server.take()
			if len(all) != 1 {
				t.Fatalf("%s, %d: %d requests", name, i, len(all))
			}
			r := all[0]
			if r.URL.Path != "/some/path" || r.Header.Get("X-Amz-Target") != putTarget || r.Header.Get("Content-Type") != test.content || r.Header.Get("Idempotency-Key") != "" {
				t.Errorf("%s, %d: %s %v", name, i, r.URL, r.Header)
			}
			if cred, _ := client.Options().Credentials.Retrieve(t.Context()); i != 1 && r.Header.Get("Authorization") != sdkSigns(t, r.Request, r.body, "eu-west-3", cred) {
				t.Errorf("%s, %d: signed %s", name, i, r.Header.Get("Authorization"))
			}
			if i < 2 {
				if err := json.Unmarshal(r.body, &bodies[i]); err != nil {
					t.Fatalf("%s: %q: %v", name, r.body, err)
				}
			}
		}
		if !reflect.DeepEqual(bodies[0], bodies[1]) {
			t.Errorf("%s: put %v, the SDK %v", name, bodies[0], bodies[1])
		}
	}
}

func nothing(*kinesis.Options) {}

// Over every HTTP client and through the SDK, the service stores the records of the request.
func TestEveryPathPutsTheSameRecords(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, config := range []kinesistest.Config{{NoLimits: true}, {NoLimits: true, IndefiniteCBOR: true, TLS: true}} {
		for _, opts := range []Options{{}, {Format: codec.JSON}, {NetHTTP: true}, {Path: UnderSDK}} {
			server := kinesistest.NewServer(t, config)
			server.CreateStream("s", 1)
			c := newCaller(t, server.Client(), opts)
			var want [][]byte
			for range 5 {
				req := &PutRequest{StreamName: "s"}
				for range 1 + random.IntN(100) {
					data := make([]byte, random.IntN(random.IntN(20_000)+1))
					for i := range data {
						data[i] = byte(random.Uint32())
					}
					want = append(want, data)
					req.Entries = append(req.Entries, PutEntry{PartitionKey: fmt.Sprint(len(want)), Data: data})
				}
				results, err := c.PutRecords(t.Context(), req)
				if err != nil || len(results) != len(req.Entries) {
					t.Fatalf("%+v: %d results, %v", opts, len(results), err)
				}
				for _, r := range results {
					if r.Shard != "shardId-000000000000" || r.SequenceNumber == "" || r.Code != "" {
						t.Fatalf("%+v: %+v", opts, r)
					}
				}
			}
			got := server.Records("s")
			if len(got) != len(want) {
				t.Fatalf("%+v: %d records, want %d", opts, len(got), len(want))
			}
			for i, r := range got {
				if !bytes.Equal(r.Data, want[i]) || r.PartitionKey != fmt.Sprint(i+1) {
					t.Fatalf("%+v: record %d has key %q and %d bytes", opts, i, r.PartitionKey, len(r.Data))
				}
			}
		}
	}
}

// If the endpoint could not read a request, the request is sent in JSON at once. If the answer
// could not be read, the request is not repeated, because its records may be stored.
func TestPutsFallBackToJSON(t *testing.T) {
	for name, test := range map[string]struct {
		status        int
		content, body string
		at            string // when JSON is used: at once, for the next call, or never
	}{
		"an unknown type":        {415, "", "", "at once"},
		"an unknown operation":   {400, codec.JSONType, `{"__type":"UnknownOperationException"}`, "at once"},
		"not to be read":         {400, codec.JSONType, `{"__type":"SerializationException"}`, "at once"},
		"a garbled answer":       {200, codec.CBORType, "\xa1garbled", "next"},
		"an answer in HTML":      {200, "text/html", "<html>", "next"},
		"a failure":              {500, codec.JSONType, `{"__type":"InternalFailure"}`, "never"},
		"a throttle":             {400, codec.JSONType, `{"__type":"ProvisionedThroughputExceededException"}`, "never"},
		"an answer that is cut":  {200, codec.CBORType, "\xa1\x67Records\x81", "next"},
		"an answer without type": {200, "", "", "next"},
	} {
		for _, netHTTP := range []bool{false, true} {
			server := newFake(t, func(w http.ResponseWriter, r seen) {
				if r.Header.Get("Content-Type") == codec.JSONType {
					write(w, 200, codec.JSONType, `{"Records":[{"SequenceNumber":"1","ShardId":"s"}]}`)
					return
				}
				write(w, test.status, test.content, test.body)
			})
			c := newCaller(t, fakeClient(server.URL), Options{NetHTTP: netHTTP})
			req := &PutRequest{StreamName: "s", Entries: []PutEntry{{PartitionKey: "k", Data: []byte("x")}}}
			var got []string
			for range 2 {
				_, err := c.PutRecords(t.Context(), req)
				var op *smithy.OperationError
				if err != nil && (!errors.As(err, &op) || op.OperationName != putOperation) {
					t.Errorf("%s: %T: %v", name, err, err)
				}
				for _, r := range server.take() {
					got = append(got, map[string]string{codec.CBORType: "cbor", codec.JSONType: "json"}[r.Header.Get("Content-Type")])
				}
			}
			want := map[string][]string{"at once": {"cbor", "json", "json"}, "next": {"cbor", "json"}, "never": {"cbor", "cbor"}}[test.at]
			if !slices.Equal(got, want) {
				t.Errorf("%s, over net/http %t: sent in %v, want %v", name, netHTTP, got, want)
			}
		}
	}
}

// If a connection is closed before the answer, the request fails and is not repeated. This is also
// true for a reused connection.
func TestPutsAreNotRepeated(t *testing.T) {
	for _, netHTTP := range []bool{false, true} {
		var closes atomic.Bool
		server := newFake(t, func(w http.ResponseWriter, _ seen) {
			if !closes.Load() {
				write(w, 200, codec.JSONType, `{"Records":[{"SequenceNumber":"1","ShardId":"s"}]}`)
				return
			}
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close()
		})
		c := newCaller(t, fakeClient(server.URL), Options{NetHTTP: netHTTP})
		req := &PutRequest{StreamName: "s", Entries: []PutEntry{{PartitionKey: "k", Data: []byte("x")}}}
		for i := range 3 {
			_, err := c.PutRecords(t.Context(), req)
			if (err != nil) != closes.Load() {
				t.Errorf("over net/http %t, call %d: %v", netHTTP, i, err)
			}
			if n := len(server.take()); n != 1 {
				t.Errorf("over net/http %t, call %d: %d requests", netHTTP, i, n)
			}
			closes.Store(i == 1)
		}
	}
}

func TestPutsEndWithTheirContext(t *testing.T) {
	for _, netHTTP := range []bool{false, true} {
		asked := make(chan struct{}, 1)
		server := newFake(t, func(_ http.ResponseWriter, r seen) {
			asked <- struct{}{}
			<-r.Context().Done()
		})
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		go func() {
			<-asked
			cancel(why)
		}()
		c := newCaller(t, fakeClient(server.URL), Options{NetHTTP: netHTTP})
		_, err := c.PutRecords(ctx, &PutRequest{StreamName: "s", Entries: []PutEntry{{PartitionKey: "k"}}})
		var canceled *aws.RequestCanceledError
		if !errors.Is(err, why) || !errors.As(err, &canceled) {
			t.Errorf("over net/http %t: %v", netHTTP, err)
		}
	}
}

func TestPutsAllocateLittle(t *testing.T) {
	if raceDetector {
		t.Skip("sync.Pool drops objects under the race detector")
	}
	answer := []byte(`{"Records":[` + string(bytes.Repeat([]byte(`{"SequenceNumber":"49590338271490256608559692538361571095921575989136588898","ShardId":"shardId-000000000000"},`), 499)) + `{"SequenceNumber":"1","ShardId":"s"}]}`)
	server := newFake(t, func(w http.ResponseWriter, _ seen) { write(w, 200, codec.JSONType, string(answer)) })
	c := newCaller(t, fakeClient(server.URL), Options{})
	req := &PutRequest{StreamName: "s"}
	for i := range 500 {
		req.Entries = append(req.Entries, PutEntry{PartitionKey: fmt.Sprint(i), Data: make([]byte, 100)})
	}
	message := func() {
		d := putDrafts.Get().(*putDraft)
		ep, err := c.endpointFor(t.Context(), &aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, "")
		if err != nil {
			t.Fatal(err)
		}
		ep.putMessage(d, c.now(), &aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, codec.CBOR, req)
		d.release()
	}
	if n := testing.AllocsPerRun(100, message); n > 2 {
		t.Errorf("writing a request takes %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := codec.ReadPut(codec.JSON, answer, 500); err != nil {
			t.Fatal(err)
		}
	}); n > 8 {
		t.Errorf("reading an answer takes %v allocations", n)
	}
}

// A request in parts has the same body and hash as one in a single slice.
func TestPartsAreTheWholeRequest(t *testing.T) {
	t.Parallel()
	for _, sizes := range [][]int{{0}, {largeData}, {10, largeData - 1}, {1, largeData, 2}, {largeData, 3 * largeData, 100_000}} {
		req := &PutRequest{StreamName: "s"}
		for i, n := range sizes {
			req.Entries = append(req.Entries, PutEntry{PartitionKey: fmt.Sprint("key", i), Data: bytes.Repeat([]byte{byte(i + 1)}, n)})
		}
		whole, parts := &putDraft{hash: sha256.New()}, &putDraft{hash: sha256.New(), split: true}
		for _, d := range []*putDraft{whole, parts} {
			d.reset(7, 0)
			req.appendTo(d, codec.CBOR)
			d.cut(nil)
		}
		got := slices.Concat(append([][]byte{parts.buf[:parts.first]}, parts.parts...)...)
		if !bytes.Equal(got[7:], whole.buf[7:]) || len(got)-7 != len(parts.buf)-7+parts.apart {
			t.Errorf("%v: the parts have %d bytes, %d are set apart, the whole has %d", sizes, len(got), parts.apart, len(whole.buf))
		}
		want := sha256.Sum256(whole.buf[7:])
		if !bytes.Equal(parts.hash.Sum(nil), want[:]) || !bytes.Equal(whole.hash.Sum(nil), want[:]) {
			t.Errorf("%v: the hash is wrong", sizes)
		}
	}
}
