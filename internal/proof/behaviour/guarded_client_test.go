package behaviour

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// trips is both a transport and an HTTP client. It calls a function before each request.
type trips struct {
	to     *http.Transport
	before func()
}

func (tr *trips) RoundTrip(r *http.Request) (*http.Response, error) {
	tr.before()
	return tr.to.RoundTrip(r)
}

func (tr *trips) Do(r *http.Request) (*http.Response, error) { return tr.RoundTrip(r) }

// Calls of a credentials provider, a transport or an HTTP client panic. A Consumer, in each way of
// reading, and a Reader treat a panic as a failed call.
func TestCredentialsAndHTTPClientsMayPanic(t *testing.T) {
	for name, with := range map[string]func(o *kinesis.Options, before func(), to *http.Transport){
		"the credentials provider": func(o *kinesis.Options, before func(), _ *http.Transport) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				before()
				return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b"}, nil
			})
		},
		"a transport": func(o *kinesis.Options, before func(), to *http.Transport) {
			o.HTTPClient = &http.Client{Transport: &trips{to, before}}
		},
		"an HTTP client": func(o *kinesis.Options, before func(), to *http.Transport) { o.HTTPClient = &trips{to, before} },
	} {
		for by, opts := range map[string]weir.Options{"polling": {}, "under the SDK": {Transport: weir.SDKTransport}, "by the SDK": {}, "fan-out": {FanOut: weir.FanOut{Mode: weir.FanOutRegister}}} {
			t.Run(name+" "+by, func(t *testing.T) {
				bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
					want := putSome(t, srv, false)
					var calls atomic.Int32
					client := srv.Client(func(o *kinesis.Options) {
						with(o, func() {
							if calls.Add(1)%2 == 1 {
								panic("a bug of the user's")
							}
						}, srv.Transport())
					})
					var mu sync.Mutex
					told := ""
					opts.OnEvent = event.Join(opts.OnEvent, event.On(func(_ context.Context, e event.ReadFailed) {
						mu.Lock()
						defer mu.Unlock()
						told += e.Err.Error()
					}))
					var got []string
					stop := start(t, forced(client, by), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
						got = append(got, data(b.Records)...)
						return nil
					})
					time.Sleep(time.Minute)
					if err := stop(); err != nil {
						t.Errorf("Run returned %v", err)
					}
					if !slices.Equal(got, want) {
						t.Errorf("handled %q, want %q", got, want)
					}
					mu.Lock()
					defer mu.Unlock()
					if !strings.Contains(told, "a bug of the user's") {
						t.Errorf("told of %q", told)
					}
				})
			})
		}
		t.Run(name+" of a Reader", func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				want := putSome(t, srv, false)
				var calls atomic.Int32
				client := srv.Client(func(o *kinesis.Options) {
					with(o, func() {
						if calls.Add(1) == 3 {
							panic("a bug of the user's")
						}
					}, srv.Transport())
				})
				r, err := weir.NewReader(client, weir.ReaderOptions{Stream: "s", UntilTip: true, Logger: quiet})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for rec, err := range r.Records(t.Context()) {
					if err == nil {
						got = append(got, string(rec.Data))
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("read %q, want %q", got, want)
				}
			})
		})
	}
}
