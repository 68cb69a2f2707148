package dynamostore

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// network connects clients with a server that accepts connections from it. All existing connections
// can die silently. After that, written data is lost and nothing arrives.
type network struct {
	accepted chan net.Conn
	once     sync.Once
	over     chan struct{}

	mu    sync.Mutex
	dead  chan struct{} // closed when the existing connections have died
	dials int
}

func newNetwork() *network {
	return &network{accepted: make(chan net.Conn), over: make(chan struct{}), dead: make(chan struct{})}
}

func (n *network) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	n.mu.Lock()
	n.dials++
	c := &mortal{Conn: client, dead: n.dead, closed: make(chan struct{})}
	n.mu.Unlock()
	n.accepted <- server
	return c, nil
}

func (n *network) kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.dead)
	n.dead = make(chan struct{})
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.accepted:
		return c, nil
	case <-n.over:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error   { n.once.Do(func() { close(n.over) }); return nil }
func (n *network) Addr() net.Addr { return &net.TCPAddr{} }

type mortal struct {
	net.Conn
	dead, closed chan struct{}
	once         sync.Once
}

func (c *mortal) Write(p []byte) (int, error) {
	select {
	case <-c.dead:
		return len(p), nil
	default:
		return c.Conn.Write(p)
	}
}

func (c *mortal) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// However many connections have died, a call loses only one attempt.
func TestConnectionsThatDiedCostOneAttempt(t *testing.T) {
	const together = 10
	for name, client := range map[string]func(*network) dynamodb.HTTPClient{
		"the SDK's": func(n *network) dynamodb.HTTPClient {
			return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.DialContext = n.dial })
		},
		"net/http's": func(n *network) dynamodb.HTTPClient {
			return &http.Client{Transport: &http.Transport{DialContext: n.dial, MaxIdleConnsPerHost: together}}
		},
		"one of another kind": func(n *network) dynamodb.HTTPClient {
			return struct{ *http.Client }{&http.Client{Transport: &http.Transport{DialContext: n.dial, MaxIdleConnsPerHost: together}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					// The delay makes each call use a separate connection.
					time.Sleep(10 * time.Millisecond)
					w.Header().Set("Content-Type", "application/x-amz-json-1.0")
					_, _ = w.Write([]byte(`{}`))
				})}
				var serving sync.WaitGroup
				serving.Go(func() { _ = server.Serve(n) })
				defer serving.Wait()
				defer server.Close()
				s := New(dynamodb.New(dynamodb.Options{
					Region: "eu-central-1", HTTPClient: client(n), BaseEndpoint: aws.String("http://dynamodb.test"),
					Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
						return aws.Credentials{AccessKeyID: "k", SecretAccessKey: "s"}, nil
					}),
				}), Options{})
				defer func() { s.pool.closeIdle() }()
				lead := func() time.Duration {
					t.Helper()
					began := time.Now()
					// A heartbeat may take half of the failover time, which is 10 s here.
					if ok, err := s.Lead(within(t, 5*time.Second), "app", "a", 0); !ok || err != nil {
						t.Errorf("%t, %v", ok, err)
					}
					return time.Since(began)
				}
				_ = parallel(together, func(int) error { lead(); return nil })
				if n.dials != together {
					t.Fatalf("%d connections, not %d", n.dials, together)
				}
				synctest.Wait()
				n.kill()
				if took := lead(); took < 2500*time.Millisecond || took > 2600*time.Millisecond {
					t.Errorf("the first call took %v; an attempt has 2.5s", took)
				}
				synctest.Wait() // until net/http has the connection back
				if took := lead(); took > 20*time.Millisecond {
					t.Errorf("the next call took %v", took)
				}
				// net/http closes a connection if the body of its request is closed before net/http
				// knows that the whole body was written. The SDK closes the body as soon as the
				// answer arrives, so the second call may need another connection.
				if dials := n.dials - together; dials < 1 || dials > 2 {
					t.Errorf("%d new connections for two calls", dials)
				}
			})
		})
	}
}

// The Store does not close the user's connections.
func TestTheUsersConnectionsStay(t *testing.T) {
	shared := new(http.Transport)
	for name, from := range map[string]dynamodb.HTTPClient{
		"the SDK's":  awshttp.NewBuildableClient(),
		"net/http's": &http.Client{Transport: shared, Timeout: time.Minute},
		"default":    http.DefaultClient,
	} {
		p := ownPool(from)
		c, ok := p.client.(*http.Client)
		if !ok || c == from || c.Transport == http.RoundTripper(shared) || c.Transport == http.DefaultTransport || c.Transport == nil {
			t.Errorf("%s: the pool is %#v", name, p.client)
		}
	}
	if p := ownPool(awshttp.NewBuildableClient().WithTimeout(time.Minute)); p.client.(*http.Client).Timeout != time.Minute || p.longest != longestAttempt {
		t.Errorf("%+v", p)
	}
	if p := ownPool(awshttp.NewBuildableClient().WithReadTimeout(time.Second)); p.longest != time.Second {
		t.Errorf("an attempt may take %v", p.longest)
	}
}
