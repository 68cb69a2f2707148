package wire

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/proof/answers"
	"github.com/weir-go/weir/internal/wire/codec"
)

// canned is a transport that returns a prepared answer. A test with canned counts only the
// allocations of this package.
type canned struct {
	contentType string
	body        []byte
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {c.contentType}},
		Body: io.NopCloser(bytes.NewReader(c.body)), ContentLength: int64(len(c.body)), Request: r,
	}, nil
}

// The number of allocations of a call hardly depends on the number of its records. net/http's
// transport is not counted.
func TestAllocationsOfACall(t *testing.T) {
	const records = 1000
	page := answers.Sample(records, 1024)
	for _, c := range []struct {
		opts  Options
		parts bool
		most  float64
	}{
		{Options{}, false, 60},
		{Options{Reuse: true}, false, 60},
		{Options{}, true, 70},
		{Options{Reuse: true}, true, 70},
		{Options{Reuse: true, Format: codec.JSON}, false, 60},
		{Options{Path: UnderSDK, Reuse: true}, false, 400},
	} {
		transport := &canned{codec.CBORType, answers.CBOR{}.Encode(page)}
		if c.opts.Format == codec.JSON {
			transport = &canned{codec.JSONType, answers.JSON{}.Encode(page)}
		}
		client := fakeClient("http://localhost", func(o *kinesis.Options) { o.HTTPClient = &http.Client{Transport: transport} })
		caller := newCaller(t, client, c.opts)
		read := func(records int) float64 {
			return testing.AllocsPerRun(10, func() {
				var p codec.Page
				var rest *Rest
				var err error
				if c.parts {
					rest, err = caller.Read(t.Context(), Request{Iterator: "it"}, &p)
				} else {
					err = caller.GetRecords(t.Context(), Request{Iterator: "it"}, &p)
				}
				n := len(p.Records)
				for err == nil && rest != nil && !p.Last {
					err = rest.Next(&p)
					n += len(p.Records)
				}
				if err != nil || n != records {
					t.Fatal(err, n)
				}
				p.Release()
			})
		}
		many := read(records)
		few := answers.Sample(10, 1024)
		transport.body = answers.CBOR{}.Encode(few)
		if c.opts.Format == codec.JSON {
			transport.body = answers.JSON{}.Encode(few)
		}
		less := read(10)
		t.Logf("%s, reuse %v, format %s, parts %v: %v allocations for %d records, %v for 10", caller.path, c.opts.Reuse, c.opts.Format, c.parts, many, records, less)
		if many > c.most || many-less > 30 {
			t.Errorf("%+v: %v allocations for %d records, want at most %v; %v for 10", c.opts, many, records, c.most, less)
		}
	}
}
