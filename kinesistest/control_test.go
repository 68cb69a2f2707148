package kinesistest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/kinesistest"
)

func TestControlSeesEachCall(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 2)
	var seen []string
	s.Control("", func(call *kinesistest.Call) kinesistest.Fault {
		seen = append(seen, fmt.Sprintf("%s %s %s %d #%d %s", call.Action, call.Stream, number(call.Shard), call.Records, call.N, call.Format))
		if len(call.Body) == 0 || call.Proto != "HTTP/1.1" {
			t.Errorf("body %q, %s", call.Body, call.Proto)
		}
		return kinesistest.Fault{}
	})
	arn := aws.String(s.StreamARN("s"))
	r := reader{t, t.Context(), c, "s"}
	it := r.iterator(shardID(1), types.ShardIteratorTypeLatest)
	r.page(it)
	r.page(it)
	ok[*kinesis.PutRecordsOutput](t)(c.PutRecords(t.Context(), &kinesis.PutRecordsInput{StreamARN: arn, Records: []types.PutRecordsRequestEntry{{PartitionKey: aws.String("k"), Data: []byte{1}}, {PartitionKey: aws.String("k"), Data: []byte{1}}}}))
	ok[*kinesis.SplitShardOutput](t)(c.SplitShard(t.Context(), &kinesis.SplitShardInput{StreamARN: arn, ShardToSplit: aws.String(shardID(0)), NewStartingHashKey: aws.String("100")}))
	listed := ok[*kinesis.ListShardsOutput](t)(c.ListShards(t.Context(), &kinesis.ListShardsInput{StreamARN: arn, MaxResults: aws.Int32(1)}))
	ok[*kinesis.ListShardsOutput](t)(c.ListShards(t.Context(), &kinesis.ListShardsInput{NextToken: listed.NextToken}))
	want := []string{
		"GetShardIterator s 1 0 #1 json", "GetRecords s 1 0 #1 json", "GetRecords s 1 0 #2 json", "PutRecords s  2 #1 json",
		"SplitShard s 0 0 #1 json", "ListShards s  0 #1 json", "ListShards s  0 #2 json",
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", seen, want)
	}
	s.Control("", nil)
	r.page(it)
	if s.Requests("GetRecords") != 3 || s.Requests("") != 8 || s.Requests("PutRecord") != 0 {
		t.Errorf("counted %d, %d, %d", s.Requests("GetRecords"), s.Requests(""), s.Requests("PutRecord"))
	}
}

// once returns a control function that applies f to the first call only.
func once(f kinesistest.Fault) func(*kinesistest.Call) kinesistest.Fault {
	return func(call *kinesistest.Call) kinesistest.Fault {
		if call.N == 1 {
			return f
		}
		return kinesistest.Fault{}
	}
}

