// Package cut is a proxy between a client and a server. It can make the network between them refuse
// or reset connections, be silent, or be slow.
package cut

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Mode is the behaviour of the network.
type Mode string

// The modes. All except HalfOpen last until the next [Proxy.Set].
const (
	Pass   Mode = "pass"
	Refuse Mode = "refuse" // existing connections end regularly, and new ones are refused
	Reset  Mode = "reset"  // existing connections are reset, and new ones are reset immediately
	// Blackhole forwards no data. Existing connections stay open, and new ones are accepted. Data
	// that is sent in this mode arrives after the mode ends.
	Blackhole Mode = "blackhole"
	// HalfOpen makes existing connections forward no more data, without a signal to either side.
	// New connections work.
	HalfOpen Mode = "half-open"
	Delay    Mode = "delay"   // all data arrives late
	Trickle  Mode = "trickle" // all data arrives late and slowly
)

const (
	delay        = 150 * time.Millisecond // in each direction
	trickleBytes = 32
	trickleEvery = 50 * time.Millisecond
	dialWithin   = 5 * time.Second
	listenTries  = 50
	listenPause  = 20 * time.Millisecond
)

// Proxy forwards connections to a server. It is safe for concurrent use.
type Proxy struct {
	addr string
	all  sync.WaitGroup
	over context.Context
	end  context.CancelFunc

	mu       sync.Mutex
	target   string
	mode     Mode
	changed  chan struct{} // closed by the next Set
	listener net.Listener  // nil while connections are refused
	links    map[*link]bool
}

// link is one connection with both ends.
type link struct {
	client, server *net.TCPConn
	dead           chan struct{} // closed when the link becomes half open
	done           chan struct{} // closed when the link has ended
	once           sync.Once
}

func (l *link) close() {
	l.once.Do(func() {
		close(l.done)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

func (l *link) reset() {
	_ = l.client.SetLinger(0)
	_ = l.server.SetLinger(0)
	l.close()
}

// New returns a proxy that listens on a free port of 127.0.0.1. It forwards connections to the
// target until [Proxy.Close].
func New(target string) (*Proxy, error) {
	p := &Proxy{target: target, mode: Pass, changed: make(chan struct{}), links: map[*link]bool{}}
	p.over, p.end = context.WithCancel(context.Background())
	l, err := new(net.ListenConfig).Listen(p.over, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.addr = l.Addr().String()
	p.listen(l)
	return p, nil
}

// Addr returns the address for clients.
func (p *Proxy) Addr() string { return p.addr }

// Target sets the target of new connections.
func (p *Proxy) Target(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

// Close ends all connections and waits for the goroutines of the proxy.
func (p *Proxy) Close() {
	p.end()
	p.mu.Lock()
	if p.listener != nil {
		_ = p.listener.Close()
	}
	for l := range p.links {
		l.close()
	}
	p.mu.Unlock()
	p.all.Wait()
}

// Set changes the mode. It returns an error for an unknown mode, and if another process has taken
// the port while the proxy refused connections.
func (p *Proxy) Set(m Mode) error {
	p.mu.Lock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	listening := p.listener
	switch m {
	case HalfOpen:
		p.mode = Pass
	case Refuse:
		p.mode, p.listener = m, nil
	default:
		p.mode = m
	}
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()

	switch m {
	case Refuse:
		if listening != nil {
			_ = listening.Close()
		}
		for _, l := range links {
			l.close()
		}
		return nil
	case Reset:
		for _, l := range links {
			l.reset()
		}
	case HalfOpen:
		for _, l := range links {
			close(l.dead)
			p.forget(l) // it must die only once
		}
	case Pass, Blackhole, Delay, Trickle:
	default:
		return fmt.Errorf("there is no mode %q", m)
	}
	if listening != nil {
		return nil
	}
	var lc net.ListenConfig
	for try := 1; ; try++ {
		l, err := lc.Listen(p.over, "tcp", p.addr)
		if err == nil {
			p.listen(l)
			return nil
		}
		if try == listenTries || p.over.Err() != nil {
			return err
		}
		select {
		case <-time.After(listenPause):
		case <-p.over.Done():
		}
	}
}

func (p *Proxy) listen(l net.Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = l
	p.all.Go(func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) || p.over.Err() != nil {
				return
			}
			if err == nil {
				p.all.Go(func() { p.carry(c.(*net.TCPConn)) })
			}
		}
	})
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// carry forwards one connection.
func (p *Proxy) carry(client *net.TCPConn) {
	p.mu.Lock()
	mode, target := p.mode, p.target
	p.mu.Unlock()
	if mode == Reset {
		_ = client.SetLinger(0)
		_ = client.Close()
		return
	}
	dialer := net.Dialer{Timeout: dialWithin}
	c, err := dialer.DialContext(p.over, "tcp", target)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client: client, server: c.(*net.TCPConn), dead: make(chan struct{}), done: make(chan struct{})}
	p.mu.Lock()
	p.links[l] = true
	now := p.mode
	p.mu.Unlock()
	if now == Refuse || now == Reset || p.over.Err() != nil { // the mode has changed in the meantime
		l.close()
	}
	stop := context.AfterFunc(p.over, l.close)
	defer stop()
	defer p.forget(l)
	p.all.Go(func() { p.copy(l, l.client, l.server) })
	p.copy(l, l.server, l.client)
}

// copy forwards one direction until either side ends the connection.
func (p *Proxy) copy(l *link, from, to *net.TCPConn) {
	defer l.close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !p.send(l, to, buffer[:n]) {
			return
		}
		if err != nil {
			return
		}
	}
}

// send forwards data according to the mode. A dead link accepts all data and forwards no data.
func (p *Proxy) send(l *link, to *net.TCPConn, b []byte) bool {
	slept := false
	for len(b) > 0 {
		p.mu.Lock()
		mode, changed := p.mode, p.changed
		p.mu.Unlock()
		var wait <-chan time.Time
		n := len(b)
		switch {
		case mode == Blackhole:
		case mode == Delay && !slept:
			wait, changed, slept = time.After(delay), nil, true
		case mode == Trickle && !slept:
			wait, changed, slept = time.After(trickleEvery), nil, true
		default:
			if mode == Trickle {
				n, slept = min(n, trickleBytes), false
			}
			select {
			case <-l.dead:
				return true
			default:
			}
			if _, err := to.Write(b[:n]); err != nil {
				return false
			}
			b = b[n:]
			continue
		}
		select {
		case <-wait:
		case <-changed:
		case <-l.dead:
			return true
		case <-l.done:
			return false
		}
	}
	return true
}
