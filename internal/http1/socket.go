package http1

import (
	"net"
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
