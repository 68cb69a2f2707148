package http1

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// bufferSize is the initial size of a connection's buffer. It is enough for the head of an answer
// and a small body. A larger buffer would only cost copies, because the rest of a large body is
// read directly into the caller's memory.
const bufferSize = 4 << 10

// conn is a connection of a host. It belongs to one caller at a time.
type conn struct {
	net.Conn         // writes and reads go through it: a socket, or TLS over a socket
	under    *socket // the socket at the bottom
	host     *Host
	used     bool  // the connection has returned an answer
	bound    Bound // of the current call
	// set is the current deadline. It is zero if there is none, and mixed if reading and writing
	// have different deadlines.
	set time.Time
	// soft is an earlier deadline for reading, to detect silence. It is zero if there is none.
	soft  time.Time
	most  time.Time   // the latest allowed deadline for reading; zero for none
	asked time.Time   // when the last request was written
	heard time.Time   // when the first byte of the last answer was read
	timer *time.Timer // replaces deadlines if the connection does not support them
	idle  time.Time   // when the connection became unused
	cut   func()      // interrupts a pending read or write
	probe [1]byte

	buf         []byte
	from, until int  // buf[from:until] was read and not used
	head        int  // length of the answer's head in buf, which stays until the answer is closed
	answered    bool // a part of the answer to the last request was read
}

func newConn(h *Host, under *socket, top net.Conn) *conn {
	c := &conn{Conn: top, under: under, host: h}
	c.cut = func() {
		if c.SetDeadline(time.Unix(1, 0)) != nil {
			// The connection does not support deadlines. TLS would first wait to send an alert.
			_ = c.under.Close()
		}
	}
	return c
}

// ask writes a request. After an error the connection cannot be used any more.
func (c *conn) ask(ctx context.Context, message outgoing) error {
	c.from, c.until, c.head, c.answered = 0, 0, 0, false
	if err := c.send(message); err != nil {
		return err
	}
	c.asked = time.Now()
	if d := c.host.client.opts.HeaderTimeout; d > 0 {
		c.limit(ctx, d)
	}
	return nil
}

// send writes a message. A large message over TLS consists of many records.
func (c *conn) send(message outgoing) error {
	if len(message.parts) > 0 {
		return c.under.writeTogether(func() error { return c.writeParts(message) })
	}
	write := func() error {
		_, err := c.Write(message.whole)
		return err
	}
	if c.host.tls == nil || len(message.whole) <= oneRecord {
		return write()
	}
	return c.under.writeTogether(write)
}

// windows has buffers of writeParts.
var windows = sync.Pool{New: func() any { return new([oneRecord]byte) }}

// writeParts writes a request in pieces of one record.
func (c *conn) writeParts(message outgoing) error {
	window := windows.Get().(*[oneRecord]byte)
	defer windows.Put(window)
	n := 0
	part := message.whole
	for i := 0; ; i++ {
		for len(part) > 0 {
			copied := copy(window[n:], part)
			part = part[copied:]
			if n += copied; n < oneRecord {
				continue
			}
			if _, err := c.Write(window[:]); err != nil {
				return err
			}
			n = 0
		}
		if i == len(message.parts) {
			break
		}
		part = message.parts[i]
	}
	_, err := c.Write(window[:n])
	return err
}

// answer reads the head of the answer to the request that was written. After an error the
// connection cannot be used any more.
func (c *conn) answer(ctx context.Context) (head, error) {
	if c.buf == nil {
		c.buf = make([]byte, bufferSize)
	}
	d := c.host.client.opts.HeaderTimeout
	h, err := c.readHead(ctx, d > 0)
	if d > 0 {
		if errors.Is(err, os.ErrDeadlineExceeded) && !c.over() {
			err = &TimeoutError{"head of an answer", d}
		}
		c.limit(ctx, 0)
	}
	return h, err
}

// mixed is a time that no caller uses as a deadline.
var mixed = time.Unix(1, 0)

// bind sets the deadline of the call. It may undo an earlier interruption.
func (c *conn) bind(now time.Time, b Bound) {
	c.bindHard(now, b)
	switch {
	case c.timer != nil:
	case b.Silence > 0 && b.Listener != nil:
		c.listen(now)
	case c.soft.Before(c.most) && !c.soft.IsZero():
		c.readUntil(c.most)
	}
}

// bindHard sets the deadline of the call, as opposed to the earlier deadline that detects silence.
// It keeps an existing deadline that is earlier by less than a sixteenth of the time that the call
// has.
func (c *conn) bindHard(now time.Time, b Bound) {
	c.bound, c.most = b, b.At
	if !c.set.IsZero() && !c.set.Equal(mixed) && c.set.Before(b.At) {
		c.most = c.set
	}
	if b.At.Equal(c.set) {
		return
	}
	if early := b.At.Sub(c.set); !b.At.IsZero() && early > 0 && early < b.At.Sub(now)/16 {
		return
	}
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	c.set, c.soft, c.most = b.At, time.Time{}, b.At
	if c.SetDeadline(b.At) != nil && !b.At.IsZero() {
		c.set, c.timer = mixed, time.AfterFunc(b.At.Sub(now), c.cut)
	}
}

// over reports whether the deadline of the call has passed.
func (c *conn) over() bool {
	at := c.bound.At
	if !c.set.IsZero() && !c.set.Equal(mixed) && c.set.Before(at) {
		at = c.set
	}
	return !at.IsZero() && !time.Now().Before(at)
}

// late reports whether err is the result of the call's deadline.
func (c *conn) late(err error) bool {
	_, timeout := err.(*TimeoutError) //nolint:errorlint // a TimeoutError of this package is never wrapped
	return !timeout && (c.timer != nil || errors.Is(err, os.ErrDeadlineExceeded)) && c.over()
}

