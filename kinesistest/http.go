package kinesistest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
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

// maxBody bounds a request: 10 MiB of data in base64, five hundred keys in
// escapes, and room to spare.
const maxBody = 20 << 20

const targetPrefix = "Kinesis_20131202."

// exchange is one HTTP request and what is known of it so far.
type exchange struct {
	w      http.ResponseWriter
	r      *http.Request
	format codec.Format
	action string
	body   *bytes.Buffer // nil when it was released
}

// release gives the body back, which nothing may refer to any more.
func (x *exchange) release() {
	if x.body != nil {
		bodies.Put(x.body)
		x.body = nil
	}
}

// ServeHTTP answers one request. It may be mounted in another server, but then
// Close does not reach that server's connections.
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
	id := s.ids.next()
	w.Header().Set("X-Amzn-Requestid", id)
	w.Header().Set("X-Amz-Id-2", id)
	if err := s.route(x); err != nil {
		s.refuse(x, err)
	}
}

// route checks what can be told from the head of a request, reads its body and
// has the call answered. The error is what to answer instead.
func (s *Server) route(x *exchange) *Error {
	r := x.r
	if !s.knows(r.Host) {
		return &Error{"AccessDeniedException", fmt.Sprintf("This server does not go by the name %q. Call it by a loopback address, or add the name (Config.Hosts; weir local --host).", r.Host), 403}
	}
	if r.URL.Path != "/" {
		return &Error{"UnknownOperationException", "Kinesis is called with POST /.", 404}
	}
	if r.Method != http.MethodPost {
		x.w.Header().Set("Allow", http.MethodPost)
		return &Error{"UnknownOperationException", "Kinesis is called with POST /.", 405}
	}
	ok := false
	if x.format, ok = formatOf(r.Header.Get("Content-Type")); !ok {
		return &Error{"UnknownOperationException", "Content-Type has to be application/x-amz-json-1.1 or application/x-amz-cbor-1.1.", 415}
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return &Error{"SerializationException", "A Content-Encoding is not supported.", 400}
	}
	if err := readBody(x); err != nil {
		return err
	}
	defer x.release()
	return s.call(x, x.body.Bytes())
}

// bodies are buffers for requests. Nothing that outlives a call refers to one.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readBody reads all of the body, also where the answer does not need it: a
// client that still writes might not see an answer.
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
		panic(http.ErrAbortHandler) // the client went away in the middle of its request
	}
	x.body = body
	return nil
}

