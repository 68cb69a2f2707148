package lambda

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Runtime serves Lambda's Runtime API (2018-06-01) to one process of a function. The process
// handles one invocation at a time. Runtime listens only on 127.0.0.1, and refuses requests whose
// Host header has another address. It is safe for concurrent use.
type Runtime struct {
	functionARN string
	addr        string
	server      *http.Server
	served      chan struct{} // closed when the server has ended
	ready       chan struct{} // closed when the process has requested its first invocation
	closed      chan struct{}
	work        chan *invocation

	mu      sync.Mutex
	now     *invocation // the invocation that the process has received and not yet answered
	asked   bool        // the process has requested its first invocation
	initErr chan error  // receives at most one error
	end     sync.Once
}

type invocation struct {
	id       string
	event    []byte
	deadline time.Time
	result   chan result // receives one result
}

type result struct {
	body []byte
	err  error
}

// FunctionError is a failure that the function reported.
type FunctionError struct{ Type, Message string }

// Error implements error.
func (e *FunctionError) Error() string {
	return fmt.Sprintf("lambda: the function failed: %s: %s", e.Type, e.Message)
}

// ErrClosed is the error of [Runtime.Invoke] after [Runtime.Close].
var ErrClosed = errors.New("lambda: the function's process has ended")

// ErrNotTaken is the error for an event that the process did not request before it ended. It wraps
// [ErrClosed]. The function has not received the event, so the event cannot be the cause of the
// failure.
var ErrNotTaken = fmt.Errorf("%w before it requested the event", ErrClosed)

// maxErrorText is the maximum length of a failure's text in bytes. Longer texts are cut.
const maxErrorText = 4 << 10

// NewRuntime starts a Runtime API for one process. functionARN is the ARN that the function sees.
// Close stops the API.
func NewRuntime(functionARN string) (*Runtime, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("lambda: no port for a function's process: %w", err)
	}
	r := &Runtime{
		functionARN: functionARN, addr: l.Addr().String(), served: make(chan struct{}), ready: make(chan struct{}),
		closed: make(chan struct{}), work: make(chan *invocation), initErr: make(chan error, 1),
	}
	const api = "/2018-06-01/runtime/"
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+api+"invocation/next", r.next)
	mux.HandleFunc("POST "+api+"invocation/{id}/response", r.response)
	mux.HandleFunc("POST "+api+"invocation/{id}/error", r.failure)
	mux.HandleFunc("POST "+api+"init/error", r.initFailure)
	r.server = &http.Server{
		Handler: r.guarded(mux), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(io.Discard, "", 0), //nolint:forbidigo // discards the log of net/http
	}
	go func() { // ends with Close
		defer close(r.served)
		_ = r.server.Serve(l)
	}()
	return r, nil
}

// Addr returns the host and port of the API. The process must receive it in the variable
// AWS_LAMBDA_RUNTIME_API.
func (r *Runtime) Addr() string { return r.addr }

// Ready returns a channel that is closed when the process has requested its first invocation.
func (r *Runtime) Ready() <-chan struct{} { return r.ready }

// InitFailed returns a channel that receives an error if the process reports that it cannot start.
func (r *Runtime) InitFailed() <-chan error { return r.initErr }

// Invoke passes an event to the process, waits for the answer and returns it. deadline is the
// deadline that the function sees; it does not end the wait. The end of ctx ends the wait. If
// Invoke returns before the function has answered, the process is still working on the event. The
// caller must then end the process and call Close.
func (r *Runtime) Invoke(ctx context.Context, event []byte, deadline time.Time) ([]byte, error) {
	in := &invocation{requestID(), event, deadline, make(chan result, 1)}
	select {
	case r.work <- in:
	case <-r.closed:
		return nil, ErrNotTaken
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case out := <-in.result:
		return out.body, out.err
	case <-r.closed:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close stops the API and ends all calls of Invoke. It waits until the API accepts no more
// connections.
func (r *Runtime) Close() {
	r.end.Do(func() {
		close(r.closed)
		_ = r.server.Close()
	})
	<-r.served
}

// guarded refuses requests with a foreign Host header. A web page in a browser could send such
// requests.
func (r *Runtime) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Host != r.addr {
			refuse(w, http.StatusForbidden, "InvalidHost", "the request is for another host")
			return
		}
		next.ServeHTTP(w, req)
	})
}

