package consume

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/peers"
	"github.com/weir-go/weir/cmd/weir/internal/queues"
	"github.com/weir-go/weir/cmd/weir/internal/shellexec"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/emfweir"
	"github.com/weir-go/weir/promweir"
	"github.com/weir-go/weir/queue"
)

// runQueue consumes a queue until ctx ends.
func (o *options) runQueue(ctx context.Context, t cli.Terminal, qo queue.Options) (err error) {
	handler := o.log.Handler(t.Err)
	if o.log == cli.LogJSON {
		cli.SpeakThrough(t, handler, o.app, o.worker)
	}
	client, cfg, err := o.aws.KinesisQueues(ctx, t)
	if err != nil {
		return err
	}
	log := slog.New(handler)
	qo.Logger = log
	tale := &queueStory{}
	qo.Events.Handled = tale.handled
	var told *promweir.QueueMetrics
	if o.metrics.addr != "" {
		told = promweir.NewQueue(&qo)
	}
	var lines *emfweir.QueueMetrics
	if o.metrics.emf.to != "" {
		if lines, err = o.metrics.emf.observeQueue(&qo); err != nil {
			return err
		}
	}
	trial, err := queue.New(cfg, qo) // validate the options before a file is created
	if err != nil {
		return cli.Usage(explain.InFlags(err))
	}
	var healthy atomic.Pointer[queue.Consumer]
	healthy.Store(trial) // while the queue is looked up: alive, but not ready
	stop, err := observers{o.health, o.metrics.addr, told}.serve(ctx, t, func() checked { return healthy.Load() })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var d queue.Description
	err = peers.Persist(ctx, o.aws.Wait, o.aws.Service, func() (err error) {
		d, err = queues.Find(ctx, client, o.queue.name)
		return err
	})
	if err != nil {
		return err
	}
	form := func() (deadletter.Lambda, error) { return deadletter.Lambda{}, nil } // the format is refused
	if err := o.failures.open(ctx, t, &o.aws, []string{queues.StreamOf(streamOf(&d))}, form); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.failures.letters.Close()) }()
	if o.failures.place.Kind != "" {
		qo.OnFailure.Destination = &o.failures.letters
	}
	to, closeTo, err := o.queueHandler(t, &d, cfg.Region)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeTo()) }()

	consumer, err := queue.New(cfg, qo)
	if err != nil {
		return cli.Usage(explain.InFlags(err))
	}
	healthy.Store(consumer)
	if told != nil {
		told.Watch(consumer)
	}
	if lines != nil {
		lines.Watch(consumer)
		var written func() error
		if written, err = o.metrics.emf.write(ctx, t, lines); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, written()) }()
	}
	tale.log = log.With("worker", o.worker, "queue", d.Name)
	cli.SpeakThrough(t, handler, o.app, o.worker) // earlier messages are for the person who started the consumer
	tale.log.Info("the consumer starts", "version", cli.ThisBuild().Version, "arn", d.ARN, "flags", o.given)
	err = runUntilFatal(ctx, func(ctx context.Context) error { return tale.run(ctx, consumer, to.handler()) }, to)
	return queueEnded(t, err)
}

func streamOf(d *queue.Description) string {
	if len(d.Streams) == 0 {
		return ""
	}
	return d.Streams[0].StreamARN
}

// runUntilFatal calls run, and ends its context if the handler can never succeed again.
func runUntilFatal(ctx context.Context, run func(context.Context) error, to *queueHandler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	to.fail = func(err error) {
		to.once.Do(func() { to.fatal = err })
		cancel()
	}
	err := run(ctx)
	// Run has returned, and fatal is set before its context ends. A handler that was abandoned may
	// still set it.
	to.once.Do(func() {})
	return errors.Join(to.fatal, err)
}

// queueEnded returns the error of the command after its consumer has returned err.
func queueEnded(t cli.Terminal, err error) error {
	if errors.Is(err, syscall.EPIPE) {
		t.Note("standard output was closed, so the consumer stopped; records that were not read from it will be delivered again")
		if errors.Is(err, queue.ErrNotAcknowledged) || errors.Is(err, weir.ErrAbandoned) {
			return err
		}
		return nil
	}
	return err
}

// isFatal reports whether a handler can never succeed after this error.
func isFatal(err error) bool {
	return errors.Is(err, errOutput) || errors.Is(err, shellexec.ErrNotRun)
}

// countsEvery is the interval between two lines of the log about what a consumer did.
const countsEvery = time.Minute

// failuresEvery is the shortest time between two lines about failed calls of a handler.
const failuresEvery = 5 * time.Second

// queueStory logs what a consumer of a queue does.
type queueStory struct {
	log *slog.Logger

	mu     sync.Mutex
	failed int // calls since the last line
	last   time.Time
}

// run runs the consumer, and logs its counts once a minute and at the end.
func (s *queueStory) run(ctx context.Context, c *queue.Consumer, h queue.Handler) error {
	ended := make(chan struct{})
	var logging sync.WaitGroup
	logging.Go(func() {
		tick := time.NewTicker(countsEvery)
		defer tick.Stop()
		var before queue.Counts
		for {
			select {
			case <-tick.C:
				now := c.Counts()
				if now.Received != before.Received || now.Handled != before.Handled || now.Failed != before.Failed {
					s.counts("the consumer works", now)
				}
				before = now
			case <-ended:
				return
			}
		}
	})
	err := c.Run(ctx, h)
	close(ended)
	logging.Wait()
	s.counts("the consumer has ended", c.Counts())
	return err
}

func (s *queueStory) counts(text string, c queue.Counts) {
	s.log.Info(text, "received", c.Received, "handled", c.Handled, "failed", c.Failed, "acknowledged", c.Acknowledged,
		"set_aside", c.SetAside, "released", c.Released, "holds_lost", c.HoldsLost, "receives_spent", c.Spent, "in_flight", c.InFlight)
}

// handled logs a failed call, with the number of failed calls that were not logged.
func (s *queueStory) handled(_ context.Context, e queue.Handled) {
	if e.Err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed++
	if time.Since(s.last) < failuresEvery {
		return
	}
	s.log.Warn("records failed; they are handled again", "records", e.Failed, "failed_calls", s.failed, "err", e.Err)
	s.failed, s.last = 0, time.Now()
}
