package guarded

import (
	"context"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/wire"
)

// Client returns a client that makes the same calls. Panics of the user's code become errors. For a
// *kinesis.Client, that code is its credentials provider and its HTTP client, and Client returns a
// changed copy. For any other client, that code is each of its methods.
func Client(client wire.Kinesis, panicked Panicked) wire.Kinesis {
	switch c := client.(type) {
	case *kinesis.Client:
		return copied(c, panicked)
	case wire.Forced:
		c.Client = copied(c.Client, panicked)
		return c
	}
	return methods{client, panicked}
}

func copied(client *kinesis.Client, panicked Panicked) *kinesis.Client {
	return kinesis.New(client.Options(), func(o *kinesis.Options) {
		if o.Credentials != nil {
			o.Credentials = credentials{o.Credentials, panicked}
		}
		switch c := o.HTTPClient.(type) {
		case nil, *awshttp.BuildableClient:
		case *http.Client:
			if _, known := c.Transport.(*http.Transport); c.Transport != nil && !known {
				own := *c
				own.Transport = transport{c.Transport, panicked}
				o.HTTPClient = &own
			}
		default:
			o.HTTPClient = httpClient{c, panicked}
		}
		// Otherwise kinesis.New would apply this limit to the retryer a second time.
		o.RetryMaxAttempts = 0
	})
}

type credentials struct {
	to       aws.CredentialsProvider
	panicked Panicked
}

func (g credentials) Retrieve(ctx context.Context) (c aws.Credentials, err error) {
	err = g.panicked.call("the credentials provider", func() (err error) { c, err = g.to.Retrieve(ctx); return err })
	return c, err
}

// IsCredentialsProvider lets [aws.IsCredentialsProvider] see the user's provider.
func (g credentials) IsCredentialsProvider(target aws.CredentialsProvider) bool {
	return aws.IsCredentialsProvider(g.to, target)
}

// ProviderSources implements [aws.CredentialProviderSource].
func (g credentials) ProviderSources() []aws.CredentialSource {
	if of, ok := g.to.(aws.CredentialProviderSource); ok {
		return of.ProviderSources()
	}
	return nil
}

type transport struct {
	to       http.RoundTripper
	panicked Panicked
}

func (g transport) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	err = g.panicked.call(theHTTPClient, func() (err error) { resp, err = g.to.RoundTrip(r); return err }) //nolint:bodyclose // it is the caller's
	return resp, err
}

// CloseIdleConnections lets [http.Client.CloseIdleConnections] reach the user's transport.
func (g transport) CloseIdleConnections() {
	if c, ok := g.to.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

const theHTTPClient = "the HTTP client"

type httpClient struct {
	to       kinesis.HTTPClient
	panicked Panicked
}

func (g httpClient) Do(r *http.Request) (resp *http.Response, err error) {
	err = g.panicked.call(theHTTPClient, func() (err error) { resp, err = g.to.Do(r); return err }) //nolint:bodyclose // it is the caller's
	return resp, err
}

// Unwrap returns the user's client, for messages that contain its type.
func (g httpClient) Unwrap() any { return g.to }
