package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"

	"github.com/weir-go/weir/internal/http1"
	"github.com/weir-go/weir/internal/wire/codec"
)

// Path is the way in which calls are made. Except for SubscribeToShard and the path Methods, calls
// use HTTP/1.1 and separate connections of the Caller, with the settings of the client's HTTP
// client. An HTTP client that cannot be configured in this way is used unchanged.
type Path uint8

const (
	// AutoPath selects OwnCall for clients that are [Plain], PlainSDK for clients whose Protocol
	// the user has set, and UnderSDK for all others.
	AutoPath Path = iota
	// OwnCall makes requests without the SDK's middleware stack. It uses the client's credentials
	// and endpoint. Clients that are not plain get UnderSDK or PlainSDK, as with AutoPath.
	OwnCall
	// UnderSDK makes calls through the SDK, with a protocol that decodes answers in the same way as
	// OwnCall. The client's middleware, tracing and logging work as usual, but the output that they
	// see has no Records.
	UnderSDK
	// PlainSDK uses only the SDK to make calls and decode answers. It costs many times as much as
	// OwnCall.
	PlainSDK
	// Methods calls the methods of a client that is not a *kinesis.Client, and reads the outputs
	// that they return. Such a client always gets Methods. It uses its own connections.
	Methods
)

// String returns "auto", "own call", "under the SDK", "SDK" or "methods of the client".
func (p Path) String() string {
	switch p {
	case OwnCall:
		return "own call"
	case UnderSDK:
		return "under the SDK"
	case PlainSDK:
		return "SDK"
	case Methods:
		return "methods of the client"
	default:
		return "auto"
	}
}

// Options configures a [Caller]. Zero fields have defaults.
type Options struct {
	// Path is the way in which calls are made.
	Path Path
	// Format is the format of GetRecords and PutRecords. With the default, Auto, an endpoint is
	// called in CBOR. If an endpoint refuses or garbles CBOR, it is called in JSON.
	Format codec.Format
	// Reuse makes pages share memory that is reused after [codec.Page.Release]. By default each
	// page has its own memory.
	Reuse bool
	// Poison is for tests of programs with Reuse. Released memory is overwritten and not reused,
	// which reveals records that were kept too long.
	Poison bool
	// Timeout is the maximum duration of one call, from before the request is signed to the end of
	// the answer or of its first part. Default 20 s.
	Timeout time.Duration
	// MaxBody is the maximum size of an answer in bytes. The default and maximum is 32 MiB. The
	// service's limit of 10 MiB of records needs less, even in base64.
	MaxBody int
	// Window is the maximum amount of an answer in memory for [Caller.Read], unless one record is
	// larger. Default 512 KiB, at least 4 KiB.
	Window int
	// MaxConns is the maximum number of connections to one host. Further calls wait for a
	// connection. Default 256. A lower limit in the client's transport takes precedence.
	MaxConns int
	// Switched is called when calls about a stream change their format. why is the reason. Switched
	// must not block and may be called concurrently. It may be nil.
	Switched func(streamARN string, to codec.Format, why error)
	// NetHTTP makes net/http send the requests that do not go through the SDK, in place of this
	// package's HTTP/1.1 client.
	NetHTTP bool
	// FellBack is called once for each host that sent an answer that this package's HTTP client
	// could not parse. After that, net/http makes all requests about the same stream. FellBack must
	// not block and may be called concurrently. It may be nil.
	FellBack func(host string, why error)
	// Silent is called at most once per minute for each endpoint with retried calls. A call is
	// retried if its first connection was silent. times is the number of retried calls since the
	// last report. Silent must not block and may be called concurrently. It may be nil.
	Silent func(endpoint string, times int)
}

// Caller makes calls to Kinesis for one client. It may be used concurrently.
type Caller struct {
	client Kinesis
	real   *kinesis.Client // nil if the path is Methods
	opts   Options
	path   Path
	reason string // why the Caller uses the path

	credentials aws.CredentialsProvider
	fixSkew     bool
	skew        atomic.Int64 // the service's clock minus the local clock, in nanoseconds
	http        doer
	posts       doer         // like http, for requests without the SDK
	streams     streamClient // for subscriptions
	closeIdle   func()
	lean        *http1.Client                         // nil if net/http makes all calls
	proxy       func(*http.Request) (*url.URL, error) // not used by lean; may be nil
	bodies      codec.Bodies
	slow        error        // the cause of a call's timeout
	held        atomic.Int32 // number of answers that are being read in parts

	resolving chan struct{}            // contains an element while an endpoint is being resolved
	endpoints sync.Map                 // endpointKey to *endpoint
	resolved  atomic.Pointer[resolved] // the last one, because most programs read one stream
	// known is the number of endpoints. Only the goroutine that is resolving an endpoint may use
	// known.
	known int

	choices sync.Map // stream ARN to *formatChoice, for calls through the SDK

	silences  sync.Map    // scheme and host to *silence
	strangers sync.Map    // scheme and host of endpoints that fell back to net/http
	fell      atomic.Bool // strangers is not empty
}

