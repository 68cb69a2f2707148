package servers

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy is a proxy between clients and a server that can lose answers.
type Proxy struct {
	Addr string // where clients connect

	mu    sync.Mutex
	cut   func(toServer []byte) bool
	hold  func(toServer []byte) bool
	conns map[net.Conn]bool
}

// NewProxy forwards connections to a server's address until the test ends.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), conns: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				continue
			}
			p.mu.Lock()
			p.conns[client], p.conns[server] = true, true
			p.mu.Unlock()
			all.Go(func() { p.forward(client, server) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.CutAll()
		all.Wait()
	})
	return p
}

// CutAnswers cuts connections when the server's next answer has arrived here but not at the client,
// if cut returns true for the client's data before it. nil ends that.
func (p *Proxy) CutAnswers(cut func(toServer []byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
}

// HoldAnswers keeps answers from clients forever, on open connections, if hold returns true for the
// client's data before them, and all later answers. nil ends that for later data.
func (p *Proxy) HoldAnswers(hold func(toServer []byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = hold
}

// CutAll ends all connections.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func (p *Proxy) forward(client, server net.Conn) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, client)
		delete(p.conns, server)
	}()
	var lose sync.Mutex
	lost := false // the answer to the last data
	held := false // … and the connection stays open
	var up sync.WaitGroup
	up.Go(func() {
		defer server.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := client.Read(buffer)
			if n > 0 {
				p.mu.Lock()
				cut, hold := p.cut != nil && p.cut(buffer[:n]), p.hold != nil && p.hold(buffer[:n])
				p.mu.Unlock()
				lose.Lock()
				lost, held = lost || cut, held || hold
				lose.Unlock()
				if _, err := server.Write(buffer[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		lose.Lock()
		cut, hold := lost, held
		lose.Unlock()
		if hold { // until the client gives up
			_, _ = io.Copy(io.Discard, server)
		}
		if cut || hold || err != nil {
			break
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			break
		}
	}
	// The client's data was processed: end the server's side without a reset.
	client.Close()
	_, _ = io.Copy(io.Discard, server)
	up.Wait()
}
