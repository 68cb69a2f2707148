package kinesistest

import (
	"context"
	"time"
)

// Call describes a call that has arrived. The server passes it to control functions.
type Call struct {
	// Context ends when the client disconnects or the server is closed.
	Context context.Context
	// Action is the operation, for example "GetRecords".
	Action string
	// Stream, Shard, Consumer and Queue are the names in the request. Names that the request does
	// not contain are empty. A GetRecords call has a stream and a shard, which come from its
	// iterator. A PutRecords call has only a stream. A call with the ARN of a queue has the queue's
	// name and its stream.
	Stream, Shard, Consumer, Queue string
	// Records is the number of records in a PutRecord or PutRecords call, or the number of receipt
	// handles.
	Records int
	// N is the number of calls of this action so far, including this one.
	N int
	// Format is "json" or "cbor".
	Format string
	// Proto is the version of HTTP, for example "HTTP/1.1".
	Proto string
	// Body is the request body as the client sent it. A control function may read it until the
	// function returns. The function must not change it.
	Body []byte
}

// Fault describes how a call fails. The zero Fault lets the call succeed. Fields can be combined.
// They take effect in the order of their declaration.
type Fault struct {
	// Delay delays the call before any other effect. The call is not carried out if the client
	// disconnects during the delay.
	Delay time.Duration

	// Err is returned to the client, and the call is not carried out.
	Err *Error

	// Cut closes the connection without an answer, before the call is carried out. Over HTTP/2 it
	// resets the stream instead.
	Cut bool

	// EmptyPage makes GetRecords return no records and an iterator for the same position, even if
	// records are available. It makes a receive from a queue return no records without a wait.
	EmptyPage bool

	// PartialFailure is called for each record of a PutRecords call, with the record's index. It
	// returns an error code such as "ProvisionedThroughputExceededException" or "InternalFailure".
	// An empty code stores the record. It is also called for each entry of a call with receipt
	// handles, for example AcknowledgeQueueRecords, whose codes are "ThrottlingException",
	// "InternalFailureException", "InvalidArgumentException" and "ResourceNotFoundException".
	PartialFailure func(i int) string

	// After is called after the call has been carried out and before the answer is sent.
	After func()

	// LoseAnswer carries out the call, and then closes the connection without an answer.
	LoseAnswer bool

	// Rewrite replaces the body of the answer: it receives the original body and returns the body
	// to send. It may change the slice that it receives. SubscribeToShard answers with a stream, so
	// Rewrite is called with the payload of each event.
	Rewrite func(body []byte) []byte

	// CutAfter closes the connection after this number of bytes of the body. The header still
	// announces the full length. A negative value sends only the header. Zero sends the whole body.
	// For SubscribeToShard the body consists of all frames of the stream.
	CutAfter int

	// Subscription is a fault in the event stream of SubscribeToShard. It has no effect on other
	// actions.
	Subscription SubscriptionFault
}

// SubscriptionFault describes how the event stream of a successful SubscribeToShard call fails. The
// zero value is a stream without faults. The subscription exists, and it blocks other calls while
// the stream is open. To fail the call itself, use [Fault.Err], [Fault.Cut] or [Fault.LoseAnswer].
//
// Fields can be combined. They take effect in the order of their declaration, and the first one
// that ends the stream wins. Over HTTP/2 the server resets the stream instead of closing the
// connection.
type SubscriptionFault struct {
	// HeaderDelay delays the header of the answer.
	HeaderDelay time.Duration

	// NoInitialResponse omits the initial-response frame, which normally begins every stream. The
	// header of the answer is still sent.
	NoInitialResponse bool

	// Duplicate sends each event twice.
	Duplicate bool

	// Events is the number of events to send before the following fields take effect. Empty events
	// count. The copies that Duplicate sends do not count. With 0 the following fields take effect
	// before the first event.
	Events int

	// Trigger delays the following fields until this channel is closed. The number in Events must
	// be reached too. A nil Trigger adds no delay.
	Trigger <-chan struct{}

	// UnknownEvent sends one event of a type that does not exist in the API.
	UnknownEvent bool

	// Corrupt sends the next event with a wrong checksum. It affects empty events too.
	Corrupt bool

	// Exception ends the stream with an exception of the service, for example
	// "KMSThrottlingException" or "InternalFailureException". The Status of the Error is ignored.
	Exception *Error

	// ProtocolError ends the stream with a frame of type error. Such a frame has a code and a
	// message, but no payload. The Status of the Error is ignored.
	ProtocolError *Error

	// CutEvent sends the first half of the next event and closes the connection. It affects empty
	// events too.
	CutEvent bool

	// End ends the stream cleanly, without an error.
	End bool

	// HalfOpen stops sending and leaves the connection open until the client closes it or the
	// server is closed. The end of the shard and the five-minute limit do not end such a stream.
	// Another subscription may take over, and the client receives no message about it.
	HalfOpen bool
}

// Error is an error answer of the service.
type Error struct {
	Code    string // for example "ProvisionedThroughputExceededException"
	Message string // empty: a text that mentions the test
	// Status is the HTTP status. The default is 500 for InternalFailure, 503 for ServiceUnavailable
	// and 400 for all other codes.
	Status int
}

// Error implements error.
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

// Control registers f for all calls of one action, or for all calls if action is empty. A nil f
// removes the registered function. The function for the specific action is called first. The
// function for all actions is called only if the first one returns no fault.
//
// f runs in the goroutine of the call, and the call waits for it. The server holds no lock, so f
// may use the server. f may block until Call.Context ends. It must be safe for concurrent calls. It
// must not call Close, because Close waits for f.
func (s *Server) Control(action string, f func(*Call) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f == nil {
		delete(s.controls, action)
		return
	}
	s.controls[action] = f
}

// Requests returns the number of calls of an action that have arrived, or of all calls if action is
// empty. Calls that failed are included. Calls of an unknown action count only in the total.
func (s *Server) Requests(action string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[action]
}

// arrived counts a call and returns the control functions to run for it.
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

// wanted reports whether f has any effect.
func (f *Fault) wanted() bool {
	return f.Delay != 0 || f.Err != nil || f.Cut || f.EmptyPage || f.PartialFailure != nil || f.After != nil ||
		f.LoseAnswer || f.Rewrite != nil || f.CutAfter != 0 || f.Subscription != SubscriptionFault{}
}
