// Package emfweir writes metrics of a consumer as lines of CloudWatch's embedded metric format.
// CloudWatch Logs extracts the metrics from the lines, without calls to CloudWatch and without
// permissions.
//
//	metrics, err := emfweir.New(&options, emfweir.Config{ByShard: true}) // wraps options.Events
//	consumer, err := weir.New(client, store, options)
//	...
//	metrics.Watch(consumer)
//	go metrics.Run(ctx, os.Stderr)
//
// Names and dimensions are those of the Java KCL if they mean the same, so that its dashboards and
// alarms keep working. Keys and sequence numbers are in no line.
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
)

// Config configures [New]. The zero Config is useful.
type Config struct {
	// Namespace is the CloudWatch namespace, of up to 255 characters. Defaults to Options.App, as
	// in the KCL.
	Namespace string
	// Every is the interval between lines, 1 s to an hour. Defaults to a minute, which is
	// CloudWatch's resolution.
	Every time.Duration
	// ByShard writes a line for each shard, with the dimension ShardId. It also adds
	// WorkerIdentifier to the worker's own metrics if Options.Worker is set, as the KCL does.
	// CloudWatch charges for each metric and set of dimensions. Without ByShard there is a line for
	// each stream.
	ByShard bool
}

// Metrics collects the metrics of one consumer. It is safe for concurrent use.
type Metrics struct {
	namespace, worker string
	every             time.Duration
	byShard, byStream bool // which dimensions are used
	consumer          atomic.Pointer[weir.Consumer]

	mu          sync.Mutex
	shards      map[shardKey]*counts // events since the last lines
	taken, lost int
}

type shardKey struct{ stream, shard string }

var namespaces = regexp.MustCompile(`^[0-9A-Za-z._/#: -]{1,255}$`)

// New returns metrics for a consumer with the given options. It wraps options.Events; functions
// that are already set are called afterwards. Call it before [weir.New], and [Metrics.Watch] after
// it. The error names an invalid field of Config, or reports that Options.App cannot be the
// namespace.
func New(options *weir.Options, c Config) (*Metrics, error) {
	m := &Metrics{
		namespace: c.Namespace, worker: options.Worker, every: c.Every, byShard: c.ByShard,
		byStream: len(options.Streams) > 1 || options.StreamsFunc != nil, shards: map[shardKey]*counts{},
	}
	var errs []error
	if m.namespace == "" {
		m.namespace = options.App
	}
	if !namespaces.MatchString(m.namespace) || strings.HasPrefix(m.namespace, ":") || strings.HasPrefix(m.namespace, "AWS/") || strings.TrimSpace(m.namespace) == "" {
		errs = append(errs, fmt.Errorf("emfweir: Namespace %q: CloudWatch takes 1 to 255 letters, digits, spaces and ._-/#:, not with : or AWS/ at the beginning", m.namespace))
	}
	if m.every == 0 {
		m.every = time.Minute
	}
	if m.every < time.Second || m.every > time.Hour {
		errs = append(errs, fmt.Errorf("emfweir: Every %v: want 1s to 1h", c.Every))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	options.Events = m.observe(options.Events)
	return m, nil
}

// Watch reports the shards of c, a consumer created with the same options. A later call replaces
// the consumer.
func (m *Metrics) Watch(c *weir.Consumer) { m.consumer.Store(c) }

// Run writes lines to w, each with one Write call, until ctx ends, and then the remaining ones. It
// stops at the first error of w.
func (m *Metrics) Run(ctx context.Context, w io.Writer) error {
	ticker := time.NewTicker(m.every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := m.write(w); err != nil {
				return err
			}
		case <-ctx.Done():
			return m.write(w)
		}
	}
}

// write writes the events since its last call.
func (m *Metrics) write(w io.Writer) error {
	var held []weir.ShardStatus
	if c := m.consumer.Load(); c != nil {
		held = c.Shards()
	}
	now := time.Now()
	for _, line := range m.lines(held) {
		text, err := line.encode(m.namespace, now)
		if err != nil {
			return fmt.Errorf("emfweir: %w", err)
		}
		if _, err := w.Write(text); err != nil {
			return fmt.Errorf("emfweir: %w", err)
		}
	}
	return nil
}
