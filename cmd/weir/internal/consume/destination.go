package consume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/peers"
	"github.com/weir-go/weir/cmd/weir/internal/shellexec"
	"github.com/weir-go/weir/sink/s3sink"
)

// toFlags selects a destination other than standard output or a command.
type toFlags struct {
	url  string
	size int
	age  time.Duration

	file           string // one of these is set after url has been parsed
	bucket, prefix string
}

// inBucket reports whether the destination is a bucket in S3.
func (f *toFlags) inBucket() bool { return strings.HasPrefix(f.url, "s3:") }

// parse parses the URL and sets its parts.
func (f *toFlags) parse() error {
	kind, rest, found := strings.Cut(f.url, ":")
	switch {
	case found && kind == "file":
		if f.file = rest; strings.TrimSpace(rest) == "" {
			return cli.Usagef("--to %q names no file: write it like file:records.ndjson", f.url)
		}
	case found && kind == "s3":
		var slashes bool
		rest, slashes = strings.CutPrefix(rest, "//")
		f.bucket, f.prefix, _ = strings.Cut(rest, "/")
		if !slashes || !awsconf.BucketForm.MatchString(f.bucket) {
			return cli.Usagef("--to %.140q names no bucket: write it like s3://my-bucket/raw", f.url)
		}
	default:
		return cli.Usagef("--to %.140q is not a destination for records: "+
			"use file:PATH or s3://BUCKET/PREFIX", f.url)
	}
	return nil
}

// destination is an open destination for the records of a worker.
type destination struct {
	run   func(context.Context, *weir.Consumer) error
	close func() error
}

// destination opens the destination that the flags select. If the destination is unusable, it
// returns an error before a stream is read.
func (o *options) destination(ctx context.Context, t cli.Terminal, region string) (destination, error) {
	lines := s3sink.Payloads
	if o.out == cli.FormatJSON {
		lines = s3sink.Envelopes
	}
	switch {
	case o.execResults.On:
		return o.handledBy(shellexec.PerRecord{Handler: shellexec.Handler{Terminal: t, Command: o.exec, Format: o.out, Credentials: o.execCredentials}}), nil
	case o.lambda.used():
		return o.byFunction(t, region)
	case o.exec != "":
		return o.handledBy(shellexec.Handler{Terminal: t, Command: o.exec, Format: o.out, Credentials: o.execCredentials}), nil
	case o.to.file != "":
		f, err := openAppending(o.to.file, lines)
		if err != nil {
			return destination{}, err
		}
		to := o.handledBy(f)
		to.close = f.file.Close
		return to, nil
	case o.to.bucket != "":
		return o.intoBucket(ctx, t, lines)
	}
	return o.handledBy(printer{newOutlet(t), o.out}), nil
}

func (o *options) handledBy(h weir.Handler) destination {
	h = o.decode.Handler(h)
	return destination{func(ctx context.Context, c *weir.Consumer) error { return c.Run(ctx, h) }, func() error { return nil }}
}

// intoBucket opens a bucket as the destination. It returns an error if the bucket cannot be
// written.
func (o *options) intoBucket(ctx context.Context, t cli.Terminal, lines s3sink.Lines) (destination, error) {
	client, err := o.aws.S3(ctx, t)
	if err != nil {
		return destination{}, err
	}
	sink, err := s3sink.New(client, o.to.bucket, s3sink.Options{Prefix: o.to.prefix, Lines: lines, MaxBytes: o.to.size, MaxAge: o.to.age})
	if err != nil {
		return destination{}, cli.Usagef("--to %.140q: %s", o.to.url, strings.NewReplacer(
			"s3sink: ", "", "Options.Prefix", "the prefix", "Options.MaxAge", "--object-age").Replace(err.Error()))
	}
	if err := peers.Persist(ctx, o.aws.Wait, o.aws.Objects, func() error { return sink.Check(ctx) }); err != nil {
		return destination{}, fmt.Errorf("bucket %s: %w", o.to.bucket, err)
	}
	return destination{func(ctx context.Context, c *weir.Consumer) error { return c.RunPull(ctx, sink.PullHandler()) }, func() error { return nil }}, nil
}

// appending is a handler that appends the records of all shards to one file.
type appending struct {
	path  string
	lines s3sink.Lines

	mu   sync.Mutex
	file *os.File
}

// openAppending opens a file, or creates one that only its owner can read and write. If the last
// line of the file is incomplete, it ends that line.
func openAppending(path string, lines s3sink.Lines) (*appending, error) {
	bad := func(err error) error {
		return fmt.Errorf("--to: the file %s cannot be written: %w", path, cli.RootError(err))
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, bad(err)
	}
	err = endLastLine(f)
	if err == nil && runtime.GOOS != "windows" { // the file may be new
		err = syncFile(filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(bad(err), f.Close())
	}
	return &appending{path: path, lines: lines, file: f}, nil
}

func endLastLine(f *os.File) error {
	i, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !i.Mode().IsRegular():
		return errors.New("it is not a regular file")
	case i.Size() == 0:
		return nil
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, i.Size()-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err = f.WriteString("\n")
	return err
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (a *appending) Handle(ctx context.Context, b *weir.Batch) error {
	var lines bytes.Buffer
	for _, r := range b.Records {
		line, err := a.lines.Append(lines.AvailableBuffer(), r)
		if err != nil {
			return weir.Stop(err)
		}
		lines.Write(line)
	}
	if len(b.Records) == 0 {
		return nil
	}
	return a.write(ctx, lines.Bytes())
}

// write appends lines to the file, and syncs it to disk.
func (a *appending) write(ctx context.Context, lines []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_, err := a.file.Write(lines)
	if err == nil {
		err = a.file.Sync()
	}
	if err == nil {
		return nil
	}
	// A part of the batch may be in the file. The disk may have room again, so end the incomplete
	// line.
	return errors.Join(fmt.Errorf("the file %s cannot be written: %w", a.path, cli.RootError(err)), endLastLine(a.file))
}
