package weir

import (
	"context"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
)

// guardClient returns a client like the given one that returns a panic of its credentials provider
// or of its HTTP client as an error. The calls are made by goroutines of this package, where a
// panic would end the process.
func guardClient(client *kinesis.Client) *kinesis.Client {
	return kinesis.New(client.Options(), func(o *kinesis.Options) {
		if o.Credentials != nil {
			o.Credentials = guardedCredentials{o.Credentials}
		}
		switch c := o.HTTPClient.(type) {
		case nil, *awshttp.BuildableClient:
		case *http.Client:
			if _, known := c.Transport.(*http.Transport); c.Transport != nil && !known {
				own := *c
				own.Transport = guardedTransport{c.Transport}
				o.HTTPClient = &own
			}
		default:
			o.HTTPClient = guardedHTTP{c}
		}
		// New applies it to the retryer, which has it already.
		o.RetryMaxAttempts = 0
	})
}

type guardedCredentials struct{ to aws.CredentialsProvider }

func (g guardedCredentials) Retrieve(ctx context.Context) (c aws.Credentials, err error) {
	err = contained("the credentials provider", func() (err error) { c, err = g.to.Retrieve(ctx); return err })
	return c, err
}

// IsCredentialsProvider lets [aws.IsCredentialsProvider] look at the provider.
func (g guardedCredentials) IsCredentialsProvider(target aws.CredentialsProvider) bool {
	return aws.IsCredentialsProvider(g.to, target)
}

// ProviderSources implements [aws.CredentialProviderSource].
func (g guardedCredentials) ProviderSources() []aws.CredentialSource {
	if of, ok := g.to.(aws.CredentialProviderSource); ok {
		return of.ProviderSources()
	}
	return nil
}

type guardedTransport struct{ to http.RoundTripper }

func (g guardedTransport) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	err = contained(theHTTPClient, func() (err error) { resp, err = g.to.RoundTrip(r); return err }) //nolint:bodyclose // it is the caller's
	return resp, err
}

// CloseIdleConnections lets [http.Client.CloseIdleConnections] reach the transport.
func (g guardedTransport) CloseIdleConnections() {
	if c, ok := g.to.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

const theHTTPClient = "the HTTP client"

type guardedHTTP struct{ to kinesis.HTTPClient }

func (g guardedHTTP) Do(r *http.Request) (resp *http.Response, err error) {
	err = contained(theHTTPClient, func() (err error) { resp, err = g.to.Do(r); return err }) //nolint:bodyclose // it is the caller's
	return resp, err
}

// Unwrap returns the user's client, for messages that name its type.
func (g guardedHTTP) Unwrap() any { return g.to }
