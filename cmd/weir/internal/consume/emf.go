package consume

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/emfweir"
	"github.com/weir-go/weir/queue"
)

// emfFlags selects where a worker writes metrics in CloudWatch's embedded metric format (EMF).
type emfFlags struct {
	to        string // stderr, or file: and a path; "" for no output
	namespace string
}

const emfFile = "file:"

// valid reports whether the destination has a known form.
func (f *emfFlags) valid() bool {
	return f.to == "stderr" || strings.HasPrefix(f.to, emfFile) && f.to != emfFile
}

// observe adds metrics to the options of a consumer. Call it before the consumer is created.
func (f *emfFlags) observe(options *weir.Options, shards bool) (*emfweir.Metrics, error) {
	m, err := emfweir.New(options, emfweir.Config{Namespace: f.namespace, ByShard: shards})
	return m, f.explain(err)
}

// observeQueue does the same for a consumer of a queue.
func (f *emfFlags) observeQueue(options *queue.Options) (*emfweir.QueueMetrics, error) {
	m, err := emfweir.NewQueue(options, emfweir.Config{Namespace: f.namespace})
	return m, f.explain(err)
}

// explain returns the error of package emfweir in terms of the flags.
func (f *emfFlags) explain(err error) error {
	if err == nil {
		return nil
	}
	flag := "--metrics-namespace"
	if f.namespace == "" {
		flag = "--app is the CloudWatch namespace unless --metrics-namespace is set"
	}
	return cli.Usagef("%s: %s", flag, strings.TrimPrefix(err.Error(), "emfweir: "))
}

// lines writes lines of metrics.
type lines interface {
	Run(ctx context.Context, w io.Writer) error
}

// write writes the metrics until stop is called. stop waits for the last lines, but at most five
// seconds.
func (f *emfFlags) write(ctx context.Context, t cli.Terminal, m lines) (stop func() error, err error) {
	to := &emfWriter{Writer: t.Err, t: t}
	closing := func() error { return nil }
	if path, is := strings.CutPrefix(f.to, emfFile); is {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("--metrics-emf: %w", err)
		}
		to.Writer, closing = file, file.Close
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx, to) }() // ends after cancel, unless a write hangs
	return func() error {
		cancel()
		hangs := time.NewTimer(5 * time.Second)
		defer hangs.Stop()
		select {
		case err := <-ended:
			return errors.Join(err, closing())
		case <-hangs.C:
			return nil // a slow reader of standard error must not delay the worker
		}
	}, nil
}

// emfWriter writes lines of metrics. If a write fails, it drops the line. It returns no error, so
// that the worker continues without metrics. It logs only the first of consecutive failures.
type emfWriter struct {
	io.Writer
	t       cli.Terminal
	failing bool
}

func (w *emfWriter) Write(p []byte) (int, error) {
	_, err := w.Writer.Write(p)
	if err != nil && !w.failing {
		w.t.Note("--metrics-emf: lines are lost: %v", err)
	}
	w.failing = err != nil
	return len(p), nil
}
