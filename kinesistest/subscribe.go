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
	// busyGrace is the time that a call waits for the end of a subscription that blocks it. A
	// client may end a subscription and start the next one immediately. Without this wait, the
	// result would depend on the order in which the server reads the two connections.
	busyGrace = 20 * time.Millisecond

	// lateEnd is the time between the end of a subscription and the write deadline of its
	// connection. The deadline matters if the client does not read, because the server then cannot
	// even write the end.
	lateEnd = 5 * time.Second
)

// eventStream is the answer to one SubscribeToShard call. Only the goroutine of the call uses it.
type eventStream struct {
	s     *Server
	x     *exchange
	ctx   context.Context // ends when the client disconnects or the server is closed
	sub   *engine.Subscription
	fault *Fault
	flush *http.ResponseController

	sent      int             // bytes
	events    int             // number of sent events
	trigger   <-chan struct{} // trigger of the fault; nil after it fired
	unknown   bool            // the fault's unknown event was sent
	corrupted bool            // the fault's corrupt event was sent
}

// subscribe carries out a SubscribeToShard call and sends events until the stream ends. A returned
// error is the answer, in place of a stream.
func (s *Server) subscribe(x *exchange, req *engine.SubscribeToShard, fault *Fault) *Error {
	x.release() // the stream lasts for minutes and does not need the body
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

// begin creates the subscription. If another subscription blocks it, begin waits up to busyGrace
// for the end of that subscription.
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

// open sends the header and the initial-response of a stream.
func (st *eventStream) open(initial []byte) {
	f := &st.fault.Subscription
	if f.HeaderDelay > 0 && !sleep(st.ctx, f.HeaderDelay) {
		panic(http.ErrAbortHandler)
	}
	// Not every ResponseWriter supports deadlines, so errors are ignored. The writers of net/http
	// support them.
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
			// Unsubscribe first. Otherwise the client could learn of the end and call again too
			// early.
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

// faultDue reports whether Events and Trigger of the fault allow its later fields to take effect.
func (st *eventStream) faultDue() bool {
	select {
	case <-st.trigger:
		st.trigger = nil
	default:
	}
	return st.events >= st.fault.Subscription.Events && st.trigger == nil
}

// faultEnds applies the fault if it is due, and reports whether the stream is over. Faults that
// change the next event are left to the method event.
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
		// Over HTTP/2, an expired deadline resets the stream even if nothing is written. Remove the
		// deadline.
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

// exception sends an error of the service as the last frame of the stream.
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

// event sends an event and applies the fault to it.
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
	// A failed write panics, so the event was written completely.
	*buf = frame[:0]
	answers.Put(buf)
}

// write sends p immediately. It panics if the write fails.
func (st *eventStream) write(p []byte) {
	n := st.fault.CutAfter
	cut := n != 0 && st.sent+len(p) >= n
	if cut {
		p = p[:max(0, n-st.sent)]
	}
	if len(p) > 0 {
		if _, err := st.x.w.Write(p); err != nil {
			panic(http.ErrAbortHandler) // the client disconnected or does not read
		}
	}
	st.sent += len(p)
	// A writer that cannot flush does not belong to a network connection, so ignore that error.
	if err := st.flush.Flush(); cut || err != nil && !errors.Is(err, http.ErrNotSupported) {
		panic(http.ErrAbortHandler)
	}
}
