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

// Response is an answer whose head was read. It has to be closed. Not for concurrent use.
type Response struct {
	// Status is the three digits.
	Status int
	// Length of the body in bytes; -1 when only its end will tell.
	Length int64
	// Waited is how long it took from when the request was sent until the first byte of the answer
	// was read.
	Waited time.Duration

	ctx     context.Context
	stop    func() bool // the watch over ctx; may be nil
	c       *conn       // nil when closed
	line    *Line       // that gets it back; nil if there is none
	framing framing
	keep    bool
	left    int64 // bytes of the body, or of the chunk
	begun   bool  // the first chunk was
	excess  int64 // bytes between chunks that no honest server needs
	err     error // how reading ended
}

// Field returns the value of the first field of the head with this name, in any case; nil when
// there is none. It is valid until Close.
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

// Read reads the body, without a copy where p is large. It returns io.EOF at the body's end,
// io.ErrUnexpectedEOF if the connection ends before, and the cause of the context's end if that
// comes first.
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

// ended reports whether io.EOF is the end of the body and not that of the connection before it.
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

// maxExcess is how many bytes there may be between chunks, besides what is usual.
const maxExcess = 16 << 10

// chunk reads up to the beginning of the next chunk, or to the end of the body, which is io.EOF.
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
		return malformed("far more between its chunks than in them")
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

// Close gives the connection back, or closes it if the body was not read to its end. Calling it
// again does nothing. The error is always nil.
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

// Until bounds the rest of the answer anew. It must not be called while Read is.
func (r *Response) Until(b Bound) {
	if r.c == nil {
		return
	}
	r.c.bind(time.Now(), b)
	if r.ctx.Err() != nil {
		r.c.cut() // the interruption may have been overwritten
	}
}
