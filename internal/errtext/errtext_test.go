package errtext_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/weir-go/weir/internal/errtext"
)

// refusal returns an error as the AWS SDK makes it.
func refusal(operation, code, message string) error {
	return &smithy.OperationError{ServiceID: "Kinesis", OperationName: operation, Err: &awshttp.ResponseError{
		RequestID: "c1a5b6d0-1111-2222-3333-444455556666",
		ResponseError: &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusBadRequest}},
			Err:      &smithy.GenericAPIError{Code: code, Message: message},
		},
	}}
}

const user = "arn:aws:sts::123456789012:assumed-role/workers-of-the-billing-application/i-0123456789abcdef0"

func TestShort(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"no such table", "no such table"},
		{"an api error of the handler, after an operation error", "an api error of the handler, after an operation error"},
		{"operation error Kinesis: GetRecords, api error X: no", "Kinesis GetRecords: X: no"},
		{"https response error StatusCode: 500, RequestID: 1, HostID: 2, api error Y: no", "Y: no"},
		{"get credentials: operation error ec2imds: GetMetadata, http response error StatusCode: 404, request to EC2 IMDS failed", "get credentials: ec2imds GetMetadata: request to EC2 IMDS failed"},
		{"StartingSequenceNumber 49680639630575431897125899692460583055420085837227884546 is invalid",
			"StartingSequenceNumber 4968…884546 is invalid"},
		{"stream of 000000000000, at 1764318582000, é", "stream of 000000000000, at 1764318582000, é"},
		{"two\nlines\x1b[31m", "two lines [31m"},
		{refusal("GetShardIterator", "ResourceNotFoundException", "Stream orders under account 1 not found.").Error(),
			"Kinesis GetShardIterator: ResourceNotFoundException: Stream orders under account 1 not found."},
		{fmt.Errorf("the stream does not exist: %w", refusal("ListShards", "ResourceNotFoundException", "no")).Error(),
			"the stream does not exist: Kinesis ListShards: ResourceNotFoundException: no"},
		{refusal("GetRecords", "AccessDeniedException", "User: "+user+" is not authorized to perform: kinesis:GetRecords on resource: arn:aws:kinesis:eu-west-1:1:stream/orders because no policy allows it").Error(),
			"Kinesis GetRecords: AccessDeniedException: not authorized to perform kinesis:GetRecords on arn:aws:kinesis:eu-west-1:1:stream/orders as " + user + " because no policy allows it"},
		{(&smithy.OperationError{ServiceID: "Kinesis", OperationName: "GetRecords", Err: errors.New("dial tcp: connection refused")}).Error(),
			"Kinesis GetRecords: dial tcp: connection refused"},
		{"operation error DynamoDB: GetItem, exceeded maximum number of attempts, 3, https response error StatusCode: 0, RequestID: , request send failed, EOF",
			"DynamoDB GetItem: request send failed, EOF"},
	} {
		if got := errtext.Short(c.text); got != c.want {
			t.Errorf("%q\nbecomes %q,\nwant    %q", c.text, got, c.want)
		}
		if again := errtext.Short(errtext.Short(c.text)); again != c.want {
			t.Errorf("a second call changes %q to %q", c.want, again)
		}
	}
}

func TestDenied(t *testing.T) {
	t.Parallel()
	const message = "User: " + user + " is not authorized to perform: kinesis:GetRecords"
	for text, want := range map[string][2]string{
		"no such table":      {},
		message + " because": {"kinesis:GetRecords", ""},
		message + " on resource: arn:aws:kinesis:eu-west-1:1:stream/orders": {"kinesis:GetRecords", "arn:aws:kinesis:eu-west-1:1:stream/orders"},
		errtext.Short(message + " on resource: arn:aws:kinesis:eu-west-1:1:stream/orders because"): {
			"kinesis:GetRecords", "arn:aws:kinesis:eu-west-1:1:stream/orders"},
		"AccessDeniedException: not authorized to perform: kms:Decrypt.": {"kms:Decrypt", ""},
	} {
		if action, resource := errtext.Denied(text); action != want[0] || resource != want[1] {
			t.Errorf("%q: %q and %q, want %q", text, action, resource, want)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"short", 5, "short"},
		{"one two three", 11, "one two…"},
		{"one two three", 10, "one two…"},
		{"one, two three", 8, "one…"},
		{"unbreakable", 8, "unbre…"},
		{"ääääääää", 9, "äää…"},
		{"", 0, ""},
	} {
		got := errtext.Cut(c.text, c.most)
		if got != c.want || len(got) > c.most || !utf8.ValidString(got) {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.text, c.most, got, c.want)
		}
	}
	long := strings.Repeat("word ", 100)
	for most := 3; most < len(long); most++ {
		got := errtext.Cut(long, most)
		if most >= 8 && !strings.HasSuffix(got, "word…") || len(got) > most {
			t.Fatalf("Cut(…, %d) ends with %q", most, got[max(0, len(got)-12):])
		}
	}
}

func TestUnknownAndRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]bool{
		"no such table": {},
		refusal("GetRecords", "ResourceNotFoundException", "no").Error():                    {true, false},
		"the stream does not exist: s":                                                      {true, false},
		"Kinesis GetShardIterator: InvalidArgumentException: StartingSequenceNumber 1 used": {false, true},
		"the service refuses the position 1: x":                                             {false, true},
		"InvalidArgumentException: Limit":                                                   {},
	} {
		if unknown, refused := errtext.Unknown(text), errtext.Refused(text); unknown != want[0] || refused != want[1] {
			t.Errorf("%q: unknown %t, refused %t", text, unknown, refused)
		}
	}
}

func BenchmarkShort(b *testing.B) {
	text := refusal("GetRecords", "InternalFailure", "the service cannot answer now, so try again later").Error()
	b.ReportAllocs()
	for b.Loop() {
		errtext.Cut(errtext.Short(text), 200)
	}
}
