package wire

import (
	"cmp"
	"context"
	"errors"

	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/internal/wire/codec"
)

// Rest is the unread part of an answer after [Caller.Read]. It holds a connection until the end of
// the answer, an error, or Close. It is not safe for concurrent use.
type Rest struct {
	c     *Caller
	life  *life
	a     answer
	id    string // request ID
	parts codec.Parts
	learn func(err error) // reports an error that concerns the format
	over  bool
}

// ErrClosed is returned by [Rest.Next] after Close, an error, or the last part. [Subscription.Next]
// returns it after Stop, Close or an error.
var ErrClosed = errors.New("wire: the answer was read to its end or closed")

// errHeld is the cause if an answer is closed because it held a connection without being read.
var errHeld = errors.New("the next part of the answer was not requested in time")

// Read is like GetRecords, but it may return only the first part of an answer in p. It does so if
// the answer is larger than [Options.Window] or [Request.Window], or has an unknown length. The
// returned Rest then reads the other parts. If p contains the whole answer, the Rest is nil and
// p.Last is set.
//
// Parts consist of whole records. If a later part fails, the earlier parts stay valid. The caller
// then continues after their last record, with a new iterator for its sequence number.
//
// Answers are read in parts only in CBOR and on the path [OwnCall]. At most half of
// [Options.MaxConns] answers are read in parts at a time, so that slow readers leave connections to
// other calls. ctx also applies to the Rest, which must be read to its end or closed.
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

// inParts reports whether to read the answer in parts. Such an answer occupies a connection until
// the program has taken the last part.
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

// begin reads the first part of an answer into p. It returns the Rest, or nil if p contains the
// whole answer.
func (c *Caller) begin(l *life, a *answer, p *codec.Page) (*Rest, error) {
	window := l.window
	if a.length < 0 { // the answer may have any allowed size
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

// Next reads the next part into p, which it reuses. p.Last is set for the last part. After an error
// p is empty and the Rest is closed. Each part must arrive within [Options.Timeout]. The next call
// of Next must follow within the same time, otherwise the answer is closed.
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

// Left returns the number of bytes of the answer that are still to be received, or -1 if unknown.
func (r *Rest) Left() int64 { return r.parts.Left }

// Close abandons the rest of the answer. It does nothing after the last part or if it was called
// before.
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

// deserialization wraps err in the SDK's error type for an answer that cannot be read.
func deserialization(err error) error {
	if malformed := (*codec.MalformedError)(nil); errors.As(err, &malformed) {
		return &smithy.DeserializationError{Err: err}
	}
	return err
}
