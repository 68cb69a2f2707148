package wire

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/http1"
	"github.com/weir-go/weir/internal/wire/codec"
)

// If this package's HTTP client cannot parse an answer, the call fails. net/http then makes all
// calls to the endpoint. The fallback is reported once for each host.
func TestNetHTTPTakesOverFromOurOwnClient(t *testing.T) {
	for name, odd := range map[string]func(h http.Header){
		"a head of 200 KB": func(h http.Header) { h.Set("X-Long", strings.Repeat("x", 200_000)) },
		"5,000 fields":     func(h http.Header) { h["X"] = make([]string, 5000) },
	} {
		t.Run(name, func(t *testing.T) {
			server := newFake(t, func(w http.ResponseWriter, r seen) {
				odd(w.Header())
				if r.Header.Get("X-Amz-Target") == "Kinesis_20131202.GetShardIterator" {
					write(w, 200, codec.JSONType, `{"ShardIterator":"it"}`)
					return
				}
				write(w, 200, codec.CBORType, cborPage(3, 10))
			})
			var told []string
			caller := newCaller(t, fakeClient(server.URL), Options{FellBack: func(host string, why error) {
				told = append(told, host+": "+why.Error())
			}})
			var p codec.Page
			read := func(arn string) error {
				return caller.GetRecords(t.Context(), Request{Iterator: "it", StreamARN: arn}, &p)
			}
			if !caller.Splits() {
				t.Fatal("the client is not one that our own is for")
			}
			if err := read(""); err == nil || !strings.Contains(err.Error(), http1.ErrHeadTooLarge.Error()) {
				t.Fatalf("the first call: %v", err)
			}
			for range 3 {
				if err := read(""); err != nil || len(p.Records) != 3 {
					t.Fatalf("%d records, %v", len(p.Records), err)
				}
			}
			// The SDK treats another stream as another endpoint at the same host.
			const arn = "arn:aws:kinesis:eu-west-3:123456789012:stream/s"
			_ = read(arn)
			if err := read(arn); err != nil {
				t.Errorf("another stream: %v", err)
			}
			if it, err := caller.Iterator(t.Context(), iteratorInputs()["the oldest"], nil, nil); err != nil || it != "it" {
				t.Errorf("an iterator: %q, %v", it, err)
			}
			if len(told) != 1 || !strings.HasPrefix(told[0], server.URL+": ") {
				t.Errorf("told %q", told)
			}
			if caller.Splits() {
				t.Error("calls are split where net/http makes some")
			}
		})
	}
}

// With NetHTTP, this package's HTTP client makes no calls.
func TestCallsOverNetHTTP(t *testing.T) {
	server := newFake(t, func(w http.ResponseWriter, _ seen) {
		w.Header().Set("X-Long", strings.Repeat("x", 200_000))
		write(w, 200, codec.CBORType, cborPage(3, 10))
	})
	caller := newCaller(t, fakeClient(server.URL), Options{NetHTTP: true, FellBack: func(host string, why error) {
		t.Errorf("%s: %v", host, why)
	}})
	var p codec.Page
	if err := caller.GetRecords(t.Context(), Request{Iterator: "it"}, &p); err != nil || len(p.Records) != 3 || caller.Splits() {
		t.Errorf("%d records, %v", len(p.Records), err)
	}
}
