package producer

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/streams"
	"github.com/weir-go/weir/internal/wire/codec"
)

// outcome classifies the answer for a record.
type outcome uint8

const (
	stored    outcome = iota
	throttled         // not stored: the shard has no room
	postponed         // not stored: another attempt later may succeed
	unknown           // may be stored or not
	unsigned          // not stored: the credentials or the clock are wrong
	invalid           // not stored: something in the request is wrong
	refused           // not stored, and another attempt changes nothing
)

// classifyEntry returns the outcome for the code of one record in an answer. A record without a
// code counts as stored only if the answer has a sequence number and a shard.
func classifyEntry(e entry) outcome {
	switch {
	case e.Code == "" && e.SequenceNumber != "" && e.Shard != "":
		return stored
	case e.Code == "":
		return unknown
	}
	return classifyCode(e.Code, 0)
}

// classifyCall returns the outcome of all records of a call that failed with err.
func classifyCall(err error) outcome {
	if err == nil {
		return stored
	}
	var encoding *smithy.SerializationError
	if errors.As(err, &encoding) {
		return refused // nothing was sent
	}
	status := 0
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		status = response.HTTPStatusCode()
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		return classifyCode("", status)
	}
	if api.ErrorFault() == smithy.FaultServer && status < http.StatusBadRequest {
		status = http.StatusInternalServerError
	}
	return classifyCode(api.ErrorCode(), status)
}

// classifyCode returns the outcome for an error code. For an unknown code it uses the HTTP status,
// which is 0 if there was none.
func classifyCode(code string, status int) outcome {
	switch code {
	case "ProvisionedThroughputExceededException":
		return throttled
	case "LimitExceededException", "ResourceInUseException", "KMSThrottlingException", "ThrottlingException", "Throttling",
		"RequestLimitExceeded", "TooManyRequestsException", "RequestThrottled", "RequestThrottledException":
		return postponed
	case "ExpiredTokenException", "ExpiredToken", "UnrecognizedClientException", "InvalidClientTokenId", "InvalidSignatureException",
		"SignatureDoesNotMatch", "RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture", "AuthFailure":
		return unsigned
	case "ValidationException", "InvalidArgumentException":
		return invalid
	case "InternalFailure", "InternalFailureException", "InternalError", "InternalServerError", "ServiceUnavailable", "ServiceUnavailableException":
		return unknown
	}
	switch {
	case strings.HasPrefix(code, "KMS"):
		return refused
	case status == http.StatusTooManyRequests:
		return postponed
	case status == http.StatusRequestTimeout, status >= http.StatusInternalServerError, status < http.StatusBadRequest:
		return unknown // including a broken connection and an unknown code
	default:
		return refused
	}
}

// mostUnsigned is the number of consecutive failed requests of a shard after which rejected
// credentials are final.
const mostUnsigned = 5

// pauseAfter returns how long a shard waits after the given number of consecutive failed requests.
func pauseAfter(o outcome, failures int) time.Duration {
	switch o {
	case throttled:
		return retry.Pause(50*time.Millisecond, 2*time.Second, failures)
	case postponed:
		return retry.Pause(500*time.Millisecond, 10*time.Second, failures)
	case unsigned:
		return retry.Pause(time.Second, 10*time.Second, failures)
	default:
		return retry.Pause(100*time.Millisecond, 5*time.Second, failures)
	}
}

// callTimeout returns the timeout for a PutRecords call of the given size. It allows for a slow
// line of 512 KiB per second.
func callTimeout(bytes int) time.Duration {
	return 5*time.Second + time.Duration(bytes)*time.Second/(512<<10)
}

// entry is the answer for one record of a request.
type entry = codec.PutResult

// answer is the answer to a request: an error, or an entry for each record.
type answer struct {
	err     error
	entries []entry
	took    time.Duration
}

// errNoAnswer is the error of a call that succeeded without a result for each record.
var errNoAnswer = errors.New("the answer does not have a result for each record")

// checked verifies that a successful answer has one entry for each of the request's records.
// Without that, it is unknown which records are stored, so checked returns an error answer.
func (a answer) checked(records int) answer {
	if a.err == nil && len(a.entries) != records {
		a.err = errNoAnswer
	}
	return a
}

// codeOf returns the service's code of an error.
func codeOf(err error) string { return streams.Code(err) }