// call decodes, controls and carries out one call, and answers it. Nothing that
// it keeps refers to the body.
func (s *Server) call(x *exchange, body []byte) *Error {
	action, ok := strings.CutPrefix(x.r.Header.Get("X-Amz-Target"), targetPrefix)
	if !ok {
		return &Error{"UnknownOperationException", "X-Amz-Target has to be " + targetPrefix + " and the name of an operation.", 400}
	}
	x.action = action
	req, known := engine.NewRequest(action)
	n, ask := s.arrived(action, known)
	if err := checkSignature(x.r); err != nil {
		return err
	}
	if !known {
		return &Error{"UnknownOperationException", unknownOperation(action), 400}
	}
	if err := decode(x.format, body, req); err != nil {
		return &Error{"SerializationException", err.Error(), 400}
	}
	about := s.engine.Target(req)
	call := &Call{
		Context: x.r.Context(),
		Action:  action, Stream: about.Stream, Shard: about.Shard, Consumer: about.Consumer, Records: about.Records,
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
	if len(body) == 0 && f == codec.JSON {
		return nil // as {}
	}
	d := codec.NewDecoder(f, body)
	if err := req.Fields().Decode(d); err != nil {
		return err
	}
	return d.End()
}

// answers are buffers for answers, which grow to 10 MiB and more.
var answers = sync.Pool{New: func() any { return new([]byte) }}

// answer carries a call out and sends the answer.
func (s *Server) answer(x *exchange, req engine.Request, about engine.Target, fault *Fault) *Error {
	inject := engine.Inject{EmptyPage: fault.EmptyPage}
	if fault.PartialFailure != nil {
		inject.EntryFaults = make([]string, about.Records)
		for i := range inject.EntryFaults {
			inject.EntryFaults[i] = fault.PartialFailure(i)
		}
	}
	buf := answers.Get().(*[]byte)
	if x.r.ProtoMajor == 1 { // over HTTP/2, a frame of a stream that was reset may still be on its way
		defer answers.Put(buf)
	}
	out := codec.NewEncoder(x.format, (*buf)[:0], s.cfg.IndefiniteCBOR)
	err := s.engine.Do(time.Now(), x.action, req, inject, out)
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
		_, _ = x.w.Write(body[:max(0, n)]) // the client may have gone, and will be cut off anyway
		_ = http.NewResponseController(x.w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = x.w.Write(body) // there is nobody to tell about a client that went away
	return nil
}

// carriedOut does what a fault wants once a call was carried out, and returns
// the error that is to be answered, if there is one.
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

// errorOf is an error of the engine as it is answered.
func (s *Server) errorOf(x *exchange, err error) *Error {
	e := (*engine.Error)(nil)
	if !errors.As(err, &e) {
		s.cfg.Logger.Error("kinesistest: a call failed", "action", x.action, "error", err)
		return &Error{"InternalFailure", err.Error(), 500}
	}
	return &Error{e.Code, e.Message, e.Status}
}

// refuse answers with an error.
func (s *Server) refuse(x *exchange, e *Error) {
	s.debug(x, e.Status, e.Code)
	out := codec.NewEncoder(x.format, nil, s.cfg.IndefiniteCBOR)
	out.Map()
	out.Key("__type").Text(e.Code)
	// The one error that spells it with a capital.
	if e.Code == "SerializationException" {
		out.Key("Message").Text(e.Message)
	} else {
		out.Key("message").Text(e.Message)
	}
	out.End()
	h := x.w.Header()
	h.Set("Content-Type", x.format.ContentType())
	h.Set("X-Amzn-Errortype", e.Code)
	h.Set("Content-Length", strconv.Itoa(len(out.Bytes())))
	x.w.WriteHeader(e.Status)
	_, _ = x.w.Write(out.Bytes())
}

func (s *Server) debug(x *exchange, status int, code string) {
	s.cfg.Logger.Debug("kinesistest: call", "action", x.action, "format", x.format, "status", status, "code", code)
}

func formatOf(contentType string) (codec.Format, bool) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return codec.JSON, false
	}
	switch media {
	// Neither can be sent by a web page of another origin without being asked for first.
	case "application/x-amz-json-1.1", "application/x-amz-json-1.0", "application/json":
		return codec.JSON, true
	case "application/x-amz-cbor-1.1":
		return codec.CBOR, true
	}
	return codec.JSON, false
}

// checkSignature wants a signature to be there. What it is made with does not
// matter.
func checkSignature(r *http.Request) *Error {
	auth := r.Header.Get("Authorization")
	if auth == "" && r.URL.Query().Get("X-Amz-Signature") != "" {
		return nil
	}
	if auth == "" {
		return &Error{"MissingAuthenticationTokenException", "Missing Authentication Token: sign the request, any credentials will do.", 400}
	}
	if !strings.HasPrefix(auth, "AWS4-") {
		return &Error{"IncompleteSignatureException", "Authorization has to be a signature of version 4.", 400}
	}
	for _, part := range []string{"Credential=", "Signature=", "SignedHeaders="} {
		if !strings.Contains(auth, part) {
			return &Error{"IncompleteSignatureException", "Authorization header requires '" + strings.TrimSuffix(part, "=") + "' parameter.", 400}
		}
	}
	return nil
}

// allowedHosts are the names a server goes by besides loopback ones.
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

// everywhere reports whether an address to listen on is that of all interfaces.
func everywhere(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsUnspecified()
}

// knows reports whether a Host header names this server.
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

// requestIDs makes the ids of requests: the same random start for all of one
// server, then a counter.
type requestIDs struct {
	prefix string
	count  *atomic.Uint64
}

func newRequestIDs() (requestIDs, error) {
	var b [8]byte
	if _, err := io.ReadFull(rand.Reader, b[:]); err != nil {
		return requestIDs{}, err
	}
	h := hex.EncodeToString(b[:])
	return requestIDs{prefix: h[:8] + "-" + h[8:12] + "-" + h[12:] + "-", count: new(atomic.Uint64)}, nil
}

func (ids *requestIDs) next() string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], ids.count.Add(1))
	h := hex.EncodeToString(b[:])
	return ids.prefix + h[:4] + "-" + h[4:]
}
