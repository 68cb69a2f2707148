package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/schemas"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"

	"github.com/weir-go/weir/internal/wire/codec"
)

// maxErrorBody is the maximum number of bytes of an error's body that are read.
const maxErrorBody = 64 << 10

// sdkProtocol is the protocol of the SDK's Kinesis client. It decodes errors, so that callers get
// the same errors as from the SDK.
var sdkProtocol = awsjson.New11(schemas.Kinesis_20131202)

var getRecords = smithy.NewOperationSchema(schemas.GetRecords, schemas.GetRecordsInput, schemas.GetRecordsOutput)

// readAPIError reads an error answer and returns its error.
func readAPIError(ctx context.Context, a *answer) error {
	body, err := readAtMost(a.body, maxErrorBody)
	if err != nil {
		return codec.Incomplete(len(body), err)
	}
	if f, ok := codec.FormatOf(a.field("Content-Type"), body); ok && f == codec.CBOR && len(body) > 0 {
		code, message, err := codec.ReadError(codec.CBOR, bytes.Clone(body))
		if err != nil {
			return &smithy.DeserializationError{Err: err, Snapshot: body}
		}
		if body, err = json.Marshal(map[string]string{"__type": code, "message": message}); err != nil {
			return &smithy.DeserializationError{Err: err}
		}
	}
	same := *a.response() //nolint:bodyclose // it has been read
	same.Body = io.NopCloser(bytes.NewReader(body))
	if same.StatusCode >= 200 && same.StatusCode < 300 {
		// This function only reads answers whose status is not 200. An answer with another 2xx
		// status, such as 204, contains no page, so treat it as a server error.
		same.StatusCode = http.StatusInternalServerError
	}
	return sdkProtocol.DeserializeResponse(ctx, getRecords, kinesis.TypeRegistry, &smithyhttp.Response{Response: &same}, nil)
}

// responseError adds the answer's status and request ID to an error.
func responseError(a *answer, err error) error {
	return &awshttp.ResponseError{
		ResponseError: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: a.response()}, Err: err}, //nolint:bodyclose // it has been read
		RequestID:     a.requestID(),
	}
}

func isAPIError(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api)
}

// outcomeOf derives the outcome for the format choice from the result of a call.
func outcomeOf(err error, p *codec.Page) outcome {
	if err == nil {
		switch {
		case p.Text:
			return readText
		case len(p.Records) > 0:
			return readRecords
		}
		return readEmpty
	}
	var (
		malformed  *codec.MalformedError
		unexpected *unexpectedError
		api        smithy.APIError
		response   *smithyhttp.ResponseError
	)
	if errors.As(err, &malformed) || errors.As(err, &unexpected) {
		return refused
	}
	if errors.As(err, &response) && response.HTTPStatusCode() == http.StatusUnsupportedMediaType {
		return refused
	}
	if errors.As(err, &api) {
		switch api.ErrorCode() {
		case "UnknownOperationException", "UnknownOperation", "SerializationException", "UnsupportedMediaTypeException":
			return refused
		}
	}
	return unrelated
}

// maybeSkew reports whether a wrong clock may be the cause of an error.
func maybeSkew(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "InvalidSignatureException", "SignatureDoesNotMatch", "AuthFailure", "RequestTimeTooSkewed", "AccessDeniedException":
		return true
	}
	return false
}
