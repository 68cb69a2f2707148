package fanout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire"
)

// Consumers finds or registers the fan-out consumer of each stream. The readers of all shards of a
// process share it, and may use it concurrently.
type Consumers struct {
	Client wire.Kinesis
	Name   string // name of the consumer, the same for every stream
	// Given maps stream names to ARNs of consumers that others have registered. Such a stream has
	// fan-out only through its given consumer.
	Given map[string]string
	// Existing disables registration. A stream without an existing consumer then has no fan-out.
	Existing bool
	// Found is called for each consumer that is ready. registered reports whether this process
	// registered it. Found may be nil.
	Found func(s streams.Stream, arn string, registered bool)
	Log   *slog.Logger // for RemoveLast

	calls turns // limits calls of SubscribeToShard

	mu      lock.Mutex[lock.FanOut]
	streams map[streams.Stream]*consumer
}

// New returns Consumers with the given consumer name. given contains ARNs of consumers that others
// have registered. Consumers log each registration.
func New(client wire.Kinesis, name string, given []string, logger *slog.Logger) *Consumers {
	c := &Consumers{Client: client, Name: name, Given: make(map[string]string, len(given)), Log: logger}
	for _, arn := range given {
		if of, err := streams.ParseConsumer(nil, arn); err == nil {
			c.Given[of.Name] = arn
		}
	}
	c.Found = func(s streams.Stream, arn string, registered bool) {
		if registered {
			logger.Info("fan-out consumer registered; it costs money until it is removed", "stream", s.Name, "arn", arn)
		}
	}
	return c
}

// consumer is the state of the consumer of one stream. A goroutine must take the turn before it
// uses the other fields.
type consumer struct {
	turn   chan struct{} // contains an element while a goroutine has the turn
	stream string        // ARN of the stream; "" if unknown
	arn    string        // "" if there is no usable consumer
	failed error         // error of the last search
	ours   bool          // this process registered the consumer, or may have registered it
	until  time.Time     // earliest time of the next search
	// waited is set when the wait for ACTIVE has lasted long enough. From then on, reading does not
	// wait for the consumer.
	waited bool
}

const (
	// registerTimeout limits the time to find a consumer, register it and wait for it. The shard is
	// not read during that time. Kinesis usually needs a few seconds.
	registerTimeout = 30 * time.Second
	// registerAgain is how long the result of a failed search is reused. A process with a thousand
	// shards therefore makes only one search.
	registerAgain = 30 * time.Second
	// absentAgain replaces registerAgain if the stream does not exist. Such a stream cannot be
	// polled either. It may be created again at any time.
	absentAgain = 5 * time.Second
)

// errRefused is wrapped by errors if Kinesis refuses fan-out because of a missing permission or a
// limit. An early retry does not help.
var errRefused = errors.New("fan-out is refused")

// ARN returns the ARN of the stream's consumer. It makes no call if the consumer is known, or if a
// search has just failed.
func (c *Consumers) ARN(ctx context.Context, s streams.Stream) (string, error) {
	con := c.of(s)
	if err := con.take(ctx); err != nil {
		return "", err
	}
	defer con.give()
	if con.arn != "" {
		return con.arn, nil
	}
	if time.Now().Before(con.until) {
		return "", con.failed
	}
	arn, registered, err := c.search(ctx, s, con)
	switch {
	case err == nil:
		con.arn, con.failed, con.waited = arn, nil, false
		if c.Found != nil {
			c.Found(s, arn, registered)
		}
		return arn, nil
	case ctx.Err() != nil: // the end of the caller's context is not a failure of the search
		return "", context.Cause(ctx)
	default:
		again := registerAgain
		if errors.Is(err, streams.ErrNoStream) {
			again = absentAgain
		}
		con.failed, con.until = err, time.Now().Add(again)
		return "", err
	}
}

// Forget reports that Kinesis refused arn. The next call of [Consumers.ARN] searches again, unless
// a later search has already found another ARN.
func (c *Consumers) Forget(ctx context.Context, s streams.Stream, arn string) {
	con := c.of(s)
	if con.take(ctx) != nil {
		return
	}
	defer con.give()
	if con.arn == arn {
		con.arn = ""
	}
}

func (c *Consumers) of(s streams.Stream) *consumer {
	c.mu.Lock()
	defer c.mu.Unlock()
	con := c.streams[s]
	if con == nil {
		if c.streams == nil {
			c.streams = map[streams.Stream]*consumer{}
		}
		con = &consumer{turn: make(chan struct{}, 1), stream: s.ARN}
		c.streams[s] = con
	}
	return con
}

