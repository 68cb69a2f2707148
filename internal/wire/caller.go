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

// Path is how calls are made. On every path they use HTTP/1.1 and the Caller's own connections,
// with the settings of the client's HTTP client, if that is the SDK's or an *http.Client with an
// *http.Transport. Any other HTTP client is used unchanged.
type Path uint8

const (
	// AutoPath is OwnCall for clients that are [Plain], PlainSDK for those with their own protocol,
	// and UnderSDK for others.
	AutoPath Path = iota
	// OwnCall makes requests without the SDK's middleware stack, with the client's credentials and
	// endpoint. For clients that are not plain it is UnderSDK.
	OwnCall
	// UnderSDK makes calls through the SDK, with a protocol that reads answers as OwnCall does. The
	// client's middleware, tracing and logging work as usual, except that the output they see has
	// no Records.
	UnderSDK
	// PlainSDK makes calls and decodes answers with the SDK only. It costs many times as much.
	PlainSDK
)

// String returns "auto", "own call", "under the SDK" or "SDK".
func (p Path) String() string {
	switch p {
	case OwnCall:
		return "own call"
	case UnderSDK:
		return "under the SDK"
	case PlainSDK:
		return "SDK"
	default:
		return "auto"
	}
}

// Options configures a [Caller]. Every zero field has a useful default.
type Options struct {
	// Path is how calls are made.
	Path Path
	// Format of requests and answers. The default is CBOR. If an endpoint refuses or garbles it,
	// JSON is used for that endpoint.
	Format codec.Format
	// Reuse lets pages use memory that is reused after [codec.Page.Release]. By default each page
	// has its own memory.
	Reuse bool
	// Poison is for tests of programs that use Reuse. Released memory is overwritten and not
	// reused, which exposes records that were kept too long.
	Poison bool
	// Timeout of one call, from before the request is signed to the end of the answer. Default 20
	// s.
	Timeout time.Duration
	// MaxBody is the maximum size of an answer in bytes. The default and maximum is 32 MiB. The
	// service's 10 MiB of records need less, even in base64.
	MaxBody int
	// Window is how much of an answer [Caller.Read] holds at a time, unless one record is larger.
	// Default 512 KiB, at least 4 KiB.
	Window int
	// MaxConns is how many connections to one host there may be at a time. Calls wait for one.
	// Default 256. A lower limit of the client's own transport takes precedence.
	MaxConns int
	// Switched is called when calls about a stream change their format, with the reason. It must
	// not block and may be called concurrently. May be nil.
	Switched func(streamARN string, to codec.Format, why error)
	// NetHTTP makes net/http send the requests that do not go through the SDK, instead of our own
	// HTTP/1.1 client.
	NetHTTP bool
	// FellBack is called once for each host from which our own client received an answer that it
	// could not parse. From then on net/http makes all requests to that host. FellBack must not
	// block and may be called concurrently. May be nil.
	FellBack func(host string, why error)
	// Silent is called at most once a minute for each endpoint. times is how many calls were made a
	// second time since the last report, because their first connection was silent. It must not
	// block and may be called concurrently. May be nil.
	Silent func(endpoint string, times int)
}

// Caller makes GetRecords calls for one client. It may be used concurrently.
type Caller struct {
	client *kinesis.Client
	opts   Options
	path   Path
	reason string // why the path is not OwnCall

	credentials aws.CredentialsProvider
	fixSkew     bool
	skew        atomic.Int64 // service's clock minus ours, in nanoseconds
	http        doer
	posts       doer         // the same for own requests
	streams     streamClient // for subscriptions
	closeIdle   func()
	lean        *http1.Client                         // nil if net/http makes all calls
	proxy       func(*http.Request) (*url.URL, error) // lean does not use it; may be nil
	bodies      codec.Bodies
	slow        error        // the cause when a call times out
	held        atomic.Int32 // answers that are read in parts

	resolving chan struct{}            // has one element while an endpoint is resolved
	endpoints sync.Map                 // endpointKey to *endpoint
	resolved  atomic.Pointer[resolved] // the most recent one: most programs read one stream
	// number of endpoints; owned by the goroutine that resolves one
	known int

	choices sync.Map // stream ARN to *formatChoice, for calls through the SDK

	silences  sync.Map    // scheme and host to *silence
	strangers sync.Map    // scheme and host of those that net/http calls
	fell      atomic.Bool // strangers is not empty
}

