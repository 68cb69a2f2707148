package kinesistest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/engine"
	"github.com/weir-go/weir/kinesistest/internal/memnet"
)

// Config configures a server. Every zero field has a useful default.
type Config struct {
	// Addr is the TCP address to listen on. The default is "127.0.0.1:0", which selects a free port
	// of the loopback interface.
	Addr string

	// InMemory makes the server listen on a network in memory instead of a port. Only
	// [Server.Client], [Server.HTTPClient] and [Server.Transport] can reach such a server. The
	// server and its clients can then run in one testing/synctest bubble.
	InMemory bool

	// TLS enables TLS. The server generates a certificate at start, for 127.0.0.1, ::1, localhost
	// and Hosts. With TLS, a client may negotiate HTTP/2 or start HTTP/2 directly; HTTP/1.1 works
	// too. Without TLS the server speaks HTTP/1.1, and HTTP/2 with prior knowledge (h2c).
	TLS bool

	// Hosts lists additional names under which clients may address the server. The server always
	// accepts loopback names, loopback addresses and the host in Addr. It refuses a request for any
	// other name with status 403. Otherwise a web page could reach the server by pointing its own
	// name at the loopback address. A server that listens on all interfaces (":4567",
	// "0.0.0.0:4567") also accepts every IP address, because a web page cannot own an IP address as
	// a name.
	Hosts []string

	// Region and Account appear in ARNs. The defaults are "us-east-1" and "000000000000".
	Region, Account string

	// NoLimits disables the limits on calls, bytes and records per second, and on changes per day.
	// The limits on the size of one request still apply.
	NoLimits bool

	// StateDelay is the time that a stream, consumer or queue spends in the states CREATING,
	// UPDATING and DELETING. By default these states end before the call is answered.
	// [Server.SetStateDelay] changes the value while the server runs.
	StateDelay time.Duration

	// ShardLimit is the maximum number of open shards in the account. The default is 20,000.
	ShardLimit int

	// MaxBytes limits the size of the records in memory; data and keys count. The default is 1 GiB,
	// and a negative value means no limit. Writes beyond the limit fail with a
	// LimitExceededException that mentions MaxBytes.
	MaxBytes int64

	// EndOnEmptyPage selects where GetRecords and SubscribeToShard report the end of a closed
	// shard. If it is true, they report the end in an empty answer or event after the last records.
	// By default they report it together with the last records. The real service does both.
	EndOnEmptyPage bool

	// RefuseTrimmed makes GetShardIterator and SubscribeToShard refuse a sequence number older than
	// the retention period, with an InvalidArgumentException. By default reading starts at the
	// oldest record instead. Both behaviours have been observed.
	RefuseTrimmed bool

	// SubscriptionLife is the maximum duration of a subscription. The default is 5 minutes.
	SubscriptionLife time.Duration

	// IdleEvents is the time without events after which a subscription sends an empty event. The
	// default is 5 seconds.
	IdleEvents time.Duration

	// TakeoverEndsCleanly selects how a subscription ends when another call takes it over. If it is
	// true, the stream ends as if its time was over. By default the stream ends with a
	// ResourceInUseException. The service's documentation mentions both.
	TakeoverEndsCleanly bool

	// HoldSubscriptions keeps refusing calls for 5 seconds after a successful SubscribeToShard call
	// for the same consumer and shard, even if that subscription has ended. This follows the
	// wording of the service's reference. By default only a live subscription blocks a call. A
	// subscription ends when its client disconnects.
	HoldSubscriptions bool

	// Queues selects how queues behave where the documentation of the service is silent.
	Queues QueueConfig

	// IndefiniteCBOR encodes CBOR answers with indefinite lengths, as streaming writers do. By
	// default lengths are definite.
	IndefiniteCBOR bool

	// Logger receives internal errors of the server at level Error, and each call at level Debug.
	// By default nothing is logged.
	Logger *slog.Logger
}