// take waits for the turn. If the turn is free, take succeeds even if ctx has ended, because Forget
// must record a refused consumer even then.
func (con *consumer) take(ctx context.Context) error {
	select {
	case con.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case con.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (con *consumer) give() { <-con.turn }

// search finds the consumer, registers it if it does not exist, and waits until it is ACTIVE.
func (c *Consumers) search(ctx context.Context, s streams.Stream, con *consumer) (arn string, registered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	backoff := retry.Backoff{Low: 500 * time.Millisecond, High: 5 * time.Second}
	looks := retry.Backoff{Low: 500 * time.Millisecond, High: 2 * time.Second}
	for {
		var status types.ConsumerStatus
		arn, status, err = c.look(ctx, s, con)
		if err == nil && status == types.ConsumerStatusActive {
			return arn, registered, nil
		}
		wait := time.Duration(0)
		switch {
		case err == nil: // CREATING, or DELETING: in the latter case it is registered again
			err = fmt.Errorf("consumer %s of stream %s is %s", c.named(s), s.Name, status)
			if con.waited {
				return "", false, err
			}
			wait = looks.Next()
		case errors.Is(err, ErrNoConsumer) && (c.Existing || c.Given[s.Name] != ""):
			return "", false, fmt.Errorf("%w: consumer %s of stream %s: %w", errRefused, c.named(s), s.Name, err)
		case errors.Is(err, ErrNoConsumer):
			err = c.register(ctx, con)
			// If the answer was lost, Kinesis may still have registered the consumer.
			con.ours = con.ours || err == nil || streams.Code(err) == ""
			if err == nil {
				registered = true
				continue
			}
			if streams.Code(err) == "LimitExceededException" {
				err = fmt.Errorf("%w: consumer %s cannot be registered: %w", errRefused, c.Name, err)
			}
		}
		switch {
		case wait > 0:
		case streams.Code(err) == "ResourceNotFoundException":
			return "", false, fmt.Errorf("%w: %w", streams.ErrNoStream, err)
		case isDenied(err):
			return "", false, fmt.Errorf("%w: %w", errRefused, err)
		case errors.Is(err, errRefused), backoff.Failures >= 2:
			return "", false, err
		default: // including ResourceInUseException: another worker is registering it
			wait = backoff.Next()
		}
		if retry.Wait(ctx, wait) != nil {
			con.waited = con.waited || backoff.Failures == 0
			return "", false, fmt.Errorf("within %v: %w", registerTimeout, err)
		}
	}
}

// ErrNoConsumer is returned if the stream's consumer is not registered, or if the stream does not
// exist.
var ErrNoConsumer = errors.New("the consumer is not registered")

// CheckGiven looks up the streams of the given consumers, if only the names of these streams are
// known. It returns [ErrForeign] if a consumer certainly belongs to another stream.
func (c *Consumers) CheckGiven(ctx context.Context, all []streams.Stream) error {
	for _, s := range all {
		if c.Given[s.Name] == "" || s.ARN != "" {
			continue
		}
		if _, _, err := c.look(ctx, s, &consumer{}); errors.Is(err, ErrForeign) {
			return err
		}
	}
	return nil
}

// named returns the name of a stream's consumer for messages.
func (c *Consumers) named(s streams.Stream) string { return cmp.Or(c.Given[s.Name], c.Name) }

// ErrForeign is returned if a given consumer belongs to another stream. Kinesis would not detect
// this, because shards of all streams have the same names.
var ErrForeign = errors.New("the consumer belongs to another stream")

func (c *Consumers) look(ctx context.Context, s streams.Stream, con *consumer) (arn string, status types.ConsumerStatus, err error) {
	ctx, cancel := context.WithTimeout(ctx, streams.CallTimeout)
	defer cancel()
	if con.stream == "" {
		out, err := c.Client.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: aws.String(s.Name)}, streams.Once)
		if err != nil {
			return "", "", err
		}
		if out.StreamDescriptionSummary == nil || aws.ToString(out.StreamDescriptionSummary.StreamARN) == "" {
			return "", "", fmt.Errorf("the service did not return the ARN of stream %s", s.Name)
		}
		con.stream = *out.StreamDescriptionSummary.StreamARN
	}
	in := &kinesis.DescribeStreamConsumerInput{StreamARN: aws.String(con.stream), ConsumerName: aws.String(c.Name)}
	given := c.Given[s.Name]
	if given != "" {
		if of, err := streams.ParseConsumer(nil, given); err != nil || of.ARN != con.stream {
			return "", "", fmt.Errorf("%w: %w: %s is not a consumer of %s", errRefused, ErrForeign, given, con.stream)
		}
		in = &kinesis.DescribeStreamConsumerInput{ConsumerARN: aws.String(given)}
	}
	out, err := c.Client.DescribeStreamConsumer(ctx, in, streams.Once)
	switch {
	case given != "" && isDenied(err): // there may be no other permission than to subscribe
		return given, types.ConsumerStatusActive, nil
	case streams.Code(err) == "ResourceNotFoundException":
		return "", "", ErrNoConsumer
	case err != nil:
		return "", "", err
	case out.ConsumerDescription == nil || aws.ToString(out.ConsumerDescription.ConsumerARN) == "":
		return "", "", fmt.Errorf("the service did not return the ARN of consumer %s", c.named(s))
	}
	return *out.ConsumerDescription.ConsumerARN, out.ConsumerDescription.ConsumerStatus, nil
}

