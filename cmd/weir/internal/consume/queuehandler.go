package consume

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/queues"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/cmd/weir/internal/shellexec"
	"github.com/weir-go/weir/queue"
)

// queueGrace is how long a command may take to end after it was asked to end. It must be shorter
// than the time for which package queue waits for handlers after StopTimeout, which is 2 s.
const queueGrace = time.Second

// queueHandler handles the records of a queue by a command, a file or standard output.
type queueHandler struct {
	handle queueHandle

	fail  func(error) // ends the consumer
	once  sync.Once
	fatal error // the first error after which no handler can succeed
}

// handler returns the handler for the consumer.
func (h *queueHandler) handler() queue.Handler {
	return queue.BatchFunc(func(ctx context.Context, all []queue.Record) error {
		err := h.handle(ctx, all)
		if err != nil && isFatal(err) {
			h.fail(err)
		}
		return err
	})
}

// queueHandler returns the handler that the flags select.
func (o *options) queueHandler(t cli.Terminal, d *queue.Description, region string) (h *queueHandler, closeTo func() error, err error) {
	h, closeTo = &queueHandler{}, func() error { return nil }
	env := func(all []queue.Record) []string {
		vars := []string{"WEIR_QUEUE=" + d.ARN, "WEIR_STREAM=" + queues.StreamOf(streamOf(d))}
		if len(all) == 1 {
			vars = append(vars, "WEIR_RECORD="+all[0].Key())
		}
		return vars
	}
	shell := shellexec.Handler{Terminal: t, Command: o.exec, Format: o.out, Credentials: o.execCredentials, Grace: queueGrace}
	switch {
	case o.execResults.On:
		h.handle = func(ctx context.Context, all []queue.Record) error {
			return eachResult(ctx, shellexec.PerRecord{Handler: shell}, all, env(all))
		}
	case o.exec != "":
		h.handle = func(ctx context.Context, all []queue.Record) error {
			input, err := o.lines(all)
			if err != nil {
				return err
			}
			return shell.Run(ctx, input, env(all)...)
		}
	case o.lambda.used():
		h.handle, closeTo = o.queueFunction(t, region)
	case o.to.file != "":
		file, err := openAppending(o.to.file, 0)
		if err != nil {
			return nil, nil, err
		}
		closeTo = file.file.Close
		h.handle = func(ctx context.Context, all []queue.Record) error {
			lines, err := fileLines(o.out, all)
			if err != nil {
				return err
			}
			return file.write(ctx, lines)
		}
	default:
		to := newOutlet(t)
		h.handle = func(ctx context.Context, all []queue.Record) error {
			lines, err := o.lines(all)
			if err != nil {
				return err
			}
			return to.write(ctx, lines)
		}
	}
	h.handle = o.decoded(h.handle)
	return h, closeTo, nil
}

// queueHandle handles records of a queue, as a [queue.BatchFunc] does.
type queueHandle = func(context.Context, []queue.Record) error

// decoded returns a handler that passes decoded records to next. It rejects the records that cannot
// be decoded.
func (o *options) decoded(next queueHandle) queueHandle {
	if !o.decode.On() {
		return next
	}
	return func(ctx context.Context, all []queue.Record) error {
		var failed []error
		good := make([]queue.Record, 0, len(all))
		for _, r := range all {
			data, err := o.decode.Data(ctx, r.Data)
			if err != nil {
				failed = append(failed, queue.Failed(r, weir.Reject(fmt.Errorf("--decode %s: %w", &o.decode, err))))
				continue
			}
			r.Data = data
			good = append(good, r)
		}
		if len(good) > 0 {
			failed = append(failed, next(ctx, good))
		}
		return errors.Join(failed...)
	}
}

// lines returns records in the format of -o.
func (o *options) lines(all []queue.Record) (lines []byte, err error) {
	for i := range all {
		if lines, err = records.AppendQueue(lines, o.out, &all[i]); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// fileLines returns records as the lines of --to file:PATH, which are always JSON.
func fileLines(out cli.Format, all []queue.Record) ([]byte, error) {
	var lines bytes.Buffer
	for i := range all {
		r := &all[i]
		var line []byte
		var err error
		switch {
		case out == cli.FormatJSON:
			line, err = records.AppendQueue(nil, out, r)
		case utf8.Valid(r.Data) && json.Valid(r.Data):
			err = json.Compact(&lines, r.Data)
			line = []byte("\n")
		default:
			line, err = json.Marshal(map[string][]byte{"data_base64": r.Data})
			line = append(line, '\n')
		}
		if err != nil {
			return nil, err
		}
		lines.Write(line)
	}
	return lines.Bytes(), nil
}

// eachResult runs a command that reports a result for each record.
func eachResult(ctx context.Context, to shellexec.PerRecord, all []queue.Record, env []string) error {
	var input []byte
	var err error
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = all[i].Key()
		if input, err = records.AppendQueue(input, cli.FormatJSON, &all[i]); err != nil {
			return err
		}
	}
	var failed []error
	for i, err := range to.Each(ctx, input, ids, env...) {
		if err != nil {
			failed = append(failed, queue.Failed(all[i], err))
		}
	}
	return errors.Join(failed...)
}