const (
	defaultTimeout  = 20 * time.Second
	defaultMaxConns = 256
	defaultWindow   = 512 << 10
)

// NewCaller makes a Caller for client. It starts no goroutine and makes no call. An error names the
// invalid field of opts.
func NewCaller(client *kinesis.Client, opts Options) (*Caller, error) {
	if client == nil {
		return nil, errors.New("wire: the client is nil")
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
		client: client, opts: opts, path: opts.Path, closeIdle: func() {}, resolving: make(chan struct{}, 1),
		bodies: codec.Bodies{Reuse: opts.Reuse, Poison: opts.Poison, Most: opts.MaxBody},
		slow:   fmt.Errorf("no whole answer within %v: %w", opts.Timeout, context.DeadlineExceeded),
	}
	of := client.Options()
	if of.HTTPClient == nil {
		return nil, errors.New("wire: the client has no HTTP client")
	}
	if c.path == AutoPath || c.path == OwnCall {
		c.path = OwnCall
		if reason, ok := Plain(of); !ok {
			c.path, c.reason = UnderSDK, reason
		}
	} else {
		c.reason = "Options.Path says so"
	}
	if _, ok := of.Protocol.(*awsjson.Protocol); !ok && c.path == UnderSDK {
		c.path, c.reason = PlainSDK, fmt.Sprintf("it sets its own protocol (%T)", of.Protocol)
	}
	c.credentials, c.fixSkew = of.Credentials, !of.DisableClockSkewCorrection
	c.http, c.closeIdle = ownClient(of.HTTPClient, opts.MaxConns)
	c.posts = poster(c.http)
	if !opts.NetHTTP {
		c.lean, c.proxy = leanClient(of.HTTPClient, opts)
	}
	return c, nil
}

// Path returns how calls are made, and, unless that is OwnCall, why. Calls to an endpoint whose
// requests have an unknown form still go through the SDK.
func (c *Caller) Path() (p Path, reason string) { return c.path, c.reason }

// Close closes the idle connections of the Caller. Calls that are under way continue, and new ones
// may be made.
func (c *Caller) Close() {
	c.closeIdle()
	if c.lean != nil {
		c.lean.CloseIdle()
	}
	c.streams.close()
}

// GetRecords reads a page into p, which is reused, and which is empty after an error. It makes no
// retries. If an endpoint turns out not to support CBOR, it repeats the call once in JSON.
//
// Errors are those of the SDK: errors.As finds the types of service/kinesis/types,
// *smithy.GenericAPIError for codes that have none, and *http.ResponseError of aws/transport/http
// with the request ID. Others are [codec.ErrTooLarge], [*codec.MalformedError] in a
// *smithy.DeserializationError, and ctx's. A call that took longer than [Options.Timeout] wraps
// context.DeadlineExceeded.
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
	case PlainSDK:
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

// prepare gets the endpoint and the credentials of the call.
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

// silenceOf returns the silence of an endpoint, which streams share.
func (c *Caller) silenceOf(at string) *silence {
	if s, ok := c.silences.Load(at); ok {
		return s.(*silence)
	}
	s, _ := c.silences.LoadOrStore(at, newSilence(at))
	return s.(*silence)
}

// choose makes a call in the format that is best for the endpoint as far as is known, and learns
// from the result.
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

// learn records the result of a call that was made in a state, and reports whether to repeat it in
// the other format.
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

var errTextData = errors.New("the answer has base64 text or JSON where CBOR was asked for")

func (c *Caller) choiceFor(arn string) *formatChoice {
	if choice, ok := c.choices.Load(arn); ok {
		return choice.(*formatChoice)
	}
	choice, _ := c.choices.LoadOrStore(arn, new(formatChoice))
	return choice.(*formatChoice)
}