func (cfg *Config) setDefaults() {
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1"
	}
	if cfg.Account == "" {
		cfg.Account = "000000000000"
	}
	if cfg.ShardLimit == 0 {
		cfg.ShardLimit = 20_000
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 1 << 30
	}
	if cfg.SubscriptionLife == 0 {
		cfg.SubscriptionLife = 5 * time.Minute
	}
	if cfg.IdleEvents == 0 {
		cfg.IdleEvents = 5 * time.Second
	}
	cfg.Queues.setDefaults()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
}

func (cfg *Config) check() error {
	var errs []error
	if len(cfg.Account) != 12 || !digits(cfg.Account) {
		errs = append(errs, fmt.Errorf("Config.Account %q: an account has 12 digits", cfg.Account))
	}
	if cfg.StateDelay < 0 {
		errs = append(errs, fmt.Errorf("Config.StateDelay %v: it cannot be negative", cfg.StateDelay))
	}
	if cfg.SubscriptionLife < 0 {
		errs = append(errs, fmt.Errorf("Config.SubscriptionLife %v: it cannot be negative", cfg.SubscriptionLife))
	}
	if cfg.IdleEvents < 0 {
		errs = append(errs, fmt.Errorf("Config.IdleEvents %v: it cannot be negative", cfg.IdleEvents))
	}
	if cfg.ShardLimit < 0 {
		errs = append(errs, fmt.Errorf("Config.ShardLimit %d: it cannot be negative", cfg.ShardLimit))
	}
	return errors.Join(append(errs, cfg.Queues.check())...)
}

func digits(s string) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// Server is an embedded Kinesis server. It is safe for concurrent use.
type Server struct {
	cfg      Config
	engine   *engine.Engine
	listener net.Listener
	memory   *memnet.Listener // nil unless InMemory is set
	http     *http.Server
	cert     *certificate // nil without TLS
	hosts    map[string]bool
	anywhere bool // the listener covers all interfaces
	ids      requestIDs
	shared   wholeBody  // the transport of all clients of Client and HTTPClient
	receives receives   // of these clients
	tb       testing.TB // from NewServer, otherwise nil

	life context.Context // ends with Close
	end  context.CancelFunc

	handlers sync.WaitGroup // calls in progress
	conns    sync.WaitGroup // open connections
	serving  sync.WaitGroup // the accept loop

	mu         sync.Mutex
	closed     bool
	transports []*http.Transport // Close closes their idle connections
	controls   map[string]func(*Call) Fault
	counts     map[string]int
}

// memoryHost is the host name in the URL of a server in memory. DNS cannot resolve this name. A
// client that the server did not create therefore fails, and does not reach another server.
const memoryHost = "kinesistest.invalid"

// Start starts a server. The caller must close the server.
func Start(cfg Config) (*Server, error) {
	cfg.setDefaults()
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("kinesistest: %w", err)
	}
	e, err := engine.New(engine.Config{
		Region: cfg.Region, Account: cfg.Account, NoLimits: cfg.NoLimits, StateDelay: cfg.StateDelay,
		ShardLimit: cfg.ShardLimit, MaxBytes: max(0, cfg.MaxBytes),
		EndOnEmptyPage: cfg.EndOnEmptyPage, RefuseTrimmed: cfg.RefuseTrimmed,
		SubscriptionLife: cfg.SubscriptionLife, IdleEvents: cfg.IdleEvents,
		HoldSubscriptions: cfg.HoldSubscriptions, TakeoverEndsCleanly: cfg.TakeoverEndsCleanly,
		Queues: engine.QueueRules(cfg.Queues),
	})
	if err != nil {
		return nil, fmt.Errorf("kinesistest: %w", err)
	}
	s := &Server{cfg: cfg, engine: e, controls: map[string]func(*Call) Fault{}, counts: map[string]int{}}
	if s.ids, err = newRequestIDs(); err != nil {
		return nil, fmt.Errorf("kinesistest: %w", err)
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.hosts = allowedHosts(cfg)
	if cfg.TLS {
		if s.cert, err = newCertificate(append([]string{memoryHost}, cfg.Hosts...)); err != nil {
			return nil, fmt.Errorf("kinesistest: generate the certificate: %w", err)
		}
	}
	if cfg.InMemory {
		s.memory = memnet.Listen(memoryHost)
		s.listener = s.memory
	} else {
		var lc net.ListenConfig
		if s.listener, err = lc.Listen(context.Background(), "tcp", cfg.Addr); err != nil {
			return nil, fmt.Errorf("kinesistest: %w", err)
		}
	}
	s.anywhere = everywhere(s.listener.Addr())
	s.shared = wholeBody{s.Transport(), &s.receives}
	s.serve()
	return s, nil
}

