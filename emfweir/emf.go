// Package emfweir writes what a consumer does as lines of CloudWatch's embedded metric format:
// CloudWatch Logs makes metrics of lines that reach it, with no call to CloudWatch and no rights.
//
//	metrics, err := emfweir.New(&options, emfweir.Config{ByShard: true}) // has options.Events observed
//	consumer, err := weir.New(client, store, options)
//	...
//	metrics.Watch(consumer)
//	go metrics.Run(ctx, os.Stderr)
//
// Names and dimensions are those of the Java KCL where they mean the same, so that its dashboards
// and alarms go on to work. Keys and sequence numbers are in no line.
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

// Config is how [New] makes [Metrics]. The zero Config is useful.
type Config struct {
	// Namespace is CloudWatch's, of up to 255 characters. "", the default, is Options.App, as with
	// the KCL.
	Namespace string
	// Every is how often lines are written, 1 s to an hour. 0, the default, is a minute, which is
	// CloudWatch's resolution.
	Every time.Duration
	// ByShard has a line for each shard, with ShardId as a dimension, and WorkerIdentifier as one
	// of what is the worker's if Options.Worker is set, as the KCL has them. CloudWatch charges for
	// each metric and set of dimensions, so without it there is a line for each stream.
	ByShard bool
}

// Metrics are the metrics of one consumer. Its methods may be called concurrently.
type Metrics struct {
	namespace, worker string
	every             time.Duration
	byShard, byStream bool // which dimensions there are
	consumer          atomic.Pointer[weir.Consumer]

	mu          sync.Mutex
	shards      map[shardKey]*counts // what happened since the last lines
	taken, lost int
}

type shardKey struct{ stream, shard string }

var namespaces = regexp.MustCompile(`^[0-9A-Za-z._/#: -]{1,255}$`)

// New makes the metrics of the consumer that is made with options, and adds to options.Events what
// they need; what is set there already is called after it. Call it before [weir.New], and
// [Metrics.Watch] after. An error says which field of Config is wrong, or that Options.App cannot
// be the namespace.
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

// Watch has m tell about the shards of a consumer that was made with its options. A consumer that
// is made in its place later takes the place.
func (m *Metrics) Watch(c *weir.Consumer) { m.consumer.Store(c) }

// Run writes lines to w, each with one call of Write, until ctx ends, and then those of what is
// left. The first error of w ends it.
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

// write writes what happened since it was called last.
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
