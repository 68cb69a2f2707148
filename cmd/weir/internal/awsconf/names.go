package awsconf

import (
	"context"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/internal/streams"
)

// CheckStreams checks the values of --stream before they are sent to the service, because the
// service's own error texts are hard to understand.
func CheckStreams(streams ...string) error {
	for _, s := range streams {
		// Stream names and consumer names follow the same rule.
		if !strings.HasPrefix(s, "arn:") && !NameForm.MatchString(s) {
			return cli.Usagef("--stream %.140q is not the name of a stream: use 1 to 128 of a-z, A-Z, 0-9, _ . -, or an ARN", s)
		}
	}
	return nil
}

// CheckNewStreams checks the names of streams that the command will create.
func CheckNewStreams(streams ...string) error {
	for _, s := range streams {
		if strings.HasPrefix(s, "arn:") {
			return cli.Usagef("--stream %.200q is an ARN: a stream is made by its name, in the account and the region of the credentials", s)
		}
	}
	return CheckStreams(streams...)
}

// StreamName returns the name in a value of --stream, which is a name or an ARN.
func StreamName(stream string) string { return stream[strings.LastIndexByte(stream, '/')+1:] }

// NameOrARN returns a value of --stream as a name or as an ARN, for the fields of a request. The
// other result is nil.
func NameOrARN(stream string) (name, arn *string) {
	if strings.HasPrefix(stream, "arn:") {
		return nil, aws.String(stream)
	}
	return aws.String(stream), nil
}

var NameForm = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)

// BucketForm matches the name of a bucket.
var BucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// AskStream queries the description of a stream, which is given by name or ARN.
func AskStream(ctx context.Context, client *kinesis.Client, stream string) (operate.Answer, error) {
	_, arn := NameOrARN(stream)
	return operate.AskStream(ctx, client, streams.Stream{Name: StreamName(stream), ARN: aws.ToString(arn)})
}