func (c *Consumers) register(ctx context.Context, con *consumer) error {
	ctx, cancel := context.WithTimeout(ctx, streams.CallTimeout)
	defer cancel()
	_, err := c.Client.RegisterStreamConsumer(ctx, &kinesis.RegisterStreamConsumerInput{
		StreamARN: aws.String(con.stream), ConsumerName: aws.String(c.Name),
	}, streams.Once)
	return err
}

// Remove deregisters the consumers that this process has registered. It waits for Kinesis for a
// limited time. The caller must first end all subscriptions and all calls of ARN.
func (c *Consumers) Remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	c.mu.Lock()
	known := maps.Clone(c.streams)
	c.mu.Unlock()
	var all []error
	for s, con := range known {
		if !con.ours {
			continue
		}
		if err := c.remove(ctx, con); err != nil {
			all = append(all, fmt.Errorf("consumer %s of stream %s stays registered: %w", c.Name, s.Name, err))
			continue
		}
		con.ours, con.arn = false, ""
	}
	return errors.Join(all...)
}

// removeWithin limits the duration of RemoveLast.
const removeWithin = 10 * time.Second

// RemoveLast deregisters the consumers of streams after a worker has left its application. others
// returns the number of other live workers. RemoveLast does nothing if that number is not 0, or if
// others returns an error. It also deregisters consumers that other processes registered, but not
// the given ones. The subscriptions must have ended.
func (c *Consumers) RemoveLast(ctx context.Context, all []streams.Stream, others func(context.Context) (int, error)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
	defer cancel()
	logger := c.Log.With("consumer", c.Name)
	switch n, err := others(ctx); {
	case err != nil:
		logger.Warn("the fan-out consumer stays registered and costs money: the store did not report whether other workers are live", "err", err)
		return
	case n > 0:
		logger.Info("the fan-out consumer stays registered for the other workers", "workers", n)
		return
	}
	var failed []error
	for _, s := range all {
		if c.Given[s.Name] != "" {
			continue
		}
		con := &consumer{stream: s.ARN}
		arn, status, err := c.look(ctx, s, con)
		switch {
		case errors.Is(err, ErrNoConsumer), streams.Code(err) == "ResourceNotFoundException":
			continue
		case err == nil && status != types.ConsumerStatusDeleting:
			if err = c.remove(ctx, con); err == nil {
				logger.Info("fan-out consumer removed: the last worker has stopped", "stream", s.Name, "arn", arn)
			}
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("consumer %s of stream %s stays registered: %w", c.Name, s.Name, err))
		}
	}
	if err := errors.Join(failed...); err != nil {
		logger.Error("could not deregister a fan-out consumer; it costs money until it is deregistered", "err", err)
	}
}

// remove deregisters a consumer. It retries until ctx ends, unless a permission is missing. Kinesis
// may refuse to deregister a consumer that is CREATING.
func (c *Consumers) remove(ctx context.Context, con *consumer) error {
	backoff := retry.Backoff{Low: 500 * time.Millisecond, High: 5 * time.Second}
	for {
		call, cancel := context.WithTimeout(ctx, streams.CallTimeout)
		_, err := c.Client.DeregisterStreamConsumer(call, &kinesis.DeregisterStreamConsumerInput{
			StreamARN: aws.String(con.stream), ConsumerName: aws.String(c.Name),
		}, streams.Once)
		cancel()
		switch {
		case err == nil, streams.Code(err) == "ResourceNotFoundException":
			return nil
		case isDenied(err), retry.Wait(ctx, backoff.Next()) != nil:
			return err
		}
	}
}

// isDenied reports whether err means that the caller lacks a permission.
func isDenied(err error) bool { return strings.Contains(streams.Code(err), "AccessDenied") }
