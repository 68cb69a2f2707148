package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/weir-go/weir/internal/proof/sim/model"
)

// service is Kinesis for a life. It is an HTTP transport without a network.
type service struct{ l *life }

// httpAnswer is an answer that may be incomplete.
type httpAnswer struct {
	model.Answer
	broken bool
	sub    *model.Subscription
	date   string // Date header of the answer
}

// date returns the time of the service's clock in the format of its answers. It is the same text
// for a whole second.
func (w *world) date() string {
	now := w.clock()
	if second := now.Unix(); second != w.dated.second {
		w.dated.second, w.dated.text = second, now.UTC().Format(http.TimeFormat)
	}
	return w.dated.text
}

// exchange is a request with its answer and most of their data, in one allocation.
type exchange struct {
	call   call
	asked  model.Call
	answer http.Response
	fields [3]string
	body   bytes.Reader
	whole  model.Answer // the answer, whose memory Close releases
}

// Read reads the body of the answer.
func (e *exchange) Read(b []byte) (int, error) { return e.body.Read(b) }

// Close releases the body of the answer.
func (e *exchange) Close() error {
	e.body.Reset(nil)
	e.whole.Release()
	return nil
}

// RoundTrip implements http.RoundTripper.
func (s service) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body = make([]byte, max(r.ContentLength, 0))
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, fmt.Errorf("sim: a request's body is not as long as it says: %w", err)
		}
		_ = r.Body.Close()
	}
	e := new(exchange)
	var err error
	if e.asked, err = model.Read(r.Header.Get("X-Amz-Target"), r.Header.Get("Content-Type"), body); err != nil {
		return nil, fmt.Errorf("sim: a request that the model does not understand: %w", err)
	}
	what := e.asked.Stream
	if e.asked.Shard != "" {
		what = about(e.asked.Stream, e.asked.Shard)
	}
	e.call = call{life: s.l, op: e.asked.Op, about: what, ctx: r.Context(), body: &e.asked}
	got := s.l.w.gate.wait(&e.call)
	if got.err != nil {
		return nil, got.err
	}
	a := got.value.(httpAnswer)
	e.fields = [...]string{"application/x-amz-json-1.1", "sim", a.date}
	if a.CBOR {
		e.fields[0] = "application/x-amz-cbor-1.1"
	}
	length := int64(len(a.Body))
	var stream io.ReadCloser
	switch {
	case a.sub != nil:
		e.fields[0], length = "application/vnd.amazon.eventstream", -1
		stream = newEvents(s.l, what, r.Context(), a.Body, a.sub)
	case a.broken:
		stream = io.NopCloser(io.MultiReader(bytes.NewReader(a.Body[:len(a.Body)/2]), brokenOff{}))
	default:
		e.whole = a.Answer
		e.body.Reset(a.Body)
		stream = e
	}
	e.answer = http.Response{
		StatusCode: a.Status, Status: http.StatusText(a.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		ContentLength: length, Body: stream,
		Header: http.Header{
			"Content-Type": e.fields[:1:1], "X-Amzn-Requestid": e.fields[1:2:2], "Date": e.fields[2:],
		},
	}
	return &e.answer, nil
}

var errConnection = errors.New("sim: the connection broke")

type brokenOff struct{}

func (brokenOff) Read([]byte) (int, error) { return 0, errConnection }
