package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/notify"
	"github.com/weir-go/weir/internal/retry"
)

// Consumer consumes a queue. Any number of consumers, in any number of processes, may consume the
// same queue. The methods are safe for concurrent use.
type Consumer struct {
	options Options
	api     API

	mu       sync.Mutex // guards the fields below
	counts   Counts
	standing standing
}

// New makes a consumer. It makes no call. The error lists all problems by field name.
func New(cfg aws.Config, o Options) (*Consumer, error) {
	o, err := o.parse()
	c := &Consumer{options: o, api: o.API}
	if c.api == nil {
		client, cerr := NewClient(cfg)
		if cerr == nil && isARN(o.Queue) {
			if _, rerr := client.endpoints.resolve(dataPlane, o.Queue, ""); rerr != nil {
				cerr = &weir.OptionError{Option: "queue.Options.Queue", Err: rerr}
			}
		}
		if cerr != nil {
			return nil, errors.Join(err, cerr)
		}
		c.api = client.once()
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func isARN(queue string) bool { return strings.HasPrefix(queue, "arn:") }

// Counts returns the numbers of the consumer.
func (c *Consumer) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// count changes the counts.
func (c *Consumer) count(change func(*Counts)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.counts)
}

// Run consumes the queue until ctx ends, and then returns nil. It stops receiving first, lets
// handlers finish, sends the acknowledgements, and releases records that no handler has started.
// After Options.StopTimeout the contexts of the handlers end, and Run returns at most 2 s later.
//
// Run returns an error if the queue does not exist ([ErrQueueNotFound]), if the first receive is
// refused for good, if handled records were not acknowledged ([ErrNotAcknowledged]), or if a
// handler did not return ([weir.ErrAbandoned]). If a handler returns [weir.Stop], Run returns its
// argument. Run continues after temporary failures of the service. Only one Run of a Consumer may
// be active.
func (c *Consumer) Run(ctx context.Context, h Handler) error {
	if h == nil {
		return errors.New("weir: the handler is nil")
	}
	if !c.begin() {
		return errors.New("weir: the consumer is already running; make another Consumer with New")
	}
	defer c.count(func(n *Counts) { n.InFlight, n.Handling, n.Bytes = 0, 0, 0 })
	defer c.end()

	hooks := notify.New(1000)
	var told sync.WaitGroup
	told.Go(func() {
		hooks.Run(func(err error) { c.options.Logger.Error("a function of queue.Options.Events failed", "err", err) })
	})
	defer func() {
		if hooks.Close(2 * time.Second) {
			told.Wait()
		}
	}()

	d, err := c.find(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	c.warn(d)
	return newRun(ctx, c, h, d, hooks).loop()
}

func (c *Consumer) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.standing.running {
		return false
	}
	c.standing = standing{running: true}
	return true
}

func (c *Consumer) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.standing = standing{returned: true}
}

// find resolves the queue's name, and waits until the queue is active. Without the permission to
// describe the queue, it returns a description that has only the ARN.
func (c *Consumer) find(ctx context.Context) (Description, error) {
	arn := c.options.Queue
	if !isARN(arn) {
		err := c.repeat(ctx, "find the queue", func() (err error) {
			arn, err = find(ctx, c.api, c.options.Queue)
			return err
		})
		if err != nil {
			return Description{}, err
		}
	}
	for {
		var d Description
		err := c.repeat(ctx, "describe the queue", func() (err error) {
			d, err = c.api.DescribeQueue(ctx, arn)
			return err
		})
		switch {
		case err != nil && kindOf(err) == denied:
			return Description{ARN: arn}, nil
		case err != nil && kindOf(err) == missing:
			return Description{}, fmt.Errorf("%w: %s: %w", ErrQueueNotFound, arn, err)
		case err != nil:
			return Description{}, err
		case d.Status == Deleting:
			return Description{}, fmt.Errorf("%w: %s is being deleted", ErrQueueNotFound, arn)
		case d.Status != Creating:
			d.ARN = arn
			return d, nil
		}
		if err := retry.Wait(ctx, 5*time.Second); err != nil {
			return Description{}, err
		}
	}
}

// repeat makes a call until it succeeds or fails for a reason that is not temporary.
func (c *Consumer) repeat(ctx context.Context, what string, do func() error) error {
	backoff := retry.Backoff{Low: 200 * time.Millisecond, High: 30 * time.Second}
	for {
		err := do()
		if err == nil || !kindOf(err).again() || ctx.Err() != nil {
			return err
		}
		c.failed(err, "cannot "+what+"; weir tries again")
		c.stand(func(s *standing) { s.receiveFailed(err, time.Now()) })
		if err := retry.Wait(ctx, backoff.Next()); err != nil {
			return err
		}
	}
}

// failed logs the error of a call, and refreshes credentials that were refused.
func (c *Consumer) failed(err error, text string) {
	if client, ok := c.api.(*Client); ok && kindOf(err) == stale {
		client.refresh()
	}
	c.options.Logger.Warn(text, "queue", c.options.Queue, "err", err)
}

// warn logs settings of the queue that endanger healthy records.
func (c *Consumer) warn(d Description) {
	switch a := d.Attributes; {
	case lowReceiveCount(a):
		c.options.Logger.Warn("the queue's MaxReceiveCount is low: crashes and restarts spend receives, so records without failures can become dead letters; raise it to 10 or more",
			"queue", c.options.Queue, "max_receive_count", a.MaxReceiveCount)
	case a.DeadLetters != "" && a.DeadLetters != builtIn && c.options.OnFailure.Destination == nil:
		c.options.Logger.Warn("the queue keeps no dead letters and queue.Options.OnFailure.Destination is not set: rejected records return until the stream's retention ends", "queue", c.options.Queue)
	}
}
