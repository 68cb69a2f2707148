package main

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

// openLetters are the letters at a place.
type openLetters struct {
	deadletter.Destination
	place    letterPlace
	box      deadletter.Box    // whose letters can be listed and marked
	table    *sqlletters.Box   // the box, if it is a table
	one      string            // what a letter is there, for people: a line of a file, say
	queue    *sqsletters.Queue // the letters, if they are in a queue, which has no box
	unmarked bool              // the place keeps no marks, so box only takes them
	sqs      *sqs.Client       // of a queue
	s3       *s3.Client        // of a bucket
	peer     *peers.Peer       // nil where there is no service

	readable, writable func(context.Context) error // nil if a place has nothing to find out
	close              func() error
}

// Close lets go of the place.
func (o *openLetters) Close() error {
	if o.close == nil {
		return nil
	}
	return o.close()
}

// open opens a place. It makes no call to a service: check does. make says that a file may be made;
// sources are the streams that the letters are about, if they are to be put.
func (p letterPlace) open(ctx context.Context, t cli.Terminal, f *awsFlags, make bool, sources ...string) (openLetters, error) {
	o := openLetters{place: p, one: "letter"}
	switch p.kind {
	case placeFile:
		o.one = "line"
		o.box = deadletter.File(p.name)
		o.readable = func(context.Context) error { return p.existingFile() }
		o.writable = func(context.Context) error { return p.writableFile(make) }
	case placeSQLite:
		file, err := sqlitefile.OpenLetters(ctx, p.name, make)
		if err != nil {
			return o, err
		}
		o.inTable(file.Box, file.Close)
	case placeServer:
		server, err := p.server.Letters()
		if err != nil {
			return o, cli.Usagef("--dead: %s", explain.Parameters.Replace(explain.OneLine(err.Error())))
		}
		o.peer = f.peer(ctx, "the letters' place "+p.String())
		o.inTable(server.Box, server.Close)
	case placeStream:
		own := *f // the client of the stream that is read is another
		own.reads, own.http2 = false, false
		client, err := own.kinesis(ctx, t)
		if err != nil {
			return o, err
		}
		letters, err := kinesisletters.New(client, p.name)
		if err != nil {
			return o, err
		}
		o.one, o.unmarked = "record", true
		o.peer, o.box = own.service, unmarked{letters}
		o.readable = func(ctx context.Context) error { return own.greet(ctx, client, p.name) }
		o.writable = func(ctx context.Context) error { return letters.Check(ctx, sources...) }
	case placeQueue:
		client, err := f.sqs(ctx, t, p.name)
		if err != nil {
			return o, err
		}
		if o.queue, err = sqsletters.New(client, p.name); err != nil {
			return o, err
		}
		o.peer, o.sqs, o.Destination = f.queues, client, o.queue
		o.readable = func(ctx context.Context) error {
			_, err := o.queue.About(ctx)
			return err
		}
		o.writable = o.queue.Check
		return o, nil
	case placeS3:
		client, err := f.s3(ctx, t)
		if err != nil {
			return o, err
		}
		box, err := s3letters.New(client, p.bucket, p.prefix)
		if err != nil {
			return o, cli.Usagef("--dead %s: %s", p, strings.TrimPrefix(err.Error(), "s3letters: "))
		}
		o.peer, o.s3, o.box, o.readable, o.writable = f.objects, client, box, box.Readable, box.Writable
	}
	o.Destination = o.box
	return o, nil
}

func (o *openLetters) inTable(box *sqlletters.Box, close func() error) {
	o.table, o.box, o.close, o.readable, o.writable = box, box, close, box.Readable, box.Writable
}

// check finds out whether letters can be read or written there, in words for people.
func (o *openLetters) check(ctx context.Context, wait bool, look func(context.Context) error) error {
	if look == nil {
		return nil
	}
	ask := func() error { return look(ctx) }
	if o.peer != nil && o.place.kind == placeServer {
		ask = func() error { return o.peer.Ask(ctx, look) }
	}
	return o.trouble(peers.Persist(ctx, wait, o.peer, ask))
}

// trouble puts an error of the place in the words of this command.
func (o *openLetters) trouble(err error) error {
	var dns *net.DNSError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kinesisletters.ErrSource):
		return cli.Usagef("--dead %s: letters cannot go to a stream that is read (--stream): they would be read, fail, and be put there again", o.place)
	case errors.Is(err, sqlletters.ErrNoTable):
		return explain.PlainError{Text: fmt.Sprintf("there is no table for letters in %s that this user may see: make it once, with \"weir dead create --dead %s\"", o.place, o.place), Cause: err}
	case o.place.kind == placeServer && errors.Is(err, syscall.ECONNREFUSED):
		return explain.PlainError{Text: fmt.Sprintf("nothing answers%s, where the letters should be (%s): is the server running, and is --dead right?", explain.AddressOf(err), o.place), Cause: err}
	case o.place.kind == placeServer && errors.As(err, &dns):
		return explain.PlainError{Text: fmt.Sprintf("the host %s, where the letters should be, cannot be found: check --dead", dns.Name), Cause: err}
	case o.place.kind == placeFile:
		return err
	}
	return fmt.Errorf("--dead %s: %w", o.place, err)
}

// existingFile is the error of a file of letters that is not there.
func (p letterPlace) existingFile() error {
	if _, err := os.Stat(p.name); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no file %s: is --dead right, and was anything given up yet?", p.name)
	}
	return nil
}

// writableFile is the error of a file of letters that cannot be written.
func (p letterPlace) writableFile(make bool) error {
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

// unmarked are letters in a stream, as a box that keeps no marks.
type unmarked struct{ *kinesisletters.Stream }

// Mark forgets what became of letters.
func (unmarked) Mark(context.Context, deadletter.State, ...string) error { return nil }

// inLambdasForm has letters written in Lambda's form.
func (o *openLetters) inLambdasForm(form func() (deadletter.Lambda, error)) error {
	of, err := form()
	if err != nil {
		return err
	}
	if o.place.kind == placeQueue {
		to, err := sqsletters.NewLambda(o.sqs, o.place.name, of)
		if err == nil {
			o.Destination, o.writable = to, to.Check
		}
		return err
	}
	to, err := s3letters.NewLambda(o.s3, o.place.bucket, o.place.prefix, of)
	if err == nil {
		o.Destination, o.writable = to, to.Writable
	}
	return err
}

// unreadable is the error of a command that could not read all.
func (o *openLetters) unreadable(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%s could not be read", cli.Count(n, o.one))
}
