package wire

import (
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
)

// through is a transport of a user. net/http makes all calls over such a transport.
type through func(*http.Request) (*http.Response, error)

func (f through) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Iterators can be requested over any transport.
func TestIteratorsOverAnyTransport(t *testing.T) {
	server := newFake(t, func(w http.ResponseWriter, _ seen) { write(w, 200, codec.JSONType, `{"ShardIterator":"it"}`) })
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	client := fakeClient(server.URL, func(o *kinesis.Options) {
		o.HTTPClient = &http.Client{Transport: through(transport.RoundTrip)}
	})
	for name, in := range iteratorInputs() {
		it, err := newCaller(t, client, Options{}).Iterator(t.Context(), in, new(Line), nil)
		if err != nil || it != "it" {
			t.Fatalf("%s: %q, %v", name, it, err)
		}
		all := server.take()
		if len(all) != 1 || all[0].Header.Get("Amz-Sdk-Invocation-Id") != "" || all[0].Header.Get("X-Amz-Target") != iteratorTarget {
			t.Fatalf("%s: %+v", name, all)
		}
		r := all[0]
		cred, _ := client.Options().Credentials.Retrieve(t.Context())
		if got, want := r.Header.Get("Authorization"), sdkSigns(t, r.Request, r.body, "eu-west-3", cred); got != want {
			t.Errorf("%s: signed %s, want %s", name, got, want)
		}
		if want := string(appendIteratorInput(nil, in)); string(r.body) != want {
			t.Errorf("%s: %s, want %s", name, r.body, want)
		}
	}
}

// A transport is called once, for any answer.
func TestTransportsAreAskedOnce(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		wrong  string
	}{
		"a redirect": {func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 307, Header: http.Header{"Location": {"http://elsewhere/"}}, Request: r, Body: http.NoBody}, nil
		}, "StatusCode: 307"},
		"an error": {func(*http.Request) (*http.Response, error) { return nil, broken }, `Post "http://localhost/": broken`},
		"nothing":  {func(*http.Request) (*http.Response, error) { return nil, nil }, errNoAnswer.Error()}, //nolint:nilnil // that is the case
		"an answer without a body": {func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {codec.CBORType}}, Request: r, ContentLength: -1}, nil
		}, "GetRecords"},
	} {
		calls := 0
		client := fakeClient("http://localhost", func(o *kinesis.Options) {
			o.HTTPClient = &http.Client{Transport: through(func(r *http.Request) (*http.Response, error) {
				calls++
				if body, err := io.ReadAll(r.Body); err != nil || int64(len(body)) != r.ContentLength {
					t.Errorf("%s: a body of %d bytes, %v", name, len(body), err)
				}
				again, err := r.GetBody()
				if err != nil {
					t.Fatal(err)
				}
				if body, err := io.ReadAll(again); err != nil || int64(len(body)) != r.ContentLength {
					t.Errorf("%s: a body of %d bytes for the second time, %v", name, len(body), err)
				}
				return c.answer(r)
			})}
		})
		var p codec.Page
		err := newCaller(t, client, Options{Format: codec.CBOR}).GetRecords(t.Context(), Request{Iterator: "it"}, &p)
		if err == nil || !strings.Contains(err.Error(), c.wrong) || calls != 1 {
			t.Errorf("%s: %v after %d calls, want %q", name, err, calls, c.wrong)
		}
		if e := (*url.Error)(nil); errors.As(err, &e) != (name == "an error" || name == "nothing") {
			t.Errorf("%s: %#v", name, err)
		}
	}
}

// An HTTP client with additional behaviour makes the call itself. Otherwise only the client's
// transport is called.
func TestWhoIsAskedForAPost(t *testing.T) {
	transport := through(nil)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		client *http.Client
		direct bool
	}{
		"plain":             {&http.Client{Transport: transport}, true},
		"with a timeout":    {&http.Client{Transport: transport, Timeout: time.Second}, false},
		"with cookies":      {&http.Client{Transport: transport, Jar: jar}, false},
		"with redirects":    {&http.Client{Transport: transport, CheckRedirect: stay}, false},
		"without transport": {&http.Client{}, false},
	} {
		if _, is := poster(c.client).(direct); is != c.direct {
			t.Errorf("%s: the transport is asked itself: %v", name, is)
		}
	}
}

// atMost returns the limit of heap objects, where n is the limit without the race detector. The
// race detector makes a sync.Pool drop objects at random, so that more objects are allocated.
func atMost(n float64) float64 {
	if raceDetector {
		return 2 * n
	}
	return n
}

// This test counts the heap objects of a small call over net/http, without those of the transport.
func TestAllocationsOfAPost(t *testing.T) {
	transport := &canned{codec.CBORType, answers.CBOR{}.Encode(answers.Sample(0, 0))}
	client := fakeClient("http://localhost", func(o *kinesis.Options) { o.HTTPClient = &http.Client{Transport: transport} })
	caller := newCaller(t, client, Options{Reuse: true})
	in := &kinesis.GetShardIteratorInput{ShardId: aws.String("x"), StreamName: aws.String("s")}
	var p codec.Page
	if n := testing.AllocsPerRun(100, func() {
		if err := caller.GetRecords(t.Context(), Request{Iterator: "it"}, &p); err != nil {
			t.Fatal(err)
		}
		p.Release()
	}); n > atMost(24) { // 19
		t.Errorf("%v allocations for an empty page", n)
	} else {
		t.Logf("%v allocations for an empty page", n)
	}
	transport.contentType, transport.body = codec.JSONType, []byte(`{"ShardIterator":"it"}`)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := caller.Iterator(t.Context(), in, nil, nil); err != nil {
			t.Fatal(err)
		}
	}); n > atMost(30) { // 25
		t.Errorf("%v allocations for an iterator", n)
	} else {
		t.Logf("%v allocations for an iterator", n)
	}
}

// The cached endpoint is used only for the same stream and account.
func TestEndpointsAreToldApart(t *testing.T) {
	caller := newCaller(t, fakeClient("http://localhost"), Options{})
	found := map[endpointKey]*endpoint{}
	keys := []endpointKey{{"", ""}, {"arn:aws:kinesis:eu-west-3:1:stream/a", ""}, {"arn:aws:kinesis:eu-west-3:1:stream/a", "7"}, {"arn:aws:kinesis:eu-west-3:1:stream/b", "7"}}
	for range 2 {
		for _, key := range keys {
			cred, err := staticCredentials("").Retrieve(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			cred.AccountID = key.account
			for range 2 {
				ep, err := caller.endpointFor(t.Context(), &cred, key.arn)
				if err != nil {
					t.Fatal(err)
				}
				if was := found[key]; was != nil && was != ep {
					t.Errorf("%v has two endpoints", key)
				}
				found[key] = ep
			}
		}
	}
	for i, key := range keys {
		for _, other := range keys[i+1:] {
			if found[key] == found[other] {
				t.Errorf("%v and %v have one", key, other)
			}
		}
	}
}
