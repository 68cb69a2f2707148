package kinesistest

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
	"github.com/weir-go/weir/kinesistest/internal/engine"
	"github.com/weir-go/weir/kinesistest/internal/eventstream"
)

const (
	// busyGrace is how long a call waits for the end of the subscription that blocks it. A client
	// that ends one and begins another at once should not depend on which of its two connections
	// the server reads first.
	busyGrace = 20 * time.Millisecond

	// lateEnd is how long after its end a subscription is cut if its client does not read, so that
	// not even the end can be written.
	lateEnd = 5 * time.Second
)

// eventStream is the answer to one call of SubscribeToShard. Only the goroutine of the call uses
// it.
type eventStream struct {
	s     *Server
	x     *exchange
	ctx   context.Context // ends when the client disconnects or the server is closed
	sub   *engine.Subscription
	fault *Fault
	flush *http.ResponseController

	sent      int             // bytes
	events    int             // number of sent events
	trigger   <-chan struct{} // of the fault, nil after it fired
	unknown   bool            // the unknown event of the fault was sent
	corrupted bool            // its corrupt event was sent
}

// subscribe carries out SubscribeToShard, and answers until the stream ends. The error is the
// answer instead of a stream.
func (s *Server) subscribe(x *exchange, req *engine.SubscribeToShard, fault *Fault) *Error {
	x.release() // not held for the minutes of the stream
	ctx, cancel := context.WithCancel(x.r.Context())
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()

	defer func() { s.engine.Unsubscribe(req.Subscription) }()
	initial := codec.NewEncoder(x.format, nil, s.cfg.IndefiniteCBOR)
	err := s.begin(ctx, x, req, initial)
	if e := s.carriedOut(x, fault, err); e != nil {
		return e
	}
	s.debug(x, http.StatusOK, "")
	st := &eventStream{
		s: s, x: x, ctx: ctx, sub: req.Subscription, fault: fault, trigger: fault.Subscription.Trigger,
		flush: http.NewResponseController(x.w),
	}
	st.open(initial.Bytes())
	st.run()
	return nil
}

// begin creates the subscription. If one that is about to end blocks it, begin waits for that.
func (s *Server) begin(ctx context.Context, x *exchange, req *engine.SubscribeToShard, out *codec.Encoder) error {
	err := s.engine.Do(time.Now(), x.action, req, engine.Inject{}, out)
	if req.Busy == nil {
		return err
	}
	grace := time.NewTimer(busyGrace)
	defer grace.Stop()
	select {
	case <-req.Busy:
		return s.engine.Do(time.Now(), x.action, req, engine.Inject{}, out)
	case <-grace.C:
	case <-ctx.Done():
	}
	return err
}

// open sends the beginning of a stream.
func (st *eventStream) open(initial []byte) {
	f := &st.fault.Subscription
	if f.HeaderDelay > 0 && !sleep(st.ctx, f.HeaderDelay) {
		panic(http.ErrAbortHandler)
	}
	// Not every ResponseWriter supports deadlines. Those of net/http do.
	_ = st.flush.SetWriteDeadline(time.Now().Add(st.s.cfg.SubscriptionLife + lateEnd))
	st.x.w.Header().Set("Content-Type", eventstream.ContentType)
	st.x.w.WriteHeader(http.StatusOK)
	if st.fault.CutAfter < 0 || f.NoInitialResponse {
		st.write(nil)
		return
	}
	st.write(st.frame(initial, eventHeader("initial-response")...))
}

// run sends events until the stream ends.
func (st *eventStream) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if st.faultEnds() {
			return
		}
		step := st.s.engine.Next(time.Now(), st.sub)
		if step.End {
			// Unsubscribe before the client learns of the end and calls again.
			st.s.engine.Unsubscribe(st.sub)
		}
		if step.Event != nil {
			st.event(step.Event)
		}
		if step.Err != nil {
			e := st.s.errorOf(st.x, step.Err)
			st.exception(e.Code, e.Message)
		}
		if step.End {
			return
		}
		if step.Event != nil {
			continue
		}
		timer.Reset(step.Wait)
		select {
		case <-st.sub.Woken():
		case <-timer.C:
		case <-st.trigger:
		case <-st.ctx.Done():
			panic(http.ErrAbortHandler)
		}
	}
}

// faultDue reports whether the fields of the fault act that wait for events and a trigger.
func (st *eventStream) faultDue() bool {
	select {
	case <-st.trigger:
		st.trigger = nil
	default:
	}
	return st.events >= st.fault.Subscription.Events && st.trigger == nil
}

