// Package memnet is a network in memory: a listener, and connections to it. Connections buffer
// writes like a socket, so both sides may write before either reads. net.Pipe does not buffer.
// Waiting goroutines are durably blocked as testing/synctest defines it.
package memnet

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// bufferSize is the capacity of each direction of a connection. A writer waits while the buffer is
// full.
const bufferSize = 256 << 10

// Listener is a net.Listener whose connections come from Dial.
type Listener struct {
	name    string
	pending chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// Listen returns a listener. name is its address.
func Listen(name string) *Listener {
	return &Listener{name: name, pending: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for a connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.pending:
		return c, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "memory", Addr: l.Addr(), Err: net.ErrClosed}
	}
}

// Dial opens a connection and waits until Accept returns it.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: "memory", Addr: l.Addr(), Err: errors.New("connection refused: the server is closed")}
	select {
	case <-l.closed:
		return nil, refused
	default:
	}
	client, server := Pipe(Addr("client"), l.Addr())
	select {
	case l.pending <- server:
		return client, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: "memory", Addr: l.Addr(), Err: ctx.Err()}
	}
}

// Close ends Accept. Existing connections stay open.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns the listener's name as an address.
func (l *Listener) Addr() net.Addr { return Addr(l.name) }

// Addr is an address of this network.
type Addr string

// Network returns "memory".
func (Addr) Network() string  { return "memory" }
func (a Addr) String() string { return string(a) }

// Pipe returns the two ends of a connection.
func Pipe(client, server net.Addr) (clientEnd, serverEnd net.Conn) {
	up, down := newStream(), newStream()
	return &conn{in: down, out: up, local: client, remote: server},
		&conn{in: up, out: down, local: server, remote: client}
}

// conn is one end of a connection.
type conn struct {
	in, out       *stream
	local, remote net.Addr
}

func (c *conn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *conn) Write(p []byte) (int, error) { return c.out.write(p) }

// Close closes the connection. The other end can still read the data that was sent, and then reads
// EOF. Its writes fail.
func (c *conn) Close() error {
	c.out.closeWriter()
	c.in.closeReader()
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	c.in.readDeadline.set(t)
	c.out.writeDeadline.set(t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.readDeadline.set(t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.writeDeadline.set(t)
	return nil
}

// stream is one direction of a connection.
type stream struct {
	mu       sync.Mutex
	changed  sync.Cond
	buf      []byte // written but not yet read
	from     int    // start of the unread bytes in buf
	noWriter bool
	noReader bool

	readDeadline, writeDeadline deadline
}

func newStream() *stream {
	s := &stream{}
	s.changed.L = &s.mu
	s.readDeadline.of, s.writeDeadline.of = s, s
	return s
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.noReader:
			return 0, net.ErrClosed
		case s.readDeadline.passed:
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		case s.from < len(s.buf):
			n := copy(p, s.buf[s.from:])
			if s.from += n; s.from == len(s.buf) {
				s.buf, s.from = s.buf[:0], 0
			}
			s.changed.Broadcast()
			return n, nil
		case s.noWriter:
			return 0, io.EOF
		}
		s.changed.Wait()
	}
}

func (s *stream) write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := 0
	for {
		switch {
		case s.noWriter:
			return done, net.ErrClosed
		case s.noReader:
			return done, io.ErrClosedPipe
		case s.writeDeadline.passed:
			return done, os.ErrDeadlineExceeded
		case done == len(p):
			return done, nil
		}
		if room := bufferSize - (len(s.buf) - s.from); room > 0 {
			if s.from > 0 && len(s.buf)+min(room, len(p)-done) > cap(s.buf) {
				s.buf, s.from = s.buf[:copy(s.buf, s.buf[s.from:])], 0
			}
			n := min(room, len(p)-done)
			s.buf = append(s.buf, p[done:done+n]...)
			done += n
			s.changed.Broadcast()
			continue
		}
		s.changed.Wait()
	}
}

func (s *stream) closeWriter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noWriter = true
	s.writeDeadline.stop()
	s.changed.Broadcast()
}

func (s *stream) closeReader() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noReader = true
	s.buf = nil
	s.readDeadline.stop()
	s.changed.Broadcast()
}

// deadline is the read or write deadline of a stream. The stream's mutex guards it.
type deadline struct {
	of     *stream
	timer  *time.Timer
	round  int // number of the last set call; identifies an old timer that fires late
	passed bool
}

func (d *deadline) set(t time.Time) {
	d.of.mu.Lock()
	defer d.of.mu.Unlock()
	d.stop()
	d.passed = false
	d.round++
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		d.passed = true
		d.of.changed.Broadcast()
		return
	}
	round := d.round
	d.timer = time.AfterFunc(left, func() {
		d.of.mu.Lock()
		defer d.of.mu.Unlock()
		if d.round == round {
			d.passed = true
			d.of.changed.Broadcast()
		}
	})
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
