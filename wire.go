package weir

import (
	"log/slog"

	"github.com/weir-go/weir/internal/wire"
)

// Wire chooses how records are read from the service. Whatever it is, weir does the pacing and the
// retries, errors have the SDK's types, and an endpoint that does not speak CBOR is asked in JSON.
type Wire int

const (
	// AutoWire makes weir's own calls where the client's options leave nothing for the SDK's stack
	// to do: no middleware, interceptors, tracer or meter, no retryer, signer, endpoint resolver or
	// protocol of your own, and an HTTP client that is the SDK's or an *http.Client. Such calls
	// take the SDK's credentials and endpoint, HTTP/1.1, CBOR and identity encoding, and no more
	// than a few percent above the cost of receiving the bytes. Other clients are used as by
	// UnderSDK. The default.
	AutoWire Wire = iota
	// UnderSDK calls through the SDK with a decoder of our own, so that your middleware and tracing
	// see every call; the output they see has no Records.
	UnderSDK
	// SDKWire leaves everything to the SDK. It costs about ten times as much and is there for
	// comparison and doubt. The SDK does not ask for memory: Options.MaxMemory is exceeded by what
	// answers need that are under way. And it waits 20 s for an answer over a connection that has
	// died without a word, where the others ask a second time after at most 4 s.
	SDKWire
	// OverNetHTTP is AutoWire with the requests made by net/http, instead of an HTTP/1.1 client of
	// our own that costs less. It is for comparison and doubt: where that client does not
	// understand an answer, net/http makes the further calls to the endpoint anyway, which is
	// logged once.
	OverNetHTTP
)

// options are those of the wire, which tell the logger what there is to tell.
func (w Wire) options(to *slog.Logger) wire.Options {
	return wire.Options{
		Path: w.path(), NetHTTP: w == OverNetHTTP,
		FellBack: func(host string, why error) {
			to.Warn("an answer was not understood; net/http makes all further calls to this endpoint, at a higher cost",
				"endpoint", host, "err", why)
		},
	}
}

func (w Wire) path() wire.Path {
	switch w {
	case UnderSDK:
		return wire.UnderSDK
	case SDKWire:
		return wire.PlainSDK
	default:
		return wire.AutoPath
	}
}
