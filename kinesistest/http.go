package kinesistest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
	"github.com/weir-go/weir/kinesistest/internal/engine"
)

// maxBody is the maximum size of a request in bytes. It has room for 10 MiB of data in base64, five
// hundred escaped keys, and a margin.
const maxBody = 20 << 20

const targetService = "Kinesis_20131202"

// exchange is one HTTP request with the state of its processing.
type exchange struct {
	w      http.ResponseWriter
	r      *http.Request
	format codec.Format
	shape  shape         // the format of an error answer
	action string        // empty if the request names no Kinesis operation
	body   *bytes.Buffer // nil after release
}

// release returns the body to the pool. The caller must hold no more references to the body.
func (x *exchange) release() {
	if x.body != nil {
		bodies.Put(x.body)
		x.body = nil
	}
}

// ServeHTTP answers one request. The Server can be mounted in another HTTP server. Close does not
// close the connections of that other server.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	s.handlers.Add(1)
	s.mu.Unlock()
	defer s.handlers.Done()

	x := &exchange{w: w, r: r}
	id, id2 := s.ids.next()
	w.Header().Set("X-Amzn-Requestid", id)
	w.Header().Set("X-Amz-Id-2", id2)
	if err := s.route(x); err != nil {
		s.refuse(x, err)
	}
}

// route determines which kind of request it received, and answers the request if it is a call. A
// returned error is the answer to send. route checks in the same order as the service. The service
// does not check host names and paths, so route checks these first.
func (s *Server) route(x *exchange) *Error {
	r := x.r
	if !s.knows(r.Host) {
		return &Error{"AccessDeniedException", fmt.Sprintf("This server has no host name %q. Use a loopback address, or add the host name (Config.Hosts; weir local --host).", r.Host), 403}
	}
	if r.URL.Path == metricsPath {
		return s.serveMetrics(x)
	}
	if r.URL.Path != "/" {
		return &Error{"UnknownOperationException", "Kinesis is called with POST /.", 404}
	}
	if r.Method != http.MethodPost {
		return undetermined(x)
	}
	if err := readBody(x); err != nil {
		return err
	}
	defer x.release()
	body := x.body.Bytes()
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	media = strings.ToLower(strings.TrimSpace(media))
	x.format = codec.JSON
	if media == codec.CBOR.ContentType() || len(body) == 0 && media != codec.JSON.ContentType() {
		x.format = codec.CBOR
	}
	service, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if service == targetService {
		x.action = action
	}
	switch {
	case len(body) == 0:
		if _, known := engine.NewRequest(x.action); known {
			return &Error{"SerializationException", "", 400}
		}
		return &Error{"UnknownOperationException", unknownOperation(x.action), 400}
	case media == "application/json":
		x.shape = inOutput
		if syntax(codec.JSON, body) != nil {
			return &Error{"SerializationException", "", 400}
		}
		return &Error{"UnknownOperationException", "", 404}
	case media != codec.JSON.ContentType() && media != codec.CBOR.ContentType():
		if service == "" || action == "" {
			return undetermined(x)
		}
		x.shape = inXML
		return &Error{"UnknownOperationException", "", 404}
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return &Error{"SerializationException", "A Content-Encoding is not supported.", 400}
	}
	return s.call(x, body)
}

// bodies is a pool of buffers for requests. Data that outlives a call must not refer to such a
// buffer.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readBody reads the complete body, even if the answer does not need the body. A client that is
// still writing might otherwise miss the answer.
func readBody(x *exchange) *Error {
	body := bodies.Get().(*bytes.Buffer)
	body.Reset()
	if n := x.r.ContentLength; n > 0 && n <= maxBody {
		body.Grow(int(n) + bytes.MinRead)
	}
	if _, err := body.ReadFrom(http.MaxBytesReader(x.w, x.r.Body, maxBody)); err != nil {
		bodies.Put(body)
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return &Error{"RequestEntityTooLargeException", fmt.Sprintf("A request has at most %d bytes.", maxBody), 413}
		}
		panic(http.ErrAbortHandler) // the client disconnected in the middle of its request
	}
	x.body = body
	return nil
}