func TestFaults(t *testing.T) {
	const put = "PutRecord"
	for _, tc := range []struct {
		name   string
		fault  kinesistest.Fault
		code   string // error code of the first call, or empty
		stored int    // number of records after the first call
	}{
		{"an error of the service", kinesistest.Fault{Err: &kinesistest.Error{Code: "ProvisionedThroughputExceededException", Message: "slow down"}}, "ProvisionedThroughputExceededException", 0},
		{"an internal failure", kinesistest.Fault{Err: &kinesistest.Error{Code: "InternalFailure"}}, "InternalFailure", 0},
		{"an error the SDK has no type for", kinesistest.Fault{Err: &kinesistest.Error{Code: "KMSThrottlingException"}}, "KMSThrottlingException", 0},
		{"a cut connection", kinesistest.Fault{Cut: true}, "cut", 0},
		{"a lost answer", kinesistest.Fault{LoseAnswer: true}, "cut", 1},
		{"an answer cut short", kinesistest.Fault{CutAfter: 10}, "cut", 1},
		{"an answer without a body", kinesistest.Fault{CutAfter: -1}, "cut", 1},
	} {
		for _, proto := range []string{"HTTP/1.1", "h2c", "h2"} {
			t.Run(tc.name+" over "+proto, func(t *testing.T) {
				s := kinesistest.NewServer(t, kinesistest.Config{TLS: proto == "h2"})
				s.CreateStream("s", 1)
				client := s.HTTPClient()
				if proto == "h2c" {
					transport := s.Transport()
					transport.Protocols = new(http.Protocols)
					transport.Protocols.SetUnencryptedHTTP2(true)
					client = &http.Client{Transport: transport}
				}
				c := s.Client(noRetry, func(o *kinesis.Options) { o.HTTPClient = client })
				var got atomic.Value
				s.Control(put, func(call *kinesistest.Call) kinesistest.Fault {
					got.Store(call.Proto)
					return once(tc.fault)(call)
				})
				do := func() error {
					_, err := c.PutRecord(t.Context(), &kinesis.PutRecordInput{StreamName: aws.String("s"), PartitionKey: aws.String("k"), Data: []byte("x")})
					return err
				}
				switch err := do(); tc.code {
				case "cut":
					if err == nil {
						t.Error("the call went well")
					}
				default:
					wantCode(t, err, tc.code)
				}
				want := "HTTP/1.1"
				if proto != want {
					want = "HTTP/2.0"
				}
				if got.Load() != want {
					t.Errorf("the call came over %v", got.Load())
				}
				if n := len(s.Records("s")); n != tc.stored {
					t.Errorf("%d records are stored, want %d", n, tc.stored)
				}
				if err := do(); err != nil {
					t.Errorf("the call after the fault: %v", err)
				}
			})
		}
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t)
		s.CreateStream("s", 1)
		s.Control("PutRecord", func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{Delay: time.Minute} })
		put := func(ctx context.Context) error {
			_, err := c.PutRecord(ctx, &kinesis.PutRecordInput{StreamName: aws.String("s"), PartitionKey: aws.String("k"), Data: []byte("x")})
			return err
		}
		began := time.Now()
		if err := put(t.Context()); err != nil || time.Since(began) != time.Minute {
			t.Errorf("took %v, %v", time.Since(began), err)
		}
		// A client that disconnects during the delay has stored nothing.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := put(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Hour)
		if n := len(s.Records("s")); n != 1 {
			t.Errorf("%d records are stored", n)
		}
	})
}

func TestPartialFailure(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 1)
	s.Control("PutRecords", func(*kinesistest.Call) kinesistest.Fault {
		return kinesistest.Fault{PartialFailure: func(i int) string {
			return []string{"", "InternalFailure", "ProvisionedThroughputExceededException"}[i%3]
		}}
	})
	in := &kinesis.PutRecordsInput{StreamName: aws.String("s")}
	for i := range 6 {
		in.Records = append(in.Records, types.PutRecordsRequestEntry{PartitionKey: aws.String("k"), Data: fmt.Appendf(nil, "%d", i)})
	}
	out := ok[*kinesis.PutRecordsOutput](t)(c.PutRecords(t.Context(), in))
	var got []string
	for _, r := range out.Records {
		if (r.ErrorCode == nil) == (r.SequenceNumber == nil) || (r.ErrorCode == nil) != (r.ErrorMessage == nil) {
			t.Errorf("got %+v", r)
		}
		got = append(got, aws.ToString(r.ErrorCode))
	}
	if fmt.Sprint(got) != "[ InternalFailure ProvisionedThroughputExceededException  InternalFailure ProvisionedThroughputExceededException]" || *out.FailedRecordCount != 4 {
		t.Errorf("got %q, %d", got, *out.FailedRecordCount)
	}
	var stored string
	for _, r := range s.Records("s") {
		stored += string(r.Data)
	}
	if stored != "03" {
		t.Errorf("stored %s", stored)
	}
}