// faultEnds applies the fault, if it is due, except its effects on the next event, and reports
// whether the stream is over.
func (st *eventStream) faultEnds() bool {
	f := &st.fault.Subscription
	if !st.faultDue() {
		return false
	}
	if f.UnknownEvent && !st.unknown {
		st.unknown = true
		st.write(st.frame([]byte("{}"), eventHeader("EventOfTomorrow")...))
	}
	if f.Corrupt && !st.corrupted {
		return false
	}
	switch {
	case f.Exception != nil:
		st.s.engine.Unsubscribe(st.sub)
		e := f.Exception.withDefaults()
		st.exception(e.Code, e.Message)
	case f.ProtocolError != nil:
		st.s.engine.Unsubscribe(st.sub)
		e := f.ProtocolError.withDefaults()
		st.write(eventstream.Close(eventstream.Open(nil,
			eventstream.Header{Name: ":message-type", Value: "error"},
			eventstream.Header{Name: ":error-code", Value: e.Code},
			eventstream.Header{Name: ":error-message", Value: e.Message}), 0))
	case f.CutEvent:
		return false
	case f.End:
	case f.HalfOpen:
		// Over HTTP/2 a deadline resets the stream even if nothing is written.
		_ = st.flush.SetWriteDeadline(time.Time{})
		<-st.ctx.Done()
		panic(http.ErrAbortHandler)
	default:
		return false
	}
	return true
}

// eventHeader returns the headers of an event, except the content type.
func eventHeader(kind string) []eventstream.Header {
	return []eventstream.Header{{Name: ":message-type", Value: "event"}, {Name: ":event-type", Value: kind}}
}

func (st *eventStream) contentType() eventstream.Header {
	return eventstream.Header{Name: ":content-type", Value: st.x.format.ContentType()}
}

func (st *eventStream) frame(payload []byte, headers ...eventstream.Header) []byte {
	buf := eventstream.Open(nil, append(headers, st.contentType())...)
	return eventstream.Close(append(buf, payload...), 0)
}

// exception sends an error of the service as the last frame.
func (st *eventStream) exception(code, message string) {
	out := codec.NewEncoder(st.x.format, nil, st.s.cfg.IndefiniteCBOR)
	out.Map()
	out.Key("message").Text(message)
	out.End()
	st.s.debug(st.x, http.StatusOK, code)
	st.write(st.frame(out.Bytes(),
		eventstream.Header{Name: ":message-type", Value: "exception"},
		eventstream.Header{Name: ":exception-type", Value: code}))
}

// event sends an event, with the effects of the fault.
func (st *eventStream) event(ev *engine.Event) {
	buf := answers.Get().(*[]byte)
	frame := eventstream.Open((*buf)[:0], append(eventHeader("SubscribeToShardEvent"), st.contentType())...)
	head := len(frame)
	out := codec.NewEncoder(st.x.format, frame, st.s.cfg.IndefiniteCBOR)
	ev.Write(out)
	frame = out.Bytes()
	if st.fault.Rewrite != nil {
		frame = append(frame[:head], st.fault.Rewrite(bytes.Clone(frame[head:]))...)
	}
	frame = eventstream.Close(frame, 0)
	f := &st.fault.Subscription
	if st.faultDue() {
		switch {
		case f.Corrupt && !st.corrupted:
			st.corrupted = true
			frame[len(frame)-1] ^= 1
		case f.CutEvent && f.Exception == nil && f.ProtocolError == nil:
			st.write(frame[:len(frame)/2])
			panic(http.ErrAbortHandler)
		}
	}
	st.write(frame)
	if f.Duplicate {
		st.write(frame)
	}
	st.events++
	// It was written completely; otherwise this code would not be reached.
	*buf = frame[:0]
	answers.Put(buf)
}

// write sends bytes at once. It panics if that fails.
func (st *eventStream) write(p []byte) {
	n := st.fault.CutAfter
	cut := n != 0 && st.sent+len(p) >= n
	if cut {
		p = p[:max(0, n-st.sent)]
	}
	if len(p) > 0 {
		if _, err := st.x.w.Write(p); err != nil {
			panic(http.ErrAbortHandler) // the client disconnected, or did not read
		}
	}
	st.sent += len(p)
	// A writer that cannot flush is not a network connection.
	if err := st.flush.Flush(); cut || err != nil && !errors.Is(err, http.ErrNotSupported) {
		panic(http.ErrAbortHandler)
	}
}
