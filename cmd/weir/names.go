package main

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

// checkStreams looks at --stream before a service does, whose words about it are not for people.
func checkStreams(streams ...string) error {
	for _, s := range streams {
		// a stream's name has the form of a consumer's
		if !strings.HasPrefix(s, "arn:") && !consumerForm.MatchString(s) {
			return cli.Usagef("--stream %.140q is no name of a stream: use 1 to 128 of a-z, A-Z, 0-9, _ . -, or an ARN", s)
		}
	}
	return nil
}

// streamName is the name in a --stream value, which may be an ARN.
func streamName(stream string) string { return stream[strings.LastIndexByte(stream, '/')+1:] }

// nameOrARN puts a --stream value into the field of a request that it belongs to.
func nameOrARN(stream string) (name, arn *string) {
	if strings.HasPrefix(stream, "arn:") {
		return nil, aws.String(stream)
	}
	return aws.String(stream), nil
}

var consumerForm = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)

// bucketForm is what the name of a bucket looks like.
var bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// askStream asks about a stream, by name or ARN.
func askStream(ctx context.Context, client *kinesis.Client, stream string) (operate.Answer, error) {
	_, arn := nameOrARN(stream)
	return operate.AskStream(ctx, client, streams.Stream{Name: streamName(stream), ARN: aws.ToString(arn)})
}
