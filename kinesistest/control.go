package kinesistest

import (
	"context"
	"time"
)

// Call is an arrived call, as passed to a control function.
type Call struct {
	// Context ends when the client goes away or the server is closed.
	Context context.Context
	// Action is the operation, for example "GetRecords".
	Action string
	// Stream, Shard and Consumer are the names in the request, as far as it contains them:
	// GetRecords has a stream and a shard through its iterator, PutRecords a stream only.
	Stream, Shard, Consumer string
	// Records is the number of records in PutRecord or PutRecords.
	Records int
	// N is the number of calls of this action so far, including this one.
	N int
	// Format is "json" or "cbor".
	Format string
	// Proto is the version of HTTP, for example "HTTP/1.1".
	Proto string
	// Body is the request as sent. It belongs to the server: a control function may read it until
	// it returns, and must not change it.
	Body []byte
}

// Fault is the way in which a call fails. The zero Fault is a successful call. Fields can be
// combined; they act in the order in which they are declared.
type Fault struct {
	// Delay delays the call before anything else. If the client disconnects meanwhile, the call is
	// not carried out.
	Delay time.Duration

	// Err is the answer, instead of carrying out the call.
	Err *Error

	// Cut closes the connection before the call is carried out and without an answer. Over HTTP/2
	// it resets the stream instead.
	Cut bool

	// EmptyPage makes GetRecords return no records and an iterator for the same position, even if
	// there are records.
	EmptyPage bool

	// PartialFailure is called for each record of PutRecords, with its index. It returns an error
	// code such as "ProvisionedThroughputExceededException" or "InternalFailure", or "" for a
	// record that is stored.
	PartialFailure func(i int) string

	// After is called when the call has been carried out, before the answer.
	After func()

	// LoseAnswer carries out the call and then closes the connection without an answer.
	LoseAnswer bool

	// Rewrite returns the body to send instead of the given one, which it may change. The answer to
	// SubscribeToShard is a stream: there, Rewrite is called for the payload of each event.
	Rewrite func(body []byte) []byte

	// CutAfter sends this many bytes of the body, under a header that promises all of it, and then
	// closes the connection. A negative value sends the header alone, 0 the whole body. The body of
	// SubscribeToShard is all of its frames.
	CutAfter int

	// Subscription is a fault of the event stream that answers SubscribeToShard. It has no effect
	// on other actions.
	Subscription SubscriptionFault
}

// SubscriptionFault is the way in which an event stream of a successful SubscribeToShard call
// fails. The subscription exists, and blocks another call while the stream is open. For errors
// instead of a stream use [Fault.Err], Cut and LoseAnswer. The zero SubscriptionFault is a stream
// without faults. Fields can be combined; they act in the order in which they are declared, and the
// first one that ends the stream applies. Over HTTP/2 the stream is reset instead of closing the
// connection.
type SubscriptionFault struct {
	// HeaderDelay delays the header of the answer.
	HeaderDelay time.Duration

	// NoInitialResponse omits the frame of type initial-response at the beginning of every stream.
	// The header is sent.
	NoInitialResponse bool

	// Duplicate sends each event twice.
	Duplicate bool

	// Events is the number of events to send before the fields below act. Empty events count, the
	// copies of Duplicate do not. With 0 they act on a stream without any event.
	Events int

	// Trigger is another condition if it is not nil: the fields below act when it is closed, and
	// not before Events.
	Trigger <-chan struct{}

	// UnknownEvent sends one event of a type that the API does not have.
	UnknownEvent bool

	// Corrupt sends the next event, even an empty one, with a wrong checksum.
	Corrupt bool

	// Exception ends the stream with an exception of the service, for example
	// "KMSThrottlingException" or "InternalFailureException". Status is ignored.
	Exception *Error

	// ProtocolError ends the stream with a frame of type error, which has a code and a message and
	// no payload. Status is ignored.
	ProtocolError *Error

	// CutEvent sends the first half of the next event, even of an empty one, and closes the
	// connection.
	CutEvent bool

	// End ends the stream without an error.
	End bool

	// HalfOpen sends nothing more and leaves the connection open, until the client closes it or the
	// server is closed. Neither the end of the shard nor five minutes end such a stream, and
	// another subscription may take over without a message to the client.
	HalfOpen bool
}

// Error is an error answer of the service.
type Error struct {
	Code    string // for example "ProvisionedThroughputExceededException"
	Message string // defaults to a text about the test's request
	// HTTP status: by default 400, or 500 for InternalFailure and 503 for ServiceUnavailable
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

// Control registers f for each call of an action, or of every action if action is empty. A function
// for the specific action is called first; one for every action only if the first returns no fault.
// f runs while the call waits, in the goroutine of the call, without any lock of the server. It may
// use the server, and it may block, but not beyond the end of Call.Context. It must not call Close,
// which waits for it. It must be safe for concurrent calls. nil removes the function.
func (s *Server) Control(action string, f func(*Call) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f == nil {
		delete(s.controls, action)
		return
	}
	s.controls[action] = f
}

// Requests returns the number of arrived calls of an action, or of all actions if action is empty.
// It includes calls that were answered with an error. Calls of an unknown action only count in the
// total.
func (s *Server) Requests(action string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[action]
}

// arrived counts a call and returns the control functions for it.
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

// wanted reports whether a fault is not zero.
func (f *Fault) wanted() bool {
	return f.Delay != 0 || f.Err != nil || f.Cut || f.EmptyPage || f.PartialFailure != nil || f.After != nil ||
		f.LoseAnswer || f.Rewrite != nil || f.CutAfter != 0 || f.Subscription != SubscriptionFault{}
}
