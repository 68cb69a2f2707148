package wire

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// A wrapped client keeps its HTTP client and loses its retries. Each of its subscriptions has a
// separate decoder, because the SDK's decoder is not safe for concurrent streams.
func TestCallsOfAWrappedClient(t *testing.T) {
	var sent int
	client := kinesis.New(kinesis.Options{Region: "eu-west-3", HTTPClient: doFunc(func(*http.Request) (*http.Response, error) {
		sent++
		return nil, http.ErrHandlerTimeout
	})})
	for name, configure := range map[string]func(*kinesis.Options){"a call": asWrapped, "a stream": asWrappedStream} {
		before, o := client.Options(), client.Options()
		configure(&o)
		if _, ok := o.Retryer.(aws.NopRetryer); !ok {
			t.Errorf("%s is retried by %T", name, o.Retryer)
		}
		if separate := o.Protocol != before.Protocol; separate != (name == "a stream") {
			t.Errorf("%s has a separate protocol: %v", name, separate)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		sent = 0
		if _, err := o.HTTPClient.Do(r); err == nil || sent != 1 { // there is no answer
			t.Errorf("%s does not use the client's HTTP client: %v", name, err)
		}
		configure(new(kinesis.Options)) // must not panic
	}
}

type doFunc func(*http.Request) (*http.Response, error)

func (f doFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }
