package kinesistest

import (
	"context"
	"time"
)

// Call is a call that arrived, as a control function sees it.
type Call struct {
	// Context ends when the client goes away or the server is closed.
	Context context.Context
	// Action is the operation, for example "GetRecords".
	Action string
	// Stream, Shard and Consumer are the names of what the call is about, as far
	// as the request says so: GetRecords has a stream and a shard through its
	// iterator, PutRecords a stream only.
	Stream, Shard, Consumer string
	// Records is how many records PutRecord or PutRecords brings.
	Records int
	// N is how many calls of this action have arrived so far, this one included.
	N int
	// Format is "json" or "cbor".
	Format string
	// Proto is the version of HTTP, for example "HTTP/1.1".
	Proto string
	// Body is the request as it was sent. It belongs to the server: it may be
	// read until the control function returns, and not be changed.
	Body []byte
}

// Fault says how a call is to go wrong. The zero Fault is a call that goes
// right. Fields can be combined; they act in the order in which they stand here.
type Fault struct {
	// Delay is waited before anything else happens. A call whose client goes
	// away meanwhile is not carried out.
	Delay time.Duration

	// Err is answered instead of carrying the call out.
	Err *Error

	// Cut closes the connection before the call is carried out and without an
	// answer. Over HTTP/2 the stream is reset instead.
	Cut bool

	// EmptyPage makes GetRecords answer without records and an iterator for
	// the same position, however much there is to read.
	EmptyPage bool

	// PartialFailure is asked for each record of PutRecords, by index, and
	// returns an error code such as "ProvisionedThroughputExceededException" or
	// "InternalFailure", or "" for a record that is stored.
	PartialFailure func(i int) string

	// After runs when the call has been carried out, before it is answered.
	After func()

	// LoseAnswer carries the call out and then closes the connection without an
	// answer.
	LoseAnswer bool

	// Rewrite returns the body that is sent instead of the one it is given,
	// which it may change. The answer to SubscribeToShard is a stream: there,
	// Rewrite is asked about the payload of each event.
	Rewrite func(body []byte) []byte

	// CutAfter sends so many bytes of the body, under a header that promises all
	// of it, and then closes the connection. Negative sends the header alone, 0
	// the whole body. The body of SubscribeToShard is all of its frames.
	CutAfter int

	// Subscription is about the event stream that answers SubscribeToShard.
	// Other actions do not have it.
	Subscription SubscriptionFault
}

// SubscriptionFault says how an event stream is to go wrong that answers
// SubscribeToShard, when the call itself went right: the subscription is made,
// and in the way of another call as long as the stream is there. For errors
// instead of a stream there are [Fault.Err], Cut and LoseAnswer. The zero
// SubscriptionFault is a stream that goes right. Fields can be combined; they
// act in the order in which they stand here, and of those that end the stream
// the first one does. Where a connection is closed, over HTTP/2 the stream is
// reset.
type SubscriptionFault struct {
	// HeaderDelay is waited before the header of the answer is sent.
	HeaderDelay time.Duration

	// NoInitialResponse leaves out the frame of type initial-response with which
	// every stream begins. The header is sent.
	NoInitialResponse bool

	// Duplicate sends each event twice.
	Duplicate bool

	// Events is how many events are sent before the fields below act. Empty
	// events count, the copies of Duplicate do not. With 0 they act on a stream
	// without any event.
	Events int

	// Trigger, if it is not nil, is another condition: the fields below act when
	// it has been closed, and not before Events.
	Trigger <-chan struct{}

	// UnknownEvent sends one event of a type that the API does not have.
	UnknownEvent bool

	// Corrupt sends the next event, also an empty one, with a wrong checksum.
	Corrupt bool

	// Exception ends the stream with an exception of the service, for example
	// "KMSThrottlingException" or "InternalFailureException". Status does not
	// matter.
	Exception *Error

	// ProtocolError ends the stream with a frame of type error, which has a code
	// and a message and no payload. Status does not matter.
	ProtocolError *Error

	// CutEvent sends the first half of the next event, also of an empty one,
	// and closes the connection.
	CutEvent bool

	// End ends the stream in good order.
	End bool

	// HalfOpen sends nothing any more and leaves the connection open, until the
	// client closes it or the server is closed. Neither the end of the shard nor
	// five minutes end such a stream, and another subscription may take over
	// from it without its client being told.
	HalfOpen bool
}

// Error is an answer of the service that is not a result.
type Error struct {
	Code    string // for example "ProvisionedThroughputExceededException"
	Message string // by default a text that says that a test asked for it
	// of HTTP, 400 by default, or 500 for InternalFailure and 503 for ServiceUnavailable
	Status int
}

func (e *Error) Error() string { return "kinesistest: " + e.Code + ": " + e.Message }

func (e *Error) withDefaults() Error {
	d := *e
	if d.Code == "" {
		d.Code = "InternalFailure"
	}
	if d.Message == "" {
		d.Message = "A test asked for this error."
	}
	if d.Status == 0 {
		switch d.Code {
		case "InternalFailure", "InternalFailureException":
			d.Status = 500
		case "ServiceUnavailable", "ServiceUnavailableException":
			d.Status = 503
		default:
			d.Status = 400
		}
	}
	return d
}

// Control has f asked about each call of an action, or of every action if
// action is empty. A function for the very action is asked first; one for every
// action only if that one wants no fault. f runs while the call waits, in the
// goroutine of the call, without any lock of the server: it may use the server,
// and it may block, but not beyond the end of Call.Context. It must not call
// Close, which waits for it. It has to be safe for concurrent calls. nil removes
// the function.
func (s *Server) Control(action string, f func(*Call) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f == nil {
		delete(s.controls, action)
		return
	}
	s.controls[action] = f
}

// Requests returns how many calls of an action have arrived, or of all actions
// if action is empty. Calls that were answered with an error count, and so do
// those of an unknown action, which only the total shows.
func (s *Server) Requests(action string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[action]
}

// arrived counts a call and returns the functions to ask about it.
func (s *Server) arrived(action string, known bool) (n int, ask []func(*Call) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[""]++
	if !known {
		return 0, nil
	}
	s.counts[action]++
	for _, key := range []string{action, ""} {
		if f := s.controls[key]; f != nil {
			ask = append(ask, f)
		}
	}
	return s.counts[action], ask
}

// wanted reports whether a fault is one.
func (f *Fault) wanted() bool {
	return f.Delay != 0 || f.Err != nil || f.Cut || f.EmptyPage || f.PartialFailure != nil || f.After != nil ||
		f.LoseAnswer || f.Rewrite != nil || f.CutAfter != 0 || f.Subscription != SubscriptionFault{}
}
