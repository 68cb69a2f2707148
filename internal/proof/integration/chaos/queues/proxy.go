package main

import (
	"context"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
)

// Faults of calls.
const (
	lostReceives = "lost answers of receives"
	lostAcks     = "lost answers of acknowledgements"
	throttles    = "throttled calls"
	refused      = "no connection to the service"
)

// proxy passes the calls of the processes to the server, and makes some of them fail.
type proxy struct {
	url    string
	server *http.Server
	served chan struct{}

	mu  sync.Mutex // guards how
	how string
}

func startProxy(target string) (*proxy, error) {
	to, err := url.Parse(target)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{url: "http://" + listener.Addr().String(), served: make(chan struct{})}
	pass := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // it is signed
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	p.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.handle(w, r, pass) }), ErrorLog: log.New(io.Discard, "", 0)} //nolint:gosec // it serves this machine
	go func() {
		defer close(p.served)
		_ = p.server.Serve(listener) // ends with close
	}()
	return p, nil
}

func (p *proxy) close() {
	_ = p.server.Close()
	<-p.served
}

// fail makes a third of the calls fail in the given way, or all calls if the service is refused.
func (p *proxy) fail(how string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.how = how
}

func (p *proxy) handle(w http.ResponseWriter, r *http.Request, pass http.Handler) {
	p.mu.Lock()
	how := p.how
	p.mu.Unlock()
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	third := rand.IntN(3) == 0
	switch {
	case how == refused:
		panic(http.ErrAbortHandler)
	case how == throttles && third:
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"ThrottlingException","message":"Slow down."}`)
		return
	case how == lostReceives && third && operation == "ReceiveQueueRecords", how == lostAcks && third && operation == "AcknowledgeQueueRecords":
		pass.ServeHTTP(nowhere{}, r.WithContext(context.WithoutCancel(r.Context())))
		panic(http.ErrAbortHandler)
	}
	pass.ServeHTTP(w, r)
}

// nowhere is a client that gets no answer.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) WriteHeader(int)             {}
