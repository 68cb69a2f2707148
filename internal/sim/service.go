package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/weir-go/weir/internal/sim/model"
)

// service is Kinesis as a life sees it: an HTTP transport without a network.
type service struct{ l *life }

// httpAnswer is what comes back, perhaps not all of it.
type httpAnswer struct {
	model.Answer
	broken bool
	sub    *model.Subscription
	date   time.Time
}

// RoundTrip implements http.RoundTripper.
func (s service) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	asked, err := model.Read(r.Header.Get("X-Amz-Target"), r.Header.Get("Content-Type"), body)
	if err != nil {
		return nil, fmt.Errorf("sim: a request that the model does not understand: %w", err)
	}
	what := asked.Stream
	if asked.Shard != "" {
		what = about(asked.Stream, asked.Shard)
	}
	got := s.l.w.gate.wait(&call{life: s.l, op: asked.Op, about: what, ctx: r.Context(), body: asked})
	if got.err != nil {
		return nil, got.err
	}
	a := got.value.(httpAnswer)
	kind := "application/x-amz-json-1.1"
	if a.CBOR {
		kind = "application/x-amz-cbor-1.1"
	}
	content := io.Reader(bytes.NewReader(a.Body))
	if a.broken {
		content = io.MultiReader(bytes.NewReader(a.Body[:len(a.Body)/2]), brokenOff{})
	}
	stream := io.NopCloser(content)
	length := int64(len(a.Body))
	if a.sub != nil {
		kind, length = "application/vnd.amazon.eventstream", -1
		stream = newEvents(s.l, what, r.Context(), a.Body, a.sub)
	}
	return &http.Response{
		StatusCode: a.Status, Status: http.StatusText(a.Status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		ContentLength: length, Body: stream,
		Header: http.Header{
			"Content-Type": {kind}, "X-Amzn-Requestid": {"sim"}, "Date": {a.date.UTC().Format(http.TimeFormat)},
		},
	}, nil
}

var errConnection = errors.New("sim: the connection broke")

type brokenOff struct{}

func (brokenOff) Read([]byte) (int, error) { return 0, errConnection }