const (
	defaultTimeout  = 20 * time.Second
	defaultMaxConns = 256
	defaultWindow   = 512 << 10
)

// NewCaller returns a Caller for client. It starts no goroutine and makes no call. Its error names
// the invalid fields of opts, or what client lacks.
func NewCaller(client Kinesis, opts Options) (*Caller, error) {
	if IsNil(client) {
		return nil, errors.New("wire: the client is nil")
	}
	if f, ok := client.(Forced); ok {
		client, opts.Path, opts.NetHTTP = f.Client, f.Path, f.NetHTTP
	}
	var errs []error
	if opts.Path > PlainSDK {
		errs = append(errs, fmt.Errorf("wire: Path %d is unknown", opts.Path))
	}
	if opts.Format > codec.JSON {
		errs = append(errs, fmt.Errorf("wire: Format %d is unknown", opts.Format))
	}
	if opts.Timeout < 0 {
		errs = append(errs, fmt.Errorf("wire: Timeout %v is negative", opts.Timeout))
	}
	if opts.MaxBody < 0 || opts.MaxBody > codec.MostBody {
		errs = append(errs, fmt.Errorf("wire: MaxBody %d is not between 1 byte and 32 MiB", opts.MaxBody))
	}
	if opts.Window < 0 || (opts.Window > 0 && opts.Window < codec.LeastBody) || opts.Window > codec.MostBody {
		errs = append(errs, fmt.Errorf("wire: Window %d is not between 4 KiB and 32 MiB", opts.Window))
	}
	if opts.MaxConns < 0 {
		errs = append(errs, fmt.Errorf("wire: MaxConns %d is negative", opts.MaxConns))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if opts.Timeout == 0 {
		opts.Timeout = defaultTimeout
	}
	if opts.MaxBody == 0 {
		opts.MaxBody = codec.MostBody
	}
	if opts.Window == 0 {
		opts.Window = defaultWindow
	}
	if opts.MaxConns == 0 {
		opts.MaxConns = defaultMaxConns
	}
	c := &Caller{
		client: client, real: Real(client), opts: opts, path: opts.Path, closeIdle: func() {}, resolving: make(chan struct{}, 1),
		bodies: codec.Bodies{Reuse: opts.Reuse, Poison: opts.Poison, Most: opts.MaxBody},
		slow:   fmt.Errorf("no whole answer within %v: %w", opts.Timeout, context.DeadlineExceeded),
	}
	if c.real == nil {
		c.path, c.reason = Methods, fmt.Sprintf("the client is a %s, not a *kinesis.Client", typeOf(client))
		return c, nil
	}
	of := c.real.Options()
	if of.HTTPClient == nil {
		return nil, errors.New("wire: the client has no HTTP client")
	}
	c.path, c.reason = choosePath(c.path, of)
	c.credentials, c.fixSkew = of.Credentials, !of.DisableClockSkewCorrection
	c.http, c.closeIdle = ownClient(of.HTTPClient, opts.MaxConns)
	c.posts = poster(c.http)
	if !opts.NetHTTP {
		c.lean, c.proxy = leanClient(of.HTTPClient, opts)
	}
	return c, nil
}

// choosePath returns the path for a *kinesis.Client with the given options, and the reason.
func choosePath(wanted Path, of kinesis.Options) (p Path, reason string) {
	p, reason = wanted, "the transport option selects it"
	if p == AutoPath || p == OwnCall {
		var plain bool
		if reason, plain = Plain(of); plain {
			return OwnCall, "the client's options need nothing else of the SDK"
		}
		p, reason = UnderSDK, "the client needs the SDK: "+reason
	}
	if _, ok := of.Protocol.(*awsjson.Protocol); !ok && p == UnderSDK {
		return PlainSDK, fmt.Sprintf("the client needs the SDK: it sets its own protocol (%T)", of.Protocol)
	}
	return p, reason
}

// Path returns the path and why the Caller uses it. Even with OwnCall, calls go through the SDK if
// the requests to an endpoint have an unknown form.
func (c *Caller) Path() (p Path, reason string) { return c.path, c.reason }

// Close closes the idle connections of the Caller. Calls in progress continue, and new calls are
// allowed. The exception is Subscribe if the Caller has not subscribed before.
func (c *Caller) Close() {
	c.closeIdle()
	if c.lean != nil {
		c.lean.CloseIdle()
	}
	c.streams.close()
}

// GetRecords reads a page into p. It reuses p, and leaves it empty after an error. It does not
// retry errors, but repeats a call once if its connection is silent. If an endpoint does not
// support CBOR, GetRecords repeats the call once in JSON.
//
// Errors of the service are the same as those of the SDK. errors.As finds the types of
// service/kinesis/types, *smithy.GenericAPIError for other codes, and *http.ResponseError of
// aws/transport/http with the request ID. Other errors include [codec.ErrTooLarge],
// [*codec.MalformedError] inside a *smithy.DeserializationError, and the error of ctx. If a call
// took longer than [Options.Timeout], its error wraps context.DeadlineExceeded.
func (c *Caller) GetRecords(ctx context.Context, req Request, p *codec.Page) error {
	p.Reset()
	l := live(ctx, &req, c.opts.Timeout, c.slow)
	l.window = 0
	defer l.end()
	_, err := c.getRecords(l, &req, p)
	if err != nil {
		p.Reset()
	}
	return err
}

func (c *Caller) getRecords(l *life, req *Request, p *codec.Page) (*Rest, error) {
	switch c.path {
	case OwnCall:
		if err := c.prepare(l, req); err != nil {
			return nil, err
		}
		if l.ep.reason == "" {
			return c.choose(&l.ep.format, l, req, p, func(f codec.Format) (rest *Rest, err error) {
				err = c.twice(l, func() error {
					p.Reset()
					rest, err = c.own(l, f, req, p)
					return err
				})
				if err != nil {
					err = operationError(err)
				}
				return rest, err
			})
		}
	case PlainSDK, Methods:
		l.deaf = true
		return nil, c.plainSDK(l, req, p)
	}
	return c.choose(c.choiceFor(req.StreamARN), l, req, p, func(f codec.Format) (*Rest, error) {
		return nil, c.twice(l, func() error {
			p.Reset()
			return c.underSDK(l, f, req, p)
		})
	})
}

// prepare fetches the endpoint and the credentials for the call.
func (c *Caller) prepare(l *life, req *Request) error {
	return c.prepareFor(l, operation, req.StreamARN)
}

func (c *Caller) prepareFor(l *life, operation, arn string) (err error) {
	if l.ep != nil {
		return nil
	}
	if l.cred, err = c.credentials.Retrieve(l); err != nil {
		return errorOf(operation, fmt.Errorf("get credentials: %w", err))
	}
	if l.ep, err = c.endpointFor(l, &l.cred, arn); err == nil {
		l.quiet = l.ep.quiet
	}
	return err
}

// silenceOf returns the silence state of an endpoint. All streams at the endpoint share it.
func (c *Caller) silenceOf(at string) *silence {
	if s, ok := c.silences.Load(at); ok {
		return s.(*silence)
	}
	s, _ := c.silences.LoadOrStore(at, newSilence(at))
	return s.(*silence)
}

// choose makes a call in the format that currently seems best for the endpoint, and updates that
// choice from the result.
func (c *Caller) choose(choice *formatChoice, l *life, req *Request, p *codec.Page, call func(codec.Format) (*Rest, error)) (*Rest, error) {
	if f := c.opts.Format; f != codec.Auto {
		return call(f)
	}
	state := choice.load()
	if l.asked {
		state = l.state
	}
	rest, err := call(state.format())
	if c.learn(choice, req.StreamARN, state, outcomeOf(err, p), err) {
		p.Reset()
		state, _ = state.next(refused)
		rest, err = call(state.format())
		c.learn(choice, req.StreamARN, state, outcomeOf(err, p), err)
	}
	if rest != nil {
		arn := req.StreamARN
		rest.learn = func(err error) { c.learn(choice, arn, choice.load(), refused, err) }
	}
	return rest, err
}

// learn records the outcome of a call that was made in the given state. It reports whether to
// repeat the call in the other format.
func (c *Caller) learn(choice *formatChoice, arn string, state formatState, o outcome, why error) (again bool) {
	again, changed := choice.after(state, o)
	if changed != codec.Auto && c.opts.Switched != nil {
		if why == nil {
			why = errTextData
		}
		c.opts.Switched(arn, changed, why)
	}
	return again
}

var errTextData = errors.New("the answer contains base64 text or JSON, but CBOR was requested")

func (c *Caller) choiceFor(arn string) *formatChoice {
	if choice, ok := c.choices.Load(arn); ok {
		return choice.(*formatChoice)
	}
	choice, _ := c.choices.LoadOrStore(arn, new(formatChoice))
	return choice.(*formatChoice)
}