// call decodes a call, applies the control functions, carries the call out and answers it. It keeps
// no reference to the body.
func (s *Server) call(x *exchange, body []byte) *Error {
	action := x.action
	req, known := engine.NewRequest(action)
	var n int
	var ask []func(*Call) Fault
	var bad error
	if known {
		bad = decode(x.format, body, req)
	} else {
		bad = syntax(x.format, body)
	}
	if action != "" {
		n, ask = s.arrived(action, known)
	}
	mistyped := (*codec.TypeError)(nil)
	if bad != nil && !errors.As(bad, &mistyped) {
		return &Error{"SerializationException", "", 400}
	}
	if !known {
		return &Error{"UnknownOperationException", unknownOperation(action), 400}
	}
	if err := checkSignature(x.r); err != nil {
		return err
	}
	if mistyped != nil {
		return &Error{"SerializationException", mistyped.Text, 400}
	}
	about := s.engine.Target(req)
	call := &Call{
		Context: x.r.Context(),
		Action:  action, Stream: about.Stream, Shard: about.Shard, Consumer: about.Consumer, Queue: about.Queue, Records: about.Records,
		N: n, Format: x.format.String(), Proto: x.r.Proto, Body: body,
	}
	var fault Fault
	for _, f := range ask {
		if fault = f(call); fault.wanted() {
			break
		}
	}
	if fault.Delay > 0 && !sleep(x.r.Context(), fault.Delay) {
		panic(http.ErrAbortHandler)
	}
	if fault.Err != nil {
		e := fault.Err.withDefaults()
		return &e
	}
	if fault.Cut {
		panic(http.ErrAbortHandler)
	}
	if r, ok := req.(*engine.SubscribeToShard); ok {
		return s.subscribe(x, r, &fault)
	}
	return s.answer(x, req, about, &fault)
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func decode(f codec.Format, body []byte, req engine.Request) error {
	d := codec.NewDecoder(f, body)
	if err := req.Fields().Decode(d); err != nil {
		return err
	}
	return d.End()
}

// syntax returns the syntax error in the body of a call of an unknown operation, or nil.
func syntax(f codec.Format, body []byte) error {
	d := codec.NewDecoder(f, body)
	if err := d.Map(func([]byte) error { return d.Skip() }); err != nil {
		return err
	}
	return d.End()
}

// answers is a pool of buffers for answers. An answer may exceed 10 MiB.
var answers = sync.Pool{New: func() any { return new([]byte) }}

// answer carries out a call and sends the answer.
func (s *Server) answer(x *exchange, req engine.Request, about engine.Target, fault *Fault) *Error {
	inject := engine.Inject{EmptyPage: fault.EmptyPage}
	if fault.PartialFailure != nil {
		inject.EntryFaults = make([]string, about.Records)
		for i := range inject.EntryFaults {
			inject.EntryFaults[i] = fault.PartialFailure(i)
		}
	}
	buf := answers.Get().(*[]byte)
	// Over HTTP/2 the connection may still be sending a frame of a reset stream, so the buffer
	// cannot be reused.
	if x.r.ProtoMajor == 1 {
		defer answers.Put(buf)
	}
	out := codec.NewEncoder(x.format, (*buf)[:0], s.cfg.IndefiniteCBOR)
	err := s.do(x, req, inject, out)
	body := out.Bytes()
	*buf = body[:0]
	if e := s.carriedOut(x, fault, err); e != nil {
		return e
	}
	if fault.Rewrite != nil {
		body = fault.Rewrite(bytes.Clone(body))
	}
	s.debug(x, http.StatusOK, "")
	h := x.w.Header()
	h.Set("Content-Type", x.format.ContentType())
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if n := fault.CutAfter; n != 0 && n < len(body) {
		// Ignore the error: the client may have disconnected, and the connection is cut next.
		_, _ = x.w.Write(body[:max(0, n)])
		_ = http.NewResponseController(x.w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = x.w.Write(body) // the client may have disconnected
	return nil
}

// carriedOut applies the part of a fault that follows the execution of a call. It returns the error
// to answer, or nil.
func (s *Server) carriedOut(x *exchange, fault *Fault, err error) *Error {
	if fault.After != nil {
		fault.After()
	}
	if fault.LoseAnswer {
		panic(http.ErrAbortHandler)
	}
	if err == nil {
		return nil
	}
	return s.errorOf(x, err)
}

// errorOf converts an error of the engine to an error answer.
func (s *Server) errorOf(x *exchange, err error) *Error {
	e := (*engine.Error)(nil)
	if !errors.As(err, &e) {
		s.cfg.Logger.Error("kinesistest: a call failed", "action", x.action, "error", err)
		return &Error{"InternalFailure", err.Error(), 500}
	}
	return &Error{e.Code, e.Message, e.Status}
}

func (s *Server) debug(x *exchange, status int, code string) {
	s.cfg.Logger.Debug("kinesistest: call", "action", x.action, "format", x.format, "status", status, "code", code)
}

// allowedHosts returns the names, other than loopback names, under which clients may address the
// server.
func allowedHosts(cfg Config) map[string]bool {
	hosts := map[string]bool{memoryHost: cfg.InMemory}
	if host, _, err := net.SplitHostPort(cfg.Addr); err == nil && host != "" {
		hosts[strings.ToLower(host)] = true
	}
	for _, h := range cfg.Hosts {
		hosts[strings.ToLower(strings.TrimSuffix(h, "."))] = true
	}
	return hosts
}

// everywhere reports whether a listening address covers all interfaces.
func everywhere(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsUnspecified()
}

// knows reports whether a Host header contains an allowed name of this server.
func (s *Server) knows(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || s.hosts[host] {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.IsLoopback() || s.anywhere)
}

// requestIDs creates request IDs. An ID consists of a random prefix, which all IDs of one server
// share, and a counter.
type requestIDs struct {
	prefix string
	seed   [64]byte // input of the second ID, which has 72 bytes in base64
	count  *atomic.Uint64
}

func newRequestIDs() (requestIDs, error) {
	ids := requestIDs{count: new(atomic.Uint64)}
	if _, err := io.ReadFull(rand.Reader, ids.seed[:]); err != nil {
		return requestIDs{}, err
	}
	h := hex.EncodeToString(ids.seed[:8])
	ids.prefix = h[:8] + "-" + h[8:12] + "-" + h[12:] + "-"
	return ids, nil
}

func (ids *requestIDs) next() (id, id2 string) {
	var b [72]byte
	copy(b[:], ids.seed[:])
	binary.BigEndian.PutUint64(b[64:], ids.count.Add(1))
	h := hex.EncodeToString(b[64:])
	return ids.prefix + h[:4] + "-" + h[4:], base64.StdEncoding.EncodeToString(b[:])
}
