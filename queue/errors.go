package queue

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

var (
	// ErrHoldLost is the cause of a handler's context when this process may no longer be the only
	// one that has the record: its hold ended, or the service refused to extend it. The record may
	// already be handled by another process.
	ErrHoldLost = errors.New("weir: the hold of the record was lost")
	// ErrQueueNotFound is wrapped by the errors of [Consumer.Run] and [Client.Find] if the queue
	// does not exist or is being deleted.
	ErrQueueNotFound = errors.New("weir: the queue does not exist")
	// ErrNotAcknowledged is wrapped by the error of [Consumer.Run] if records that were handled
	// could not be acknowledged before Run returned. The queue delivers them again.
	ErrNotAcknowledged = errors.New("weir: handled records were not acknowledged")
)

// Error is an error answer of the service.
type Error struct {
	Operation string
	Code      string // such as "ThrottlingException"
	Message   string
	Status    int // HTTP status
	RequestID string
}

// Error returns all fields as one line.
func (e *Error) Error() string {
	text := fmt.Sprintf("weir: %s: %s (status %d)", e.Operation, e.Code, e.Status)
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.RequestID != "" {
		text += ", request " + e.RequestID
	}
	return text
}

// ErrorCode returns Code. Errors of the AWS SDK have the same method.
func (e *Error) ErrorCode() string { return e.Code }

// kind is what an error means for the next call.
type kind uint8

const (
	transient kind = iota // the service or the network failed: repeat
	throttled             // repeat, more slowly
	stale                 // credentials or clock: get new ones, then repeat
	missing               // the queue or record does not exist
	denied                // the caller lacks a permission
	invalid               // the request is wrong: repeating does not help
	canceled              // the caller's context ended
)

// again reports whether the same request may succeed later.
func (k kind) again() bool { return k <= stale }

// kindOf returns the kind of a call's error.
func kindOf(err error) kind {
	var coded interface{ ErrorCode() string }
	if errors.As(err, &coded) {
		k := codeKind(coded.ErrorCode())
		if own := (*Error)(nil); k == invalid && errors.As(err, &own) {
			return statusKind(own)
		}
		return k
	}
	switch {
	case errors.Is(err, context.Canceled):
		return canceled
	case errors.Is(err, ErrQueueNotFound):
		return missing
	}
	if wrong := (*requestError)(nil); errors.As(err, &wrong) {
		return invalid
	}
	return transient
}

// statusKind returns the kind of an error with an unknown code.
func statusKind(e *Error) kind {
	switch {
	case e.Status == http.StatusTooManyRequests:
		return throttled
	case e.Status >= 500:
		return transient
	case e.Status == http.StatusForbidden:
		return denied
	}
	return invalid
}

// codeKind returns the kind of an error code, of an answer or of one entry of a batch.
func codeKind(code string) kind {
	switch code {
	case "ThrottlingException", "Throttling", "LimitExceededException", "KMSThrottlingException",
		"RequestLimitExceeded", "TooManyRequestsException", "ProvisionedThroughputExceededException":
		return throttled
	case "InternalFailureException", "InternalFailure", "InternalServerError", "ServiceUnavailable", "ServiceUnavailableException", "RequestTimeout":
		return transient
	case "ExpiredTokenException", "ExpiredToken", "UnrecognizedClientException", "InvalidClientTokenId",
		"InvalidSignatureException", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "RequestExpired":
		return stale
	case "ResourceNotFoundException":
		return missing
	case "AccessDeniedException", "KMSAccessDeniedException", "KMSDisabledException", "KMSInvalidStateException",
		"KMSNotFoundException", "KMSOptInRequired", "KMSOptInRequiredException", "MissingAuthenticationTokenException":
		return denied
	}
	return invalid
}

// requestError is an error that occurred before a request was sent, and that repeating cannot fix.
type requestError struct{ err error }

func (e *requestError) Error() string { return e.err.Error() }
func (e *requestError) Unwrap() error { return e.err }

// shortCode removes the namespace and the suffix that a code may have in an answer.
func shortCode(code string) string {
	if _, after, ok := strings.Cut(code, "#"); ok {
		code = after
	}
	code, _, _ = strings.Cut(code, ":")
	return strings.TrimSpace(code)
}
