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

// Config says what a server is like. Every zero field has a useful default.
type Config struct {
	// Addr is the TCP address to listen on, "127.0.0.1:0" by default: a free
	// port of the loopback interface.
	Addr string

	// InMemory makes the server listen on no port but on a network in memory
	// that only [Server.Client], [Server.HTTPClient] and [Server.Transport]
	// reach. Server and clients may then live in one testing/synctest bubble.
	InMemory bool

	// TLS makes the server speak TLS with a certificate generated at start, for
	// 127.0.0.1, ::1, localhost and Hosts, over HTTP/1.1 and HTTP/2, which a
	// client negotiates or begins by itself. Without TLS the server speaks
	// HTTP/1.1, and HTTP/2 with prior knowledge (h2c).
	TLS bool

	// Hosts are further names under which clients may address the server.
	// Requests for any other name than these, a loopback name or address, or
	// the host in Addr are refused with status 403, so that a web page cannot
	// reach the server by pointing its own name at the loopback address. A
	// server that listens on all interfaces (":4567", "0.0.0.0:4567") also
	// answers to every IP address: no name points to those.
	Hosts []string

	// Region and Account are what ARNs are made of: "us-east-1" and
	// "000000000000" by default.
	Region, Account string

	// NoLimits switches off limits of rates: calls, bytes and records each
	// second, and changes each day. Limits on the size of one request stay.
	NoLimits bool

	// StateDelay is how long a stream or consumer is CREATING, UPDATING or
	// DELETING. By default these states are over before the call is answered.
	// [Server.SetStateDelay] changes it while the server runs.
	StateDelay time.Duration

	// ShardLimit is how many open shards the account may have, 20,000 by
	// default.
	ShardLimit int

	// MaxBytes bounds the records kept in memory, keys and data, 1 GiB by
	// default; negative is no bound. Writes beyond it fail with a
	// LimitExceededException that names it.
	MaxBytes int64

	// EndOnEmptyPage makes GetRecords and SubscribeToShard tell the end of a
	// closed shard on an empty page or event that follows the last records. By
	// default it is told together with the last records. Real servers do both.
	EndOnEmptyPage bool

	// RefuseTrimmed makes GetShardIterator and SubscribeToShard refuse a sequence
	// number older than the retention period with an InvalidArgumentException. By default
	// reading goes on with the oldest record there is. Both have been seen.
	RefuseTrimmed bool

	// SubscriptionLife is when a subscription to a shard ends by itself, 5
	// minutes by default.
	SubscriptionLife time.Duration

	// IdleEvents is how long a subscription has been without an event when it
	// gets an empty one, 5 seconds by default.
	IdleEvents time.Duration

	// TakeoverEndsCleanly ends a subscription that another call takes over as if
	// its time had come. By default it ends with a ResourceInUseException in the
	// stream. The service says that both happen.
	TakeoverEndsCleanly bool

	// HoldSubscriptions refuses a call of SubscribeToShard within 5 seconds of a
	// successful one for the same consumer and shard even if that subscription
	// has ended, which is what the service's reference says to the letter. By
	// default only a live subscription is in the way, and one whose client went
	// away is not live.
	HoldSubscriptions bool

	// IndefiniteCBOR makes CBOR answers use indefinite lengths, as streaming
	// writers do. By default lengths are definite.
	IndefiniteCBOR bool

	// Logger gets what goes wrong inside the server, at level Error, and each
	// call, at level Debug. By default nothing is logged.
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
	return errors.Join(errs...)
}

func digits(s string) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// Server is an embedded Kinesis. Its methods may be called concurrently.
type Server struct {
	cfg      Config
	engine   *engine.Engine
	listener net.Listener
	memory   *memnet.Listener // the listener, if it is in memory
	http     *http.Server
	cert     *certificate // nil without TLS
	hosts    map[string]bool
	anywhere bool // it listens on all interfaces
	ids      requestIDs
	shared   wholeBody  // transport of the clients
	tb       testing.TB // of NewServer, else nil

	life context.Context // ends with Close
	end  context.CancelFunc

	handlers sync.WaitGroup // calls being answered
	conns    sync.WaitGroup // connections being served
	serving  sync.WaitGroup // the accept loop

	mu         sync.Mutex
	closed     bool
	transports []*http.Transport // whose idle connections Close closes
	controls   map[string]func(*Call) Fault
	counts     map[string]int
}

// memoryHost is the host of the URL of a server in memory. The name cannot be
// resolved, so a client that was not made by the server fails instead of
// reaching something else.
const memoryHost = "kinesistest.invalid"

// Start starts a server. The caller has to close it.
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
	s.shared = wholeBody{s.Transport()}
	s.serve()
	return s, nil
}

// NewServer starts a server for a test or benchmark, which fails if that does
// not work, and closes it when the test ends. At most one Config may be given.
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

// serve starts the accept loop, which ends with Close.
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

// Addr returns the address the server listens on, as host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL returns the endpoint, without a slash at its end. That of a server in
// memory cannot be resolved: use [Server.Client] or [Server.HTTPClient]. That
// of a server that listens on all interfaces is of the loopback one.
func (s *Server) URL() string {
	scheme := "http://"
	if s.cfg.TLS {
		scheme = "https://"
	}
	return scheme + reachable(s.listener.Addr())
}

// reachable is the host and port by which a listener can be reached from the
// same machine.
func reachable(addr net.Addr) string {
	if everywhere(addr) {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(addr.(*net.TCPAddr).Port))
	}
	return addr.String()
}

// Region returns the region the server stands for.
func (s *Server) Region() string { return s.cfg.Region }

// StreamARN returns the ARN that a stream of this name has.
func (s *Server) StreamARN(name string) string { return s.engine.StreamARN(name) }

// SetStateDelay changes how long the states last that begin from now on.
func (s *Server) SetStateDelay(d time.Duration) { s.engine.SetStateDelay(d) }

// Close stops the server: it cuts all connections, ends all calls and waits for
// every goroutine of the server, and closes the idle connections of all clients
// that the server made. Records are gone. Calling it again does nothing.
//
// A testing/synctest bubble can only end after Close, because connections have
// goroutines that wait for something to read.
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
	_ = s.http.Close() // connections that were accepted while the first one ran
	s.handlers.Wait()
	s.conns.Wait()
	for _, t := range transports {
		t.CloseIdleConnections()
	}
	return err
}
