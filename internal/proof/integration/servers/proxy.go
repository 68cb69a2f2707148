package servers

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy forwards connections of clients to a server, and can lose the server's answers.
type Proxy struct {
	Addr string // address for clients

	delay time.Duration // of each answer

	mu    sync.Mutex
	cut   func(toServer []byte) bool
	hold  func(toServer []byte) bool
	conns map[net.Conn]bool
}

// NewProxy starts a proxy that forwards connections to a server until the test ends.
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

// CutAnswers registers a function that selects answers to lose. cut receives the client's data. If
// it returns true, the proxy waits for the server's next answer, and cuts the connection instead of
// forwarding it. A nil function ends this.
func (p *Proxy) CutAnswers(cut func(toServer []byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
}

// HoldAnswers registers a function that selects answers to hold back. hold receives the client's
// data. If it returns true, the client receives neither the answer to this data nor any later
// answer, and the connection stays open. A nil function ends this, except for connections whose
// answers are already held back.
func (p *Proxy) HoldAnswers(hold func(toServer []byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold = hold
}

// Delay makes each answer of the server arrive later by this time, as over a network. It must be
// set before the first connection.
func (p *Proxy) Delay(by time.Duration) { p.delay = by }

// CutAll cuts all connections.
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
	lost := false // lose the answer to the last data
	held := false // lose the answer, and keep the connection open
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
		time.Sleep(p.delay)
		if _, err := client.Write(buffer[:n]); err != nil {
			break
		}
	}
	// The server has processed the client's data. End the connection to the server without a reset.
	client.Close()
	_, _ = io.Copy(io.Discard, server)
	up.Wait()
}
