package deadletters

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/peers"
	"github.com/weir-go/weir/cmd/weir/internal/sqlitefile"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/deadletter/kinesisletters"
	"github.com/weir-go/weir/deadletter/sqlletters"
	"github.com/weir-go/weir/deadletter/sqsletters"
	"github.com/weir-go/weir/sink/s3sink/s3letters"
)

// Letters contains an open location of dead letters.
type Letters struct {
	deadletter.Destination
	Place    Place
	Box      deadletter.Box    // lists and marks dead letters; nil if the location cannot
	Table    *sqlletters.Box   // Box, if the location is a table
	one      string            // words for a dead letter in this location, for example "a line of a file"
	Queue    *sqsletters.Queue // set if the location is a queue, which has no Box
	Unmarked bool              // the location cannot keep marks, so Box ignores them
	sqs      *sqs.Client       // for a queue
	s3       *s3.Client        // for a bucket
	peer     *peers.Peer       // nil if the location is not a service

	Readable, Writable func(context.Context) error // check that dead letters can be read or written; nil if there is nothing to check
	close              func() error
}

// Close closes the location.
func (o *Letters) Close() error {
	if o.close == nil {
		return nil
	}
	return o.close()
}

// Open opens a location without calling a service; use Check to call it. If make is true, Open may
// create a file. sources are the streams of the dead letters to be written, if any.
func (p Place) Open(ctx context.Context, t cli.Terminal, f *awsconf.Flags, make bool, sources ...string) (Letters, error) {
	o := Letters{Place: p, one: "dead letter"}
	switch p.Kind {
	case File:
		o.one = "line"
		o.Box = deadletter.File(p.name)
		o.Readable = func(context.Context) error { return p.existingFile() }
		o.Writable = func(context.Context) error { return p.writableFile(make) }
	case SQLite:
		file, err := sqlitefile.OpenLetters(ctx, p.name, make)
		if err != nil {
			return o, err
		}
		o.inTable(file.Box, file.Close)
	case Server:
		server, err := p.server.Letters()
		if err != nil {
			return o, cli.Usagef("--dead: %s", explain.Parameters.Replace(explain.OneLine(err.Error())))
		}
		o.peer = f.Peer(ctx, "the place of dead letters "+p.String())
		o.inTable(server.Box, server.Close)
	case Stream:
		own := *f // the stream that the worker reads needs a client of its own
		own.Reads, own.HTTP2 = false, false
		client, err := own.Kinesis(ctx, t)
		if err != nil {
			return o, err
		}
		letters, err := kinesisletters.New(client, p.name)
		if err != nil {
			return o, err
		}
		o.one, o.Unmarked = "record", true
		o.peer, o.Box = own.Service, unmarked{letters}
		o.Readable = func(ctx context.Context) error { return own.Greet(ctx, client, p.name) }
		o.Writable = func(ctx context.Context) error { return letters.Check(ctx, sources...) }
	case Queue:
		client, err := f.SQS(ctx, t, p.name)
		if err != nil {
			return o, err
		}
		if o.Queue, err = sqsletters.New(client, p.name); err != nil {
			return o, err
		}
		o.peer, o.sqs, o.Destination = f.Queues, client, o.Queue
		o.Readable = func(ctx context.Context) error {
			_, err := o.Queue.About(ctx)
			return err
		}
		o.Writable = o.Queue.Check
		return o, nil
	case S3:
		client, err := f.S3(ctx, t)
		if err != nil {
			return o, err
		}
		box, err := s3letters.New(client, p.bucket, p.prefix)
		if err != nil {
			return o, cli.Usagef("--dead %s: %s", p, strings.TrimPrefix(err.Error(), "s3letters: "))
		}
		o.peer, o.s3, o.Box, o.Readable, o.Writable = f.Objects, client, box, box.Readable, box.Writable
	}
	o.Destination = o.Box
	return o, nil
}

func (o *Letters) inTable(box *sqlletters.Box, close func() error) {
	o.Table, o.Box, o.close, o.Readable, o.Writable = box, box, close, box.Readable, box.Writable
}

// Check calls look, which checks whether dead letters can be read or written. It returns look's
// error in words for users.
func (o *Letters) Check(ctx context.Context, wait bool, look func(context.Context) error) error {
	if look == nil {
		return nil
	}
	ask := func() error { return look(ctx) }
	if o.peer != nil && o.Place.Kind == Server {
		ask = func() error { return o.peer.Ask(ctx, look) }
	}
	return o.trouble(peers.Persist(ctx, wait, o.peer, ask))
}

// trouble explains an error of the location in the terms of the command line.
func (o *Letters) trouble(err error) error {
	var dns *net.DNSError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kinesisletters.ErrSource):
		return cli.Usagef("--dead %s: dead letters cannot go to a stream that is read (--stream): each would be read, fail, and be dead-lettered there again; name another stream", o.Place)
	case errors.Is(err, sqlletters.ErrNoTable):
		return explain.PlainError{Text: fmt.Sprintf("there is no table for dead letters in %s that this user may see: make it once, with \"weir dead create --dead %s\"", o.Place, o.Place), Cause: err}
	case o.Place.Kind == Server && errors.Is(err, syscall.ECONNREFUSED):
		return explain.PlainError{Text: fmt.Sprintf("nothing answers%s, where the dead letters should be (%s): is the server running, and is --dead right?", explain.AddressOf(err), o.Place), Cause: err}
	case o.Place.Kind == Server && errors.As(err, &dns):
		return explain.PlainError{Text: fmt.Sprintf("the host %s, where the dead letters should be, cannot be found: check --dead", dns.Name), Cause: err}
	case o.Place.Kind == File:
		return err
	}
	return fmt.Errorf("--dead %s: %w", o.Place, err)
}

// existingFile returns an error if the file of dead letters does not exist.
func (p Place) existingFile() error {
	if _, err := os.Stat(p.name); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no file %s: is --dead right, and has any record been dead-lettered yet?", p.name)
	}
	return nil
}

// writableFile returns an error if the file of dead letters cannot be written. Unless make is true,
// a missing file is an error.
func (p Place) writableFile(make bool) error {
	if !make {
		if err := p.existingFile(); err != nil {
			return err
		}
	}
	file, err := os.OpenFile(p.name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return fmt.Errorf("--dead: the file %s cannot be written: %w", p.name, cli.RootError(err))
	}
	return nil
}

// unmarked is a box for dead letters in a stream, which cannot keep marks.
type unmarked struct{ *kinesisletters.Stream }

// Mark does nothing.
func (unmarked) Mark(context.Context, deadletter.State, ...string) error { return nil }

// InLambdasForm makes the destination write dead letters in Lambda's format.
func (o *Letters) InLambdasForm(form func() (deadletter.Lambda, error)) error {
	of, err := form()
	if err != nil {
		return err
	}
	if o.Place.Kind == Queue {
		to, err := sqsletters.NewLambda(o.sqs, o.Place.name, of)
		if err == nil {
			o.Destination, o.Writable = to, to.Check
		}
		return err
	}
	to, err := s3letters.NewLambda(o.s3, o.Place.bucket, o.Place.prefix, of)
	if err == nil {
		o.Destination, o.Writable = to, to.Writable
	}
	return err
}

// Unreadable returns an error if n dead letters could not be read. It returns nil if n is 0.
func (o *Letters) Unreadable(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%s could not be read", cli.Count(n, o.one))
}