func TestEmptyPageAndRewrite(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 1)
	s.Put("s", "k", []byte("x"))
	s.Split("s", shardID(0))
	r := reader{t, t.Context(), c, "s"}
	it := r.iterator(shardID(0), types.ShardIteratorTypeTrimHorizon)
	s.Control("GetRecords", once(kinesistest.Fault{EmptyPage: true}))
	page := r.page(it)
	if len(page.Records) != 0 || page.NextShardIterator == nil || *page.MillisBehindLatest == 0 {
		t.Errorf("got %+v", page)
	}
	// An end marker without child shards, as observed in practice.
	s.Control("GetRecords", func(*kinesistest.Call) kinesistest.Fault {
		return kinesistest.Fault{Rewrite: func(body []byte) []byte {
			var answer map[string]any
			if err := json.Unmarshal(body, &answer); err != nil {
				t.Error(err)
			}
			delete(answer, "ChildShards")
			body, err := json.Marshal(answer)
			if err != nil {
				t.Error(err)
			}
			return body
		}}
	})
	page = r.page(page.NextShardIterator)
	if len(page.Records) != 1 || page.NextShardIterator != nil || len(page.ChildShards) != 0 {
		t.Errorf("got %+v", page)
	}
}

func TestAfterRunsBeforeTheAnswer(t *testing.T) {
	s, c := start(t)
	s.CreateStream("s", 1)
	s.Control("GetRecords", once(kinesistest.Fault{After: func() { s.Split("s", shardID(0)) }}))
	r := reader{t, t.Context(), c, "s"}
	page := r.page(r.iterator(shardID(0), types.ShardIteratorTypeTrimHorizon))
	if page.NextShardIterator == nil || len(s.OpenShards("s")) != 2 {
		t.Errorf("got %+v, %v", page, s.OpenShards("s"))
	}
}

func TestAnErrorForOneActionGoesBeforeThatForAll(t *testing.T) {
	s, _ := start(t)
	s.Control("", func(*kinesistest.Call) kinesistest.Fault {
		return kinesistest.Fault{Err: &kinesistest.Error{Code: "ServiceUnavailable"}}
	})
	s.Control("ListStreams", func(*kinesistest.Call) kinesistest.Fault {
		return kinesistest.Fault{Err: &kinesistest.Error{Code: "AccessDeniedException", Status: 403, Message: "no"}}
	})
	for action, want := range map[string]string{
		"ListStreams":    `403 {"__type":"AccessDeniedException","message":"no"}`,
		"DescribeLimits": `503 {"__type":"ServiceUnavailable","message":"A test asked for this error."}`,
	} {
		status, _, body := post(t, s, action, jsonType, []byte("{}"))
		if got := fmt.Sprint(status, " ", string(body)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestCloseEndsCallsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		c := s.Client(noRetry)
		s.Control("", func(call *kinesistest.Call) kinesistest.Fault {
			if call.N%2 == 0 {
				return kinesistest.Fault{Delay: 24 * time.Hour}
			}
			<-call.Context.Done()
			return kinesistest.Fault{}
		})
		errs := make(chan error)
		for range 4 {
			go func() {
				_, err := c.ListStreams(t.Context(), &kinesis.ListStreamsInput{})
				errs <- err
			}()
		}
		began := time.Now()
		time.Sleep(time.Second)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for range 4 {
			if err := <-errs; err == nil {
				t.Error("a call of a closed server went well")
			}
		}
		if time.Since(began) != time.Second {
			t.Errorf("it took %v", time.Since(began))
		}
		if err := s.Close(); err != nil {
			t.Errorf("closing again: %v", err)
		}
		if _, err := c.ListStreams(t.Context(), &kinesis.ListStreamsInput{}); err == nil {
			t.Error("a call of a closed server went well")
		}
	})
}

func TestACutBodyIsShort(t *testing.T) {
	s, _ := start(t)
	s.CreateStream("s", 3)
	s.Control("ListShards", func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{CutAfter: 25} })
	req := ok[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL(), bytes.NewReader([]byte(`{"StreamName":"s"}`))))
	req.Header.Set("Content-Type", jsonType)
	req.Header.Set("X-Amz-Target", "Kinesis_20131202.ListShards")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=k, SignedHeaders=host, Signature=0")
	req.Header.Set("X-Amz-Date", "20200101T000000Z")
	res := ok[*http.Response](t)(s.HTTPClient().Do(req))
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if len(body) != 25 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read %q, %v", body, err)
	}
}
