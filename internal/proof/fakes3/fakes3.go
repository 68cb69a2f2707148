// Package fakes3 is an S3 server in memory for tests. It supports objects, conditional writes,
// paged listings, and faults of calls. It imports no package of weir and no SDK.
package fakes3

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Server is an S3 server with one bucket. It accepts any name of a bucket in path-style requests.
// It is an [http.Handler], and also an [http.RoundTripper] that needs no network, so it works in
// virtual time.
type Server struct {
	mu      sync.Mutex
	objects map[string]*object
	calls   map[string]int
	control func(Call) Fault
	// IgnoreConditions makes writes ignore their conditions.
	IgnoreConditions bool
}

type object struct {
	body   []byte
	header http.Header
	etag   string
	at     time.Time
}

// Call describes a request. The server passes it to the control function.
type Call struct {
	// Context ends when the client disconnects.
	Context context.Context
	Method  string // PUT, GET, HEAD, DELETE or LIST
	Key     string // for LIST, the prefix
	N       int    // number of calls with this method, including this one
}

// Fault is the way in which a call fails.
type Fault uint8

const (
	None      Fault = iota
	Refuse          // fails with 503, without effect
	Deny            // fails with 403, without effect
	NoBucket        // fails with 404
	Elsewhere       // fails with 301, as for a bucket in another region
	Cut             // the connection ends, without effect
	Lose            // takes effect, but the answer is lost
)

// New returns an empty server.
func New() *Server { return &Server{objects: map[string]*object{}, calls: map[string]int{}} }

// Control registers a function that is called for each call. f may block. A nil f removes the
// function.
func (s *Server) Control(f func(Call) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.control = f
}

// Calls returns the number of calls with a method.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Keys returns the sorted keys of all objects.
func (s *Server) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// Get returns the content of an object. It returns nil if the object does not exist.
func (s *Server) Get(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[key]; o != nil {
		return o.body
	}
	return nil
}

// Put creates or overwrites an object.
func (s *Server) Put(key string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(key, body, http.Header{})
}

// Delete removes an object.
func (s *Server) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
}

func (s *Server) put(key string, body []byte, h http.Header) *object {
	sum := md5.Sum(body)
	o := &object{body: body, header: h, etag: `"` + hex.EncodeToString(sum[:]) + `"`, at: time.Now().UTC()}
	s.objects[key] = o
	return o
}

// ErrCut is the error of a call without a network whose connection was cut.
var ErrCut = errors.New("fakes3: the connection ended")

// Do makes a call without a network. With it, the server can serve as the HTTP client of an SDK.
func (s *Server) Do(r *http.Request) (*http.Response, error) { return s.RoundTrip(r) }

// RoundTrip makes a call without a network.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	if !s.serve(w, r) {
		return nil, ErrCut
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// ServeHTTP answers a call over a network.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.serve(w, r) {
		panic(http.ErrAbortHandler) //nolint:forbidigo // makes net/http end the connection
	}
}

// serve carries out a call. It returns false if the client gets no answer.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) bool {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return false
		}
	}
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	call := Call{Context: r.Context(), Method: r.Method, Key: key}
	if r.Method == http.MethodGet && key == "" {
		call = Call{Context: r.Context(), Method: "LIST", Key: r.URL.Query().Get("prefix")}
	}
	s.mu.Lock()
	s.calls[call.Method]++
	call.N = s.calls[call.Method]
	control := s.control
	s.mu.Unlock()
	fault := None
	if control != nil {
		fault = control(call)
	}
	switch fault {
	case Refuse:
		fail(w, http.StatusServiceUnavailable, "SlowDown")
		return true
	case Deny:
		fail(w, http.StatusForbidden, "AccessDenied")
		return true
	case NoBucket:
		fail(w, http.StatusNotFound, "NoSuchBucket")
		return true
	case Elsewhere:
		fail(w, http.StatusMovedPermanently, "PermanentRedirect")
		return true
	case Cut:
		return false
	case Lose:
		w = httptest.NewRecorder()
	case None:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked"):
		fail(w, http.StatusNotImplemented, "NotImplemented")
	case call.Method == "LIST":
		s.list(w, r.URL.Query())
	default:
		s.one(w, r, key, body)
	}
	return fault != Lose
}

func (s *Server) one(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	o := s.objects[key]
	match, noneMatch := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	switch r.Method {
	case http.MethodPut:
		switch {
		case s.IgnoreConditions:
		case noneMatch == "*" && o != nil, match != "" && o != nil && match != o.etag:
			fail(w, http.StatusPreconditionFailed, "PreconditionFailed")
			return
		case match != "" && o == nil:
			fail(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		w.Header().Set("ETag", s.put(key, body, r.Header.Clone()).etag)
	case http.MethodGet, http.MethodHead:
		if o == nil {
			fail(w, http.StatusNotFound, "NoSuchKey")
			return
		}
		w.Header().Set("ETag", o.etag)
		w.Header().Set("Content-Length", strconv.Itoa(len(o.body)))
		w.Header().Set("Last-Modified", o.at.Format(http.TimeFormat))
		for name, values := range o.header {
			if strings.HasPrefix(name, "X-Amz-Meta-") || name == "Content-Type" {
				w.Header()[name] = values
			}
		}
		if r.Method == http.MethodGet {
			_, _ = w.Write(o.body)
		}
	case http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	default:
		fail(w, http.StatusNotImplemented, "NotImplemented")
	}
}

type listing struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	IsTruncated           bool
	KeyCount              int
	NextContinuationToken string `xml:",omitempty"`
	Contents              []struct {
		Key          string
		Size         int
		ETag         string
		LastModified string
	}
	CommonPrefixes []struct{ Prefix string }
}

func (s *Server) list(w http.ResponseWriter, q url.Values) {
	most := 1000
	if n, err := strconv.Atoi(q.Get("max-keys")); err == nil {
		most = min(n, most)
	}
	after := max(q.Get("start-after"), q.Get("continuation-token"))
	prefix, delimiter := q.Get("prefix"), q.Get("delimiter")
	var l listing
	last := ""
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		name := key
		if at := strings.Index(strings.TrimPrefix(key, prefix), delimiter); delimiter != "" && at >= 0 && strings.HasPrefix(key, prefix) {
			name = key[:len(prefix)+at+len(delimiter)]
		}
		if !strings.HasPrefix(key, prefix) || key <= after || name == last || name != key && strings.HasPrefix(after, name) {
			continue
		}
		if l.KeyCount == most {
			l.IsTruncated, l.NextContinuationToken = true, last
			if strings.HasSuffix(last, delimiter) && delimiter != "" {
				l.NextContinuationToken = last + "\U0010ffff"
			}
			break
		}
		l.KeyCount++
		if last = name; name != key {
			l.CommonPrefixes = append(l.CommonPrefixes, struct{ Prefix string }{name})
			continue
		}
		o := s.objects[key]
		l.Contents = append(l.Contents, struct {
			Key          string
			Size         int
			ETag         string
			LastModified string
		}{key, len(o.body), o.etag, o.at.Format("2006-01-02T15:04:05.000Z")})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(l)
}

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, code)
}
