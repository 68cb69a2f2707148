package wire

import (
	"cmp"
	"context"
	"errors"

	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/internal/wire/codec"
)

// Rest is the rest of an answer whose first part [Caller.Read] returned. It holds a connection
// until it was read to its end, failed, or was closed. It is not safe for concurrent use.
type Rest struct {
	c     *Caller
	life  *life
	a     answer
	id    string // request ID
	parts codec.Parts
	learn func(err error) // reports an error that is due to the format
	over  bool
}

// ErrClosed is returned by [Rest.Next] after Close, an error, or the last part.
var ErrClosed = errors.New("wire: the answer was read to its end or closed")

// errHeld is the reason why an answer is closed that holds a connection without being read.
var errHeld = errors.New("the next part of the answer was not requested in time")

// Read is like GetRecords, but reads only the first part of an answer that is larger than
// [Options.Window], and returns the rest. The rest is nil if p is the whole answer. p.Last is then
// set. A part contains whole records. If a later part fails, the parts before stay valid: the
// caller continues after their last record, with an iterator made from its number. Answers come in
// parts only in CBOR and only on the path [OwnCall]. At most half of [Options.MaxConns] answers are
// read in parts at a time, so that slow readers leave connections to others.
//
// ctx also applies to the rest, which must be read to its end or closed.
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

// inParts reports whether to read the answer in parts, which holds a connection as long as the
// program takes.
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

// begin reads the first part of an answer into p, and returns the rest, or nil if that was all.
func (c *Caller) begin(l *life, a *answer, p *codec.Page) (*Rest, error) {
	window := l.window
	if a.length < 0 { // the answer may be as large as allowed
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

// Next reads the next part into p, which is reused. p.Last is set for the last part. After an error
// p is empty and the rest is closed. Each part must arrive within [Options.Timeout], and the next
// call of Next must follow within the same time: an answer that is not read is closed.
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

// Size returns the size of the whole answer in bytes, or -1 if unknown.
func (r *Rest) Size() int64 { return r.a.length }

// Left returns how many bytes of the answer were not received yet, or -1 if unknown.
func (r *Rest) Left() int64 { return r.parts.Left }

// Close abandons the rest of the answer. After the last part, or a second time, it does nothing.
func (r *Rest) Close() {
	if r.over {
		return
	}
	r.over = true
	r.parts.Close()
	_ = r.a.body.Close() // the data was read, so an error does not matter
	r.life.end()
	r.c.held.Add(-1)
}

// deserialization wraps err as the SDK does for an answer that cannot be read.
func deserialization(err error) error {
	if malformed := (*codec.MalformedError)(nil); errors.As(err, &malformed) {
		return &smithy.DeserializationError{Err: err}
	}
	return err
}
