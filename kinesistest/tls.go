package kinesistest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

// handshakeTimeout limits the TLS handshake of a connection.
const handshakeTimeout = 30 * time.Second

// tlsListener is a listener whose connections have completed their TLS handshake.
//
// net/http speaks HTTP/2 over TLS only to clients that negotiated HTTP/2 by ALPN. The asynchronous
// client of the Java SDK 2, which the KCL uses, sends the HTTP/2 preface without ALPN. Accept
// therefore returns a connection without ALPN as a plain connection. In a plain connection net/http
// looks for the preface, for at most ReadHeaderTimeout.
type tlsListener struct {
	net.Listener
	cfg      *tls.Config
	accepted chan accepted // only Accept reads from it
	life     context.Context
	end      context.CancelFunc
	running  sync.WaitGroup // the accept loop and the handshakes
}

type accepted struct {
	conn net.Conn
	err  error
}

// newTLSListener wraps l and starts the accept loop. Close ends the loop.
func newTLSListener(l net.Listener, cfg *tls.Config) *tlsListener {
	t := &tlsListener{Listener: l, cfg: cfg, accepted: make(chan accepted)}
	t.life, t.end = context.WithCancel(context.Background())
	t.running.Go(t.loop)
	return t
}

func (t *tlsListener) loop() {
	for {
		conn, err := t.Listener.Accept()
		if err != nil {
			t.deliver(accepted{err: err}) // net/http pauses before it calls Accept again
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		t.running.Go(func() { t.handshake(tls.Server(conn, t.cfg)) })
	}
}

// handshake performs the TLS handshake of a connection and delivers the connection to Accept. It
// also delivers a connection whose handshake failed: net/http logs the reason, and answers clients
// that speak plain HTTP.
func (t *tlsListener) handshake(conn *tls.Conn) {
	ctx, cancel := context.WithTimeout(t.life, handshakeTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err == nil && conn.ConnectionState().NegotiatedProtocol == "" {
		t.deliver(accepted{conn: struct{ net.Conn }{conn}}) // hides TLS from net/http
		return
	}
	t.deliver(accepted{conn: conn})
}

func (t *tlsListener) deliver(a accepted) {
	select {
	case t.accepted <- a:
	case <-t.life.Done():
		if a.conn != nil {
			_ = a.conn.Close() // no Accept is waiting any more
		}
	}
}

func (t *tlsListener) Accept() (net.Conn, error) {
	select {
	case a := <-t.accepted:
		return a.conn, a.err
	case <-t.life.Done():
		return nil, net.ErrClosed
	}
}

// Close ends the accept loop and all handshakes, and waits for them.
func (t *tlsListener) Close() error {
	t.end()
	err := t.Listener.Close()
	t.running.Wait()
	return err
}
