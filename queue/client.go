package queue

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/retry"
)

const (
	targetPrefix   = "Kinesis_20131202."
	contentType    = "application/x-amz-json-1.1"
	maxErrorBody   = 64 << 10
	callTimeout    = 10 * time.Second // of one attempt; a receive may also wait
	receiveMargin  = 10 * time.Second // a receive takes Wait and at most this much
	clientAttempts = 4
	maxTrustedSkew = 4 * time.Minute // signatures are valid for 5 minutes
)

// Client makes the calls of queues. It is safe for concurrent use. Its methods return an [*Error]
// for an error answer of the service, and repeat a failed call up to three times if the error is
// temporary. A receive is not repeated once its answer begins to arrive, because its records are
// hidden.
type Client struct {
	endpoints   endpoints
	credentials aws.CredentialsProvider
	http        kinesis.HTTPClient
	signer      *v4.Signer
	agent       string
	attempts    int
	skew        *atomic.Int64 // service's clock minus ours, in nanoseconds, for signatures
	ages        *ages         // of answers
}

// NewClient makes a client with the region, credentials, HTTP client and endpoint of cfg, including
// FIPS, dual stack and the custom endpoint of the environment. It makes no call.
func NewClient(cfg aws.Config) (*Client, error) {
	o := kinesis.NewFromConfig(cfg).Options()
	c := &Client{
		endpoints: endpoints{
			region: o.Region, base: aws.ToString(o.BaseEndpoint), accounts: o.AccountIDEndpointMode,
			fips: o.EndpointOptions.UseFIPSEndpoint == aws.FIPSEndpointStateEnabled,
			dual: o.EndpointOptions.UseDualStackEndpoint == aws.DualStackEndpointStateEnabled,
		},
		credentials: o.Credentials, http: o.HTTPClient, signer: v4.NewSigner(), attempts: clientAttempts,
		agent: "weir-queue", skew: new(atomic.Int64), ages: &ages{born: time.Now()},
	}
	if o.AppID != "" {
		c.agent += " app/" + o.AppID
	}
	if cfg.HTTPClient == nil {
		c.http = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, mostCalls
		})
	}
	if c.credentials == nil {
		return nil, errors.New("weir: the configuration has no credentials: set aws.Config.Credentials, or load it with config.LoadDefaultConfig")
	}
	if _, err := c.endpoints.resolve(controlPlane, "", "0"); err != nil {
		return nil, fmt.Errorf("weir: %w", err)
	}
	return c, nil
}

// once returns a client that does not repeat calls, for callers that do so themselves.
func (c *Client) once() *Client {
	same := *c
	same.attempts = 1
	return &same
}

// call describes a call of the service.
type call struct {
	operation string
	plane     plane
	arn       string // empty if the call names no queue
	timeout   time.Duration
	input     any
	read      func(*http.Response) error // reads a successful answer; nil ignores the body
	answered  bool                       // an answer began to arrive, so a repetition may do harm
	began     time.Time                  // when it began to arrive
	keep      bool                       // do not repeat after answered
}

// do makes a call, and repeats it after temporary errors.
func (c *Client) do(ctx context.Context, of *call) error {
	body, err := json.Marshal(of.input)
	if err != nil {
		return &requestError{fmt.Errorf("weir: %s: %w", of.operation, err)}
	}
	backoff := retry.Backoff{Low: 100 * time.Millisecond, High: 5 * time.Second}
	for attempt := 1; ; attempt++ {
		err := c.attempt(ctx, of, body)
		k := kind(0)
		if err != nil {
			k = kindOf(err)
		}
		if k == stale {
			c.refresh()
		}
		if err == nil || !k.again() || attempt >= c.attempts || of.keep && of.answered || ctx.Err() != nil {
			return err
		}
		if retry.Wait(ctx, backoff.Next()) != nil {
			return err
		}
	}
}

// refresh makes the next call get new credentials.
func (c *Client) refresh() {
	if cache, ok := c.credentials.(*aws.CredentialsCache); ok {
		cache.Invalidate()
	}
}

// attempt makes one call.
func (c *Client) attempt(ctx context.Context, of *call, body []byte) error {
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, of.timeout)
	defer cancel()
	fail := func(err error) error {
		if caller.Err() != nil {
			return fmt.Errorf("weir: %s: %w: %w", of.operation, context.Canceled, context.Cause(caller))
		}
		return fmt.Errorf("weir: %s: %w", of.operation, err)
	}
	cred, err := c.credentials.Retrieve(ctx)
	if err != nil {
		return fail(fmt.Errorf("getting credentials: %w", err))
	}
	url, err := c.endpoints.resolve(of.plane, of.arn, cred.AccountID)
	if err != nil {
		return fail(&requestError{err})
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return fail(&requestError{err})
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("X-Amz-Target", targetPrefix+of.operation)
	req.Header.Set("User-Agent", c.agent)
	sum := sha256.Sum256(body)
	now := time.Now().Add(time.Duration(c.skew.Load()))
	if err := c.signer.SignHTTP(ctx, cred, req, hex.EncodeToString(sum[:]), "kinesis", c.endpoints.region, now); err != nil {
		return fail(fmt.Errorf("signing: %w", err))
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = res.Body.Close() }() // its data was read or is not needed
	if res.StatusCode != http.StatusOK {
		err := readError(of.operation, res)
		c.learnSkew(res, err)
		return err
	}
	of.answered, of.began = true, time.Now()
	if date, err := http.ParseTime(res.Header.Get("Date")); err == nil {
		of.began = of.began.Add(-c.ages.of(date, of.began))
	}
	if of.read == nil {
		_, err = io.Copy(io.Discard, res.Body)
	} else {
		err = of.read(res)
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

// readError reads an error answer.
func readError(operation string, res *http.Response) error {
	e := &Error{Operation: operation, Status: res.StatusCode, RequestID: res.Header.Get("X-Amzn-Requestid")}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	var fields struct {
		Type    string `json:"__type"`
		Code    string `json:"code"`
		Message string `json:"message"` // also matches Message
	}
	if err == nil {
		err = json.Unmarshal(body, &fields)
	}
	e.Code, e.Message = fields.Type, fields.Message
	if e.Code == "" {
		e.Code = fields.Code
	}
	if header := res.Header.Get("X-Amzn-Errortype"); header != "" {
		e.Code = header
	}
	if e.Code = shortCode(e.Code); e.Code == "" {
		e.Code = "UnknownError"
		if e.Message == "" && err != nil {
			e.Message = fmt.Sprintf("the answer could not be read: %v", err)
		}
	}
	return e
}

// learnSkew sets c.skew if a wrong clock is the reason for a refused signature.
func (c *Client) learnSkew(res *http.Response, err error) {
	if kindOf(err) != stale || res.Header.Get("Age") != "" {
		return
	}
	date, perr := http.ParseTime(res.Header.Get("Date"))
	if perr != nil {
		return
	}
	skew := time.Until(date)
	if d := skew - time.Duration(c.skew.Load()); d > maxTrustedSkew || d < -maxTrustedSkew {
		c.skew.Store(int64(skew))
	}
}