// NewServer starts a server for a test or benchmark, and closes the server when the test ends. The
// test fails if the server cannot start. At most one Config may be passed.
func NewServer(tb testing.TB, cfg ...Config) *Server {
	tb.Helper()
	var c Config
	switch len(cfg) {
	case 0:
	case 1:
		c = cfg[0]
	default:
		tb.Fatal("kinesistest.NewServer: more than one Config")
	}
	s, err := Start(c)
	if err != nil {
		tb.Fatal(err)
	}
	s.tb = tb
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("kinesistest: close the server: %v", err)
		}
	})
	return s
}

// serve starts the accept loop. Close ends the loop.
func (s *Server) serve() {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	protocols.SetHTTP2(s.cert != nil)
	s.http = &http.Server{
		Handler:           s,
		Protocols:         &protocols,
		ReadHeaderTimeout: 30 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				s.conns.Add(1)
			case http.StateClosed:
				s.conns.Done()
			default:
			}
		},
	}
	l := s.listener
	if s.cert != nil {
		s.http.TLSConfig = &tls.Config{
			Certificates: []tls.Certificate{s.cert.pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		}
		l = newTLSListener(l, s.http.TLSConfig)
	}
	s.serving.Go(func() { s.ended(s.http.Serve(l)) })
}

func (s *Server) ended(err error) {
	if !errors.Is(err, http.ErrServerClosed) {
		s.cfg.Logger.Error("kinesistest: the server stopped listening", "error", err)
	}
}

// Addr returns the server's listening address as host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL returns the endpoint of the server, without a trailing slash. The URL of a server in memory
// cannot be resolved: use [Server.Client] or [Server.HTTPClient] instead. If the server listens on
// all interfaces, the URL contains the loopback address.
func (s *Server) URL() string {
	scheme := "http://"
	if s.cfg.TLS {
		scheme = "https://"
	}
	return scheme + reachable(s.listener.Addr())
}

// reachable returns the host and port at which programs on the same machine can reach a listener.
func reachable(addr net.Addr) string {
	if everywhere(addr) {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(addr.(*net.TCPAddr).Port))
	}
	return addr.String()
}

// Region returns the server's region.
func (s *Server) Region() string { return s.cfg.Region }

// StreamARN returns the ARN of the stream with this name. The stream need not exist.
func (s *Server) StreamARN(name string) string { return s.engine.StreamARN(name) }

// SetStateDelay changes [Config.StateDelay] for states that begin later.
func (s *Server) SetStateDelay(d time.Duration) { s.engine.SetStateDelay(d) }

// Close stops the server and discards its records. It cuts all connections, ends all calls and
// waits for every goroutine of the server. It also closes the idle connections of all clients that
// the server created. A second call does nothing.
//
// A testing/synctest bubble cannot end before Close, because connections have goroutines that wait
// for input.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	transports := s.transports
	s.transports = nil
	s.mu.Unlock()

	err := s.http.Close()
	s.end()
	s.serving.Wait()
	_ = s.http.Close() // closes connections that were accepted during the first Close
	s.handlers.Wait()
	s.conns.Wait()
	for _, t := range transports {
		t.CloseIdleConnections()
	}
	return err
}
