package peers

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/weir-go/weir/cmd/weir/internal/explain"
)

// Ask makes a call to a store. Until the store has answered once, Ask repeats a call that gets no
// answer, because database clients give up a connection sooner than a user would.
func (p *Peer) Ask(ctx context.Context, do func(context.Context) error) error {
	for {
		c := p.begin(ctx)
		err := do(c.ctx)
		if err == nil || !Unanswered(err) {
			c.hears()
		}
		late := c.overdue()
		c.end()
		switch {
		case err == nil, ctx.Err() != nil:
			return err
		case late != nil:
			return late
		case p.hasAnswered(), !isSilence(err), errors.Is(err, syscall.ECONNREFUSED):
			return err
		}
	}
}

// Persist calls ask. If wait is true, it repeats a call that fails because of an outage; see
// passes.
func Persist(ctx context.Context, wait bool, p *Peer, ask func() error) error {
	for pause := time.Second; ; pause = min(2*pause, 10*time.Second) {
		err := ask()
		if err == nil || !wait || p == nil || !passes(err) || ctx.Err() != nil {
			return err
		}
		why := explain.Error(err)
		if errors.As(err, new(noAnswer)) {
			why = "" // the message already says it
		}
		p.again(why)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// isSilence reports whether an error means that no answer came in time.
func isSilence(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || explain.IsTimeout(err)
}

// Unanswered reports whether an error means that there was no answer at all, for example because
// the call was canceled.
func Unanswered(err error) bool {
	var dns *net.DNSError
	for _, is := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
		io.EOF, io.ErrUnexpectedEOF, context.Canceled} {
		if errors.Is(err, is) {
			return true
		}
	}
	return isSilence(err) || errors.As(err, &dns)
}

// passes reports whether an error is an outage that can end by itself: no answer, or an answer such
// as "unavailable".
func passes(err error) bool {
	var answer interface{ HTTPStatusCode() int }
	var sql interface{ SQLState() string } // Postgres is starting or stopping
	return Unanswered(err) || errors.As(err, &answer) && answer.HTTPStatusCode() >= 500 ||
		errors.As(err, &sql) && (sql.SQLState() == "57P03" || sql.SQLState() == "57P01")
}

// Client is an HTTP client that reports its calls to a Peer.
type Client struct {
	aws.HTTPClient
	Peer    *Peer
	Service string
}

func (c Client) Do(r *http.Request) (*http.Response, error) {
	c.Peer.rename(c.Service + " at " + r.URL.Scheme + "://" + r.URL.Host)
	asked := c.Peer.begin(r.Context())
	answer, err := c.HTTPClient.Do(r.WithContext(asked.ctx))
	if err != nil {
		if !Unanswered(err) {
			asked.hears() // the answer is not HTTP, or the certificate is wrong
		}
		late := asked.overdue()
		asked.end()
		if late != nil && r.Context().Err() == nil {
			return nil, late
		}
		return nil, err
	}
	asked.hearsSome()
	answer.Body = &heardBody{answer.Body, asked}
	return answer, nil
}

// heardBody is the body of an answer. The answer counts as complete when the body has been read to
// its end.
type heardBody struct {
	io.ReadCloser
	asked *call
}

func (b *heardBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch late := b.asked.overdue(); {
	case errors.Is(err, io.EOF):
		b.asked.hears()
	case err != nil && late != nil:
		return n, late
	case n > 0:
		b.asked.hearsSome()
	}
	return n, err
}

func (b *heardBody) Close() error {
	err := b.ReadCloser.Close()
	b.asked.end()
	return err
}

// NoteConnections returns a copy of a client whose connections report their traffic to a Peer. Use
// it for a client with which the library reads: the library makes its own calls, on connections
// that it opens in the same way. It works only for HTTP/1.1, where each request has an answer. Over
// HTTP/2, a connection also sends data that needs no answer.
func NoteConnections(client *awshttp.BuildableClient, p *Peer) *awshttp.BuildableClient {
	return client.WithTransportOptions(func(tr *http.Transport) {
		dial := tr.DialContext
		tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &heardConn{Conn: c, p: p}, nil
		}
	})
}

// heardConn is a connection that reports its traffic to a Peer. Written data counts as a request,
// and data that is read as the answer.
type heardConn struct {
	net.Conn
	p *Peer

	mu    sync.Mutex
	asked *call // nil if all requests are answered
}

func (c *heardConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	if c.asked == nil && c.p.hasAnswered() { // before the first answer, only whole calls count, because a proxy may answer
		c.asked = c.p.begin(context.Background())
	}
	c.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *heardConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.over(true)
	}
	return n, err
}

func (c *heardConn) Close() error {
	c.over(false)
	return c.Conn.Close()
}

func (c *heardConn) over(heard bool) {
	c.mu.Lock()
	asked := c.asked
	c.asked = nil
	c.mu.Unlock()
	if asked == nil {
		return
	}
	if heard {
		asked.hears()
	}
	asked.end()
}

// SyscallConn lets the library detect that an idle connection was closed.
func (c *heardConn) SyscallConn() (syscall.RawConn, error) {
	if raw, ok := c.Conn.(syscall.Conn); ok {
		return raw.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}
