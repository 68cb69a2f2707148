// Package emfweir writes the metrics of a consumer as log lines in CloudWatch's embedded metric
// format (EMF). CloudWatch Logs extracts the metrics from the lines. The program makes no calls to
// CloudWatch and needs no permissions for it.
//
//	metrics, err := emfweir.New(&options, emfweir.Config{ByShard: true}) // adds to options.OnEvent
//	consumer, err := weir.New(client, store, options)
//	...
//	metrics.Watch(consumer)
//	go metrics.Run(ctx, os.Stderr)
//
// [NewQueue] does the same for a consumer of a queue.
//
// Metrics that mean the same as a metric of the Java KCL have its name and dimensions. Dashboards
// and alarms for the KCL therefore keep working. The lines contain no partition keys and no
// sequence numbers.
package emfweir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/event"
)

// Config configures [New] and [NewQueue]. The zero value is a useful configuration.
type Config struct {
	// Namespace is the CloudWatch namespace, with up to 255 characters. The default is Options.App,
	// as in the KCL.
	Namespace string
	// Every is the interval between lines, from 1 s to an hour. The default is a minute, which is
	// CloudWatch's resolution.
	Every time.Duration
	// ByShard writes a line for each shard, with the dimension ShardId. Without ByShard, there is
	// one line for each stream. If Options.Worker is set, ByShard also adds the dimension
	// WorkerIdentifier to the worker's own metrics, as the KCL does. CloudWatch charges for each
	// combination of a metric and its dimensions.
	ByShard bool
}

// Metrics collects the metrics of one consumer. It is safe for concurrent use.
type Metrics struct {
	namespace, worker string
	every             time.Duration
	byShard, byStream bool // which dimensions the lines have
	consumer          atomic.Pointer[weir.Consumer]

	mu          sync.Mutex
	shards      map[shardKey]*counts // counted events since the last lines
	taken, lost int
}

type shardKey struct{ stream, shard string }

var namespaces = regexp.MustCompile(`^[0-9A-Za-z._/#: -]{1,255}$`)

// New returns metrics for a consumer with the given options. New replaces options.OnEvent by a
// function that updates the metrics, and then calls the previous function if there is one. Call New
// before [weir.New], and [Metrics.Watch] after it. The error names an invalid field of Config, or
// says that Options.App cannot be the namespace.
func New(options *weir.Options, c Config) (*Metrics, error) {
	if err := c.complete(options.App); err != nil {
		return nil, err
	}
	m := &Metrics{
		namespace: c.Namespace, worker: options.Worker, every: c.Every, byShard: c.ByShard,
		byStream: len(options.Streams) > 1 || options.DiscoverStreams != nil, shards: map[shardKey]*counts{},
	}
	options.OnEvent = event.Join(m.onEvent, options.OnEvent)
	return m, nil
}

// complete sets the defaults and checks the values. app is the default of the namespace.
func (c *Config) complete(app string) error {
	var errs []error
	if c.Namespace == "" {
		c.Namespace = app
	}
	if !namespaces.MatchString(c.Namespace) || strings.HasPrefix(c.Namespace, ":") || strings.HasPrefix(c.Namespace, "AWS/") || strings.TrimSpace(c.Namespace) == "" {
		errs = append(errs, fmt.Errorf("emfweir: Namespace %q: CloudWatch takes 1 to 255 letters, digits, spaces and ._-/#:, not with : or AWS/ at the beginning", c.Namespace))
	}
	if c.Every == 0 {
		c.Every = time.Minute
	}
	if c.Every < time.Second || c.Every > time.Hour {
		errs = append(errs, fmt.Errorf("emfweir: Every %v: want 1s to 1h", c.Every))
	}
	return errors.Join(errs...)
}

// Watch adds the shards of c to the metrics. c must be created with the options that were passed to
// New. A later call replaces the consumer.
func (m *Metrics) Watch(c *weir.Consumer) { m.consumer.Store(c) }

// Run writes lines to w until ctx ends, and then writes the remaining lines. It writes each line
// with one call of Write. It stops at the first error of w.
func (m *Metrics) Run(ctx context.Context, w io.Writer) error {
	return runEvery(ctx, m.every, func() error { return m.write(w) })
}

// runEvery calls write after each interval until ctx ends, and then once more. It stops at the
// first error of write.
func runEvery(ctx context.Context, every time.Duration, write func() error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := write(); err != nil {
				return err
			}
		case <-ctx.Done():
			return write()
		}
	}
}

// write writes lines for the events since its last call.
func (m *Metrics) write(w io.Writer) error {
	var held []weir.ShardStatus
	if c := m.consumer.Load(); c != nil {
		held = c.Shards()
	}
	return writeLines(w, m.namespace, m.lines(held))
}

// writeLines writes each line with one call of Write.
func writeLines(w io.Writer, namespace string, lines []line) error {
	now := time.Now()
	for _, line := range lines {
		text, err := line.encode(namespace, now)
		if err != nil {
			return fmt.Errorf("emfweir: %w", err)
		}
		if _, err := w.Write(text); err != nil {
			return fmt.Errorf("emfweir: %w", err)
		}
	}
	return nil
}
