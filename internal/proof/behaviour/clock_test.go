package behaviour

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// skewed returns a client of srv behind a proxy. The proxy's clock is wrong, and it refuses
// requests that were signed with another time.
func skewed(t *testing.T, srv *kinesistest.Server, off time.Duration) *kinesis.Client {
	t.Helper()
	behind, err := url.Parse(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	date := func(h http.Header) { h.Set("Date", time.Now().Add(off).UTC().Format(http.TimeFormat)) }
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) },
		ModifyResponse: func(r *http.Response) error { date(r.Header); return nil },
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
		if d := time.Now().Add(off).Sub(at); err != nil || d.Abs() > 5*time.Minute {
			date(w.Header())
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"InvalidSignatureException","message":"Signature expired"}`)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return kinesis.New(kinesis.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(front.URL), Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	})
}

// A machine with a wrong clock can still read in every way. Requests are signed with the service's
// time as soon as it is known.
func TestAMachineWhoseClockIsOffReads(t *testing.T) {
	for name, opts := range map[string]weir.Options{
		"polling": {}, "under the SDK": {Transport: weir.SDKTransport}, "by the SDK": {}, "over net/http": {}, "fan-out": {FanOut: weir.FanOut{Mode: weir.FanOutRegister}},
		"fan-out under the SDK": {FanOut: weir.FanOut{Mode: weir.FanOutRegister}, Transport: weir.SDKTransport},
	} {
		t.Run(name, func(t *testing.T) {
			for _, off := range []time.Duration{time.Hour, -3 * time.Hour} {
				srv := kinesistest.NewServer(t)
				srv.CreateStream("s", 1)
				srv.Put("s", "k", []byte("1"))
				var log lines
				opts.Timing.HeartbeatInterval = 100 * time.Millisecond
				opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
				got := make(chan struct{}, 1)
				stop := start(t, forced(skewed(t, srv, off), name), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
					if len(b.Records) > 0 {
						got <- struct{}{}
					}
					return nil
				})
				select {
				case <-got:
				case <-time.After(time.Minute):
					t.Errorf("nothing was handled with a clock that is %v off", off)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
				if log.count("no permission") > 0 || log.count("fan-out is unavailable") > 0 {
					t.Error("it is told as something else")
				}
			}
		})
	}
}