func (r *Runtime) next(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	busy := r.now != nil
	if !r.asked && !busy {
		r.asked = true
		close(r.ready)
	}
	r.mu.Unlock()
	if busy {
		refuse(w, http.StatusForbidden, "InvalidStateTransition", "the invocation before is not answered yet")
		return
	}
	select {
	case in := <-r.work:
		r.mu.Lock()
		taken := r.now != nil // another connection of the process has taken it already
		if !taken {
			r.now = in
		}
		r.mu.Unlock()
		if taken {
			in.result <- result{err: errors.New("lambda: the process asked for two invocations at a time")}
			refuse(w, http.StatusForbidden, "InvalidStateTransition", "the invocation before is not answered yet")
			return
		}
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(in.event)))
		h.Set("Lambda-Runtime-Aws-Request-Id", in.id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(in.deadline.UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", r.functionARN)
		h.Set("Lambda-Runtime-Trace-Id", traceID(in.deadline))
		_, _ = w.Write(in.event) // a process that cannot read the event does not answer either
	case <-req.Context().Done():
	case <-r.closed:
	}
}

// current returns the invocation that a request answers. If there is no such invocation, it refuses
// the request and returns nil.
func (r *Runtime) current(w http.ResponseWriter, req *http.Request) *invocation {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now == nil || r.now.id != req.PathValue("id") {
		refuse(w, http.StatusBadRequest, "InvalidRequestID", "no invocation of this ID waits for an answer")
		return nil
	}
	return r.now
}

// finish answers an invocation. It refuses a second answer and returns false.
func (r *Runtime) finish(w http.ResponseWriter, in *invocation, out result) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now != in {
		refuse(w, http.StatusBadRequest, "InvalidRequestID", "the invocation was answered before")
		return false
	}
	r.now = nil
	in.result <- out
	return true
}

func (r *Runtime) response(w http.ResponseWriter, req *http.Request) {
	in := r.current(w, req)
	if in == nil {
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, MaxBytes))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		if r.finish(w, in, result{err: &FunctionError{"Function.ResponseSizeTooLarge", "the answer has more than 6 MiB"}}) {
			refuse(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "the answer has more than 6 MiB")
		}
		return
	case err != nil: // the connection broke; the process may retry
		return
	}
	// A streamed answer can fail halfway. The failure is reported in a trailer after the body.
	out := result{body: body}
	if kind := req.Trailer.Get("Lambda-Runtime-Function-Error-Type"); kind != "" {
		out = result{err: &FunctionError{cut(kind), "the streamed answer failed"}}
	}
	if r.finish(w, in, out) {
		accept(w)
	}
}

func (r *Runtime) failure(w http.ResponseWriter, req *http.Request) {
	in := r.current(w, req)
	if in == nil {
		return
	}
	if r.finish(w, in, result{err: said(w, req)}) {
		accept(w)
	}
}

func (r *Runtime) initFailure(w http.ResponseWriter, req *http.Request) {
	select {
	case r.initErr <- said(w, req):
	default:
	}
	accept(w)
}

// said returns the failure that a request of the process reports.
func said(w http.ResponseWriter, req *http.Request) error {
	e := &FunctionError{Type: cut(req.Header.Get("Lambda-Runtime-Function-Error-Type"))}
	body, _ := io.ReadAll(http.MaxBytesReader(w, req.Body, MaxBytes))
	var told struct {
		ErrorMessage string `json:"errorMessage"`
		ErrorType    string `json:"errorType"`
	}
	if json.Unmarshal(body, &told) != nil {
		told.ErrorMessage = string(body)
	}
	e.Message = cut(told.ErrorMessage)
	if told.ErrorType != "" {
		e.Type = cut(told.ErrorType)
	}
	if e.Type == "" {
		e.Type = "Unhandled"
	}
	return e
}

// cut limits the length of a text from the function, and removes control characters.
func cut(s string) string {
	if len(s) > maxErrorText {
		s = s[:maxErrorText]
	}
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(s, "?"))
}

func accept(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`)
}

func refuse(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"errorMessage":%q,"errorType":%q}`, message, kind)
}

// requestID returns a random UUID.
func requestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand does not fail
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// traceID returns a trace ID for an invocation that is not traced.
func traceID(at time.Time) string {
	var b [20]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("Root=1-%08x-%s;Parent=%s;Sampled=0", uint32(at.Unix()), hex.EncodeToString(b[:12]), hex.EncodeToString(b[12:]))
}
