package http1

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"time"
)

// Response is an answer whose head was read. The caller must close it. It is not safe for
// concurrent use.
type Response struct {
	// Status is the status code.
	Status int
	// Length is the length of the body in bytes. It is -1 if it is only known at the end.
	Length int64
	// Waited is the time from the request to the first byte of the answer.
	Waited time.Duration

	ctx     context.Context
	stop    func() bool // ends the watch over ctx; may be nil
	c       *conn       // nil after Close
	line    *Line       // gets the connection back; may be nil
	framing framing
	keep    bool
	left    int64 // remaining bytes of the body or the chunk
	begun   bool  // the first chunk has begun
	excess  int64 // unusual bytes between chunks
	err     error // the error that ended reading
}

// Field returns the value of the first field of the head with this name, ignoring case. It returns
// nil if there is none. The value is valid until Close.
func (r *Response) Field(name string) []byte {
	if r.c == nil {
		return nil
	}
	return fieldOf(r.c.buf[:r.c.head], name)
}

// Header returns a copy of all fields of the head.
func (r *Response) Header() http.Header {
	all := make(http.Header)
	if r.c == nil {
		return all
	}
	lines := bytes.Split(r.c.buf[:r.c.head], []byte("\r\n"))
	for _, line := range lines[1:] {
		if name, value, ok := bytes.Cut(line, []byte{':'}); ok {
			all.Add(string(name), string(trim(value)))
		}
	}
	return all
}

// Read reads the body. It does not copy if p is large. It returns io.EOF at the end of the body,
// and io.ErrUnexpectedEOF if the connection ends earlier. If the context ends first, it returns the
// context's cause.
func (r *Response) Read(p []byte) (int, error) {
	if r.c == nil {
		return 0, ErrClosed
	}
	if r.err != nil || len(p) == 0 {
		return 0, r.err
	}
	n, err := r.read(p)
	if err != nil {
		if errors.Is(err, io.EOF) && !r.ended() {
			err = io.ErrUnexpectedEOF
		}
		switch {
		case errors.Is(err, io.EOF):
		case r.c.late(err):
			err = because(r.ctx, r.c.bound.Why)
		default:
			err = because(r.ctx, err)
		}
		r.err = err
	}
	return n, err
}

// ended reports whether io.EOF is the end of the body. Otherwise the connection has ended too
// early.
func (r *Response) ended() bool {
	return r.framing == byClose || r.left == 0 && (r.framing == byLength || r.begun)
}

func (r *Response) read(p []byte) (int, error) {
	switch r.framing {
	case byClose:
		return r.c.some(r.ctx, p, math.MaxInt64)
	case byChunks:
		if r.left == 0 {
			if err := r.chunk(); err != nil {
				return 0, err
			}
		}
	case byLength:
		if r.left == 0 {
			return 0, io.EOF
		}
	}
	n, err := r.c.some(r.ctx, p, r.left)
	r.left -= int64(n)
	return n, err
}

// maxExcess limits the lines before chunks. In total, these lines may exceed the data of the chunks
// by this number of bytes. The first 16 bytes of each line do not count.
const maxExcess = 16 << 10

// chunk reads up to the beginning of the next chunk. It returns io.EOF at the end of the body.
func (r *Response) chunk() error {
	unexpected := func(err error) error {
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		return err
	}
	if r.begun {
		if line, err := r.c.line(r.ctx); err != nil {
			return unexpected(err)
		} else if len(line) > 0 {
			return malformed("%.40q follows a chunk", line)
		}
	}
	r.begun = true
	line, err := r.c.line(r.ctx)
	if err != nil {
		return unexpected(err)
	}
	r.excess = max(0, r.excess+int64(len(line))+2-16)
	if r.left, err = parseChunk(line); err != nil {
		return err
	}
	if r.excess -= r.left; r.excess > maxExcess {
		return malformed("the lines between the chunks are far longer than the chunks")
	}
	if r.left > 0 {
		return nil
	}
	for trailers := 0; ; {
		line, err := r.c.line(r.ctx)
		if err != nil {
			return unexpected(err)
		}
		if len(line) == 0 {
			return io.EOF
		}
		if _, _, err := parseField(line); err != nil {
			return err
		}
		if trailers += len(line); trailers > maxLine {
			return malformed("trailers of more than %d bytes", maxLine)
		}
	}
}

// Close returns the connection to the pool, or closes it if the body was not read to its end.
// Further calls do nothing. The error is always nil.
func (r *Response) Close() error {
	c := r.c
	if c == nil {
		return nil
	}
	r.c = nil
	good := r.keep && c.from == c.until && (errors.Is(r.err, io.EOF) || r.err == nil && r.framing == byLength && r.left == 0)
	if good && r.line != nil && r.line.keep(c, r.ctx, r.stop) {
		return nil
	}
	if r.stop != nil && !r.stop() {
		good = false // the context has ended, and the connection is or will be interrupted
	}
	if good {
		c.host.put(c)
	} else {
		c.host.drop(c)
	}
	return nil
}

// Until sets a new bound for the rest of the answer. It must not be called during a Read.
func (r *Response) Until(b Bound) {
	if r.c == nil {
		return
	}
	r.c.bind(time.Now(), b)
	if r.ctx.Err() != nil {
		r.c.cut() // the interruption may have been overwritten
	}
}
