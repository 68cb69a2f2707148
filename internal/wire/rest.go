package wire

import (
	"cmp"
	"context"
	"errors"

	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/internal/wire/codec"
)

// Rest is the rest of an answer of which [Caller.Read] returned the first part. It holds a
// connection until it was read to its end, failed, or was closed. Not for concurrent use.
type Rest struct {
	c     *Caller
	life  *life
	a     answer
	id    string // of the request
	parts codec.Parts
	learn func(err error) // that the format is to blame
	over  bool
}

// ErrClosed is returned by [Rest.Next] after Close, an error, or the last part.
var ErrClosed = errors.New("wire: the answer was read to its end or given up")

// errHeld is why an answer is given up that holds a connection for nothing.
var errHeld = errors.New("nobody asked for the next part of the answer in time")

// Read is GetRecords, but of an answer that is larger than [Options.Window] it reads only the first
// part, and returns the rest of it; nil if p is all, and then p.Last is set. A part holds whole
// records. If a later part fails, those before stay good: reading goes on after their last record,
// with an iterator made from its number. Only CBOR comes in parts, and only where the path is
// [OwnCall]; and no more than half of [Options.MaxConns] answers at a time, so that slow readers
// leave connections to others.
//
// ctx governs the rest too, which has to be read to its end or closed.
func (c *Caller) Read(ctx context.Context, req Request, p *codec.Page) (*Rest, error) {
	p.Reset()
	l := live(ctx, &req, c.opts.Timeout, c.slow)
	l.window = cmp.Or(req.Window, c.opts.Window)
	rest, err := c.getRecords(l, &req, p)
	if err != nil {
		p.Reset()
	}
	if rest == nil {
		l.end()
		return nil, err
	}
	if err := l.next(c.opts.Timeout, errHeld); err != nil {
		rest.Close()
		p.Reset()
		return nil, operationError(l.sendError(err))
	}
	return rest, nil
}

// inParts reports whether the answer is to be read in parts, which holds a connection as long as
// the program takes.
func (c *Caller) inParts(l *life, a *answer) bool {
	if l.window == 0 || (a.length >= 0 && a.length <= int64(l.window)) || a.length > int64(c.opts.MaxBody) || a.field("Content-Type") != codec.CBORType || a.encoding() != "" {
		return false
	}
	if c.held.Add(1) > int32(max(1, c.opts.MaxConns/2)) {
		c.held.Add(-1)
		return false
	}
	return true
}

// begin reads the first part of an answer into p, and returns the rest, nil if that was all.
func (c *Caller) begin(l *life, a *answer, p *codec.Page) (*Rest, error) {
	window := l.window
	if a.length < 0 { // no more is taken than there may be
		window = min(window, c.opts.Window)
	}
	r := &Rest{
		c: c, life: l, a: *a, id: a.requestID(), learn: func(error) {},
		parts: codec.Parts{Body: a.body, Left: a.length, Window: window, Bodies: &c.bodies},
	}
	err := r.parts.Next(p)
	if err != nil || p.Last {
		r.parts.Close()
		c.held.Add(-1)
		return nil, deserialization(err)
	}
	p.RequestID = r.id
	return r, nil
}

// Next reads the next part into p, which is used again; p.Last says that it was the last. After an
// error p is empty and the rest is closed. Each part has [Options.Timeout] to arrive, and so has
// each call of Next after the one before: an answer that nobody reads is given up.
func (r *Rest) Next(p *codec.Page) error {
	p.Reset()
	if r.over {
		return ErrClosed
	}
	timeout := r.c.opts.Timeout
	err := r.life.next(timeout, r.c.slow)
	if err == nil {
		err = r.parts.Next(p)
	}
	if err == nil && !p.Last {
		err = r.life.next(timeout, errHeld)
	}
	if err == nil {
		if p.Last {
			r.Close()
		}
		p.RequestID = r.id
		return nil
	}
	p.Reset()
	r.c.strange(r.life.ep, err)
	if malformed := (*codec.MalformedError)(nil); errors.As(err, &malformed) {
		err = deserialization(err)
		r.learn(err)
	} else if r.life.over(err) {
		err = r.life.sendError(err)
	}
	err = operationError(responseError(&r.a, err))
	r.Close()
	return err
}

// Size is how many bytes the whole answer has, -1 if it did not say.
func (r *Rest) Size() int64 { return r.a.length }

// Left is how many bytes of the answer were not received yet, -1 if it did not say.
func (r *Rest) Left() int64 { return r.parts.Left }

// Close gives the rest of the answer up. Calling it again, or after the last part, does nothing.
func (r *Rest) Close() {
	if r.over {
		return
	}
	r.over = true
	r.parts.Close()
	_ = r.a.body.Close() // whatever was read is all that matters
	r.life.end()
	r.c.held.Add(-1)
}

// deserialization is what the SDK makes of an answer that cannot be read.
func deserialization(err error) error {
	if malformed := (*codec.MalformedError)(nil); errors.As(err, &malformed) {
		return &smithy.DeserializationError{Err: err}
	}
	return err
}