// limit makes reads fail after d, or at the deadline of the call if d is 0. It keeps an earlier
// interruption.
func (c *conn) limit(ctx context.Context, d time.Duration) {
	at := c.bound.At
	if d > 0 {
		if limit := time.Now().Add(d); at.IsZero() || limit.Before(at) {
			at = limit
		}
	}
	c.set, c.soft, c.most = mixed, time.Time{}, at
	if c.SetReadDeadline(at) != nil {
		c.cut()
	}
	c.stillCut(ctx)
}

// stillCut repeats an interruption, because a new deadline may have overwritten it.
func (c *conn) stillCut(ctx context.Context) {
	if ctx.Err() != nil {
		c.cut()
	}
}

// trim drops the state that only one call needs: a large buffer for the head, and the listener.
func (c *conn) trim() {
	c.bound.Listener = nil
	if cap(c.buf) > 2*bufferSize {
		c.buf = nil
	}
}

// maxInterim is the maximum number of heads of an answer, including the interim heads.
const maxInterim = 8

func (c *conn) readHead(ctx context.Context, limited bool) (head, error) {
	most := c.host.client.opts.MaxHead
	for range maxInterim {
		lines := 0
		for {
			end, n, err := headEnd(c.buf[:c.until], lines)
			if err != nil {
				return head{}, err
			}
			if lines = n; end > 0 {
				c.head = end
				break
			}
			if c.until == len(c.buf) {
				if len(c.buf) >= most {
					return head{}, ErrHeadTooLarge
				}
				c.buf = append(c.buf, make([]byte, min(len(c.buf), most-len(c.buf)))...)
			}
			n, err = c.read(ctx, c.buf[c.until:], limited)
			if err != nil {
				if errors.Is(err, io.EOF) && c.answered {
					err = io.ErrUnexpectedEOF
				}
				return head{}, err
			}
			c.until += n
			if !c.answered {
				c.answered, c.heard = true, time.Now()
			}
		}
		if c.head > most {
			return head{}, ErrHeadTooLarge
		}
		h, err := parseHead(c.buf[:c.head])
		if err != nil {
			return h, err
		}
		if h.status == 101 {
			return h, malformed("it switches protocols without a request for that")
		}
		if h.status >= 200 {
			c.from = c.head
			return h, nil
		}
		most -= c.head
		c.until = copy(c.buf, c.buf[c.head:c.until])
	}
	return head{}, ErrHeadTooLarge
}

// read reads from the connection without the buffer.
func (c *conn) read(ctx context.Context, p []byte, limited bool) (int, error) {
	d := c.host.client.opts.ReadTimeout
	if limited {
		d = 0 // the head has its own limit
	}
	if d > 0 {
		c.limit(ctx, d)
	}
	since := c.asked
	if c.bound.Silence > 0 && c.bound.Listener != nil && c.timer == nil {
		if c.answered {
			since = time.Now() // the process may have been suspended
		}
		c.listen(since)
		c.stillCut(ctx)
	}
	for range 100 {
		n, err := c.Read(p)
		if n > 0 {
			return n, nil // the next read returns the error again
		}
		if !c.soft.IsZero() && errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
			if n, err = c.listenOn(ctx, p, since); n > 0 {
				return n, nil
			}
		}
		if d > 0 && errors.Is(err, os.ErrDeadlineExceeded) && !c.over() {
			err = &TimeoutError{"byte of the answer", d}
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}

// some reads between one and most bytes of the body into p.
func (c *conn) some(ctx context.Context, p []byte, most int64) (int, error) {
	if int64(len(p)) > most {
		p = p[:most]
	}
	if c.from == c.until {
		// Read directly into p if p is large, or if it has room for the whole rest of the body.
		if int64(len(p)) == most || len(p) >= len(c.buf)-c.head {
			return c.read(ctx, p, false)
		}
		if err := c.fill(ctx); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.buf[c.from:c.until])
	c.from += n
	return n, nil
}

// fill reads more bytes into the buffer, after the head.
func (c *conn) fill(ctx context.Context) error {
	if c.from == c.until {
		c.from, c.until = c.head, c.head
	} else if c.until == len(c.buf) {
		c.from, c.until = c.head, c.head+copy(c.buf[c.head:], c.buf[c.from:c.until])
	}
	if c.until == len(c.buf) { // a large head leaves no room
		c.buf = append(c.buf, make([]byte, bufferSize)...)
	}
	n, err := c.read(ctx, c.buf[c.until:], false)
	c.until += n
	return err
}

// maxLine limits the length of a line between chunks, and the total length of trailer lines.
const maxLine = 1 << 10

// line returns the next line of the body without CR LF. It is valid until the next read.
func (c *conn) line(ctx context.Context) ([]byte, error) {
	seen := 0
	for {
		b := c.buf[c.from:c.until]
		for i := seen; i < len(b); i++ {
			if b[i] != '\n' {
				continue
			}
			if i == 0 || b[i-1] != '\r' {
				return nil, malformed("a line between chunks ends without CR")
			}
			c.from += i + 1
			return b[:i-1], nil
		}
		if seen = len(b); seen > maxLine {
			return nil, malformed("a line between chunks has more than %d bytes", maxLine)
		}
		if err := c.fill(ctx); err != nil {
			return nil, err
		}
	}
}

// reusable reports whether an idle connection is still open and has no data to read. It returns
// true if the system cannot check this.
func (c *conn) reusable() bool {
	c.under.probing = true
	n, err := c.Read(c.probe[:])
	c.under.probing = false
	return n == 0 && errors.Is(err, errNothing)
}
