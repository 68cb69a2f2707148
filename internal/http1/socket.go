package http1

import (
	"net"
	"sync"
	"syscall"
)

// socket is a network connection that can be read without waiting. To probe a TLS connection, the
// host reads through TLS, and TLS reads from the socket: TLS may have read data that it has not
// returned yet, and only TLS knows about this data.
type socket struct {
	net.Conn
	probing bool // Read must not wait
	raw     syscall.RawConn
	now     func(fd uintptr) bool // reads without waiting
	p       []byte
	n       int
	err     error

	mu  sync.Mutex // guards out
	out *[]byte    // collects what TLS writes; nil outside of writeTogether
}

func newSocket(c net.Conn) *socket {
	s := &socket{Conn: c}
	if sc, ok := c.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			s.raw = raw
		}
	}
	s.now = func(fd uintptr) bool {
		s.n, s.err = readNow(fd, s.p)
		return true
	}
	return s
}

const (
	// oneRecord is the maximum size of a message that TLS sends in one record.
	oneRecord = 16 << 10
	// together is the number of bytes that are collected before they are written.
	together = 128 << 10
)

// collectors has buffers of writeTogether.
var collectors = sync.Pool{New: func() any {
	b := make([]byte, 0, together+2*oneRecord)
	return &b
}}

// writeTogether calls write, and sends the data that it passes to Write in few system calls. TLS
// calls Write for each record of 16 KiB, and each system call has a fixed cost.
func (s *socket) writeTogether(write func() error) error {
	b := collectors.Get().(*[]byte)
	s.mu.Lock()
	s.out = b
	s.mu.Unlock()
	err := write()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		err = s.flush()
	}
	s.out = nil
	*b = (*b)[:0]
	collectors.Put(b)
	return err
}

// flush sends the collected data. The caller holds the mutex.
func (s *socket) flush() error {
	_, err := s.Conn.Write(*s.out)
	*s.out = (*s.out)[:0]
	return err
}

// Write sends p, or collects it during writeTogether.
func (s *socket) Write(p []byte) (int, error) {
	s.mu.Lock()
	if s.out == nil {
		s.mu.Unlock()
		return s.Conn.Write(p)
	}
	defer s.mu.Unlock()
	*s.out = append(*s.out, p...)
	if len(*s.out) < together {
		return len(p), nil
	}
	return len(p), s.flush()
}

// Read waits for data, unless the connection is being probed. During a probe, it returns errNothing
// if there is no data.
func (s *socket) Read(p []byte) (int, error) {
	if !s.probing {
		return s.Conn.Read(p)
	}
	if s.raw == nil {
		return 0, errNothing
	}
	s.p = p
	err := s.raw.Read(s.now)
	s.p = nil
	if err != nil {
		return 0, err
	}
	return s.n, s.err
}

// nothing is the error if there is no data. TLS treats it as a temporary error.
type nothing struct{}

var errNothing net.Error = nothing{}

func (nothing) Error() string   { return "nothing to read yet" }
func (nothing) Timeout() bool   { return true }
func (nothing) Temporary() bool { return true }
