package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
)

// address splits the host of a URL. name is the name for certificates, and addr is the address to
// dial.
func address(host string, secure bool) (name, addr string, err error) {
	for i := range len(host) {
		if c := host[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`%/\@?#"<>`, c) >= 0 {
			return "", "", fmt.Errorf("the host %q is not plain", host)
		}
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ""
		if strings.Contains(name, ":") && !strings.HasPrefix(host, "[") {
			return "", "", fmt.Errorf("the host %q: %w", host, err)
		}
	}
	if name == "" {
		return "", "", errors.New("there is no host")
	}
	if port == "" {
		if port = "80"; secure {
			port = "443"
		}
	}
	return name, net.JoinHostPort(name, port), nil
}

// protocol is the protocol that ALPN requests.
const protocol = "http/1.1"

// tlsConfig returns a copy of the user's configuration for one host.
func tlsConfig(from *tls.Config, name string) *tls.Config {
	config := new(tls.Config)
	if from != nil {
		config = from.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = name
	}
	config.NextProtos = []string{protocol}
	// With this setting a small request is one TLS record and is sent in one write.
	config.DynamicRecordSizingDisabled = true
	return config
}

// dial makes a connection. The caller has already counted the connection in h.open. If dial fails,
// it takes the connection out of that count.
func (h *Host) dial(ctx context.Context) (*conn, error) {
	nc, err := h.client.opts.DialContext(ctx, "tcp", h.addr)
	if err != nil {
		h.free()
		return nil, err
	}
	under := newSocket(nc)
	if h.tls == nil {
		return newConn(h, under, under), nil
	}
	top := tls.Client(under, h.tls)
	if err := h.handshake(ctx, top); err != nil {
		_ = nc.Close() // the other error contains more information
		h.free()
		return nil, err
	}
	return newConn(h, under, top), nil
}

func (h *Host) handshake(ctx context.Context, c *tls.Conn) error {
	if d := h.client.opts.TLSHandshakeTimeout; d > 0 {
		late := &TimeoutError{"TLS handshake", d}
		bounded, cancel := context.WithTimeoutCause(ctx, d, late)
		defer cancel()
		err := c.HandshakeContext(bounded)
		if err != nil && errors.Is(context.Cause(bounded), late) {
			return late
		}
		return err
	}
	return c.HandshakeContext(ctx)
}
