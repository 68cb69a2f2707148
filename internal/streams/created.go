package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/smithy-go"

	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/wire"
)

// created returns the creation time of a stream in Unix milliseconds, or 0 if Kinesis does not
// return it. auto reports whether Kinesis distributes records regardless of their keys. created
// retries throttled calls.
func created(ctx context.Context, client wire.Kinesis, s Stream) (at int64, auto bool, err error) {
	backoff := retry.Backoff{Low: 100 * time.Millisecond, High: 5 * time.Second}
	for {
		in := &kinesis.DescribeStreamSummaryInput{}
		in.StreamName, in.StreamARN = s.NameAndARN()
		call, cancel := context.WithTimeout(ctx, CallTimeout)
		out, err := client.DescribeStreamSummary(call, in, Once)
		cancel()
		switch {
		case err == nil:
			if d := out.StreamDescriptionSummary; d != nil {
				auto = d.RecordDistributionStrategy == types.RecordDistributionStrategyAuto
				if d.StreamCreationTimestamp != nil {
					at = max(d.StreamCreationTimestamp.UnixMilli(), 0)
				}
			}
			return at, auto, nil
		case ctx.Err() != nil:
			return 0, false, context.Cause(ctx)
		case Code(err) == "ResourceNotFoundException":
			return 0, false, fmt.Errorf("%w: %w", ErrNoStream, err)
		case !Throttled(err) || backoff.Failures >= 8:
			return 0, false, err
		}
		if err := retry.Wait(ctx, backoff.Next()); err != nil {
			return 0, false, err
		}
	}
}

// Refused reports whether err is an answer of Kinesis that a retry cannot change. Examples are a
// missing permission and an unsupported operation.
func Refused(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorFault() != smithy.FaultServer && !Throttled(err) && !errors.Is(err, ErrNoStream) && Code(err) != "InternalFailure"
}

// unsigned reports whether err means that a call was not signed correctly, because of a wrong clock
// or expired credentials.
func unsigned(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "InvalidSignatureException", "SignatureDoesNotMatch", "RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture", "AuthFailure",
		"ExpiredTokenException", "ExpiredToken", "UnrecognizedClientException", "InvalidClientTokenId", "IncompleteSignature", "IncompleteSignatureException":
		return true
	}
	return false
}
