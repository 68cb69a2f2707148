package queue

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
)

func TestEndpoints(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:kinesis:eu-west-1:123456789012:queue/q-1a2b"
	for _, c := range []struct {
		name    string
		in      endpoints
		plane   plane
		arn     string
		account string
		want    string // the URL, or a part of the error
	}{
		{"a data operation", endpoints{region: "eu-west-1"}, dataPlane, arn, "", "https://q-1a2b.data-kinesis-queues.eu-west-1.amazonaws.com/"},
		{"a control operation about a queue", endpoints{region: "eu-west-1"}, controlPlane, arn, "", "https://q-1a2b.control-kinesis-queues.eu-west-1.amazonaws.com/"},
		{"the account does not matter with an ARN", endpoints{region: "eu-west-1", accounts: aws.AccountIDEndpointModeRequired}, dataPlane, arn, "", "https://q-1a2b.data-kinesis-queues.eu-west-1.amazonaws.com/"},
		{"a listing with an account", endpoints{region: "eu-west-1", accounts: aws.AccountIDEndpointModePreferred}, controlPlane, "", "123456789012", "https://123456789012.control-kinesis-queues.eu-west-1.amazonaws.com/"},
		{"a listing with an unset mode", endpoints{region: "eu-west-1"}, controlPlane, "", "123456789012", "https://123456789012.control-kinesis-queues.eu-west-1.amazonaws.com/"},
		{"a listing without an account", endpoints{region: "eu-west-1"}, controlPlane, "", "", "https://kinesis-queues.eu-west-1.amazonaws.com/"},
		{"a listing with accounts disabled", endpoints{region: "eu-west-1", accounts: aws.AccountIDEndpointModeDisabled}, controlPlane, "", "123456789012", "https://kinesis-queues.eu-west-1.amazonaws.com/"},
		{"a listing with accounts required", endpoints{region: "eu-west-1", accounts: aws.AccountIDEndpointModeRequired}, controlPlane, "", "", "requires an account ID"},
		{"FIPS", endpoints{region: "eu-west-1", fips: true}, dataPlane, arn, "", "https://q-1a2b.data-kinesis-queues-fips.eu-west-1.amazonaws.com/"},
		{"dual stack", endpoints{region: "eu-west-1", dual: true}, dataPlane, arn, "", "https://q-1a2b.data-kinesis-queues.eu-west-1.api.aws/"},
		{"FIPS and dual stack", endpoints{region: "eu-west-1", fips: true, dual: true}, controlPlane, "", "1", "https://1.control-kinesis-queues-fips.eu-west-1.api.aws/"},
		{"China", endpoints{region: "cn-north-1"}, dataPlane, "arn:aws-cn:kinesis:cn-north-1:1:queue/q", "", "https://q.data-kinesis-queues.cn-north-1.amazonaws.com.cn/"},
		{"GovCloud", endpoints{region: "us-gov-west-1", fips: true}, dataPlane, "arn:aws-us-gov:kinesis:us-gov-west-1:1:queue/q", "", "https://q.data-kinesis-queues-fips.us-gov-west-1.amazonaws.com/"},
		{"an isolated region", endpoints{region: "us-iso-east-1"}, dataPlane, "arn:aws-iso:kinesis:us-iso-east-1:1:queue/q", "", "https://kinesis-queues.us-iso-east-1.c2s.ic.gov/"},
		{"an isolated region with FIPS", endpoints{region: "us-isob-east-1", fips: true}, controlPlane, "", "1", "https://kinesis-queues-fips.us-isob-east-1.sc2s.sgov.gov/"},
		{"an isolated region with dual stack", endpoints{region: "us-iso-east-1", dual: true}, controlPlane, "", "", "no dual-stack endpoints"},
		{"a custom endpoint", endpoints{region: "eu-west-1", base: "http://localhost:4567"}, dataPlane, arn, "", "http://localhost:4567/"},
		{"a custom endpoint with a path", endpoints{region: "eu-west-1", base: "https://h/k"}, controlPlane, "", "", "https://h/k"},
		{"a custom endpoint with FIPS", endpoints{region: "eu-west-1", base: "http://h", fips: true}, dataPlane, arn, "", "FIPS cannot"},
		{"a custom endpoint with dual stack", endpoints{region: "eu-west-1", base: "http://h", dual: true}, dataPlane, arn, "", "dual stack cannot"},
		{"a custom endpoint that is no URL", endpoints{region: "eu-west-1", base: "localhost:4567"}, dataPlane, arn, "", "must be a URL"},
		{"an ARN of another region", endpoints{region: "us-east-1"}, dataPlane, arn, "", "set aws.Config.Region to eu-west-1"},
		{"an ARN of another region with a custom endpoint", endpoints{region: "us-east-1", base: "http://h"}, dataPlane, arn, "", "in region eu-west-1"},
		{"an ARN of another partition", endpoints{region: "eu-west-1"}, dataPlane, "arn:aws-cn:kinesis:eu-west-1:1:queue/q", "", "in partition aws-cn"},
		{"an ARN of a stream", endpoints{region: "eu-west-1"}, dataPlane, "arn:aws:kinesis:eu-west-1:1:stream/s", "", "ARN of a stream"},
		{"an ARN with an ID that is no host label", endpoints{region: "eu-west-1"}, dataPlane, "arn:aws:kinesis:eu-west-1:1:queue/a.b", "", "letters, digits and hyphens"},
		{"an ARN with a long ID", endpoints{region: "eu-west-1"}, dataPlane, "arn:aws:kinesis:eu-west-1:1:queue/" + strings.Repeat("a", 64), "", "up to 63"},
		{"no ARN", endpoints{region: "eu-west-1"}, dataPlane, "orders", "", "is not the ARN of a queue"},
		{"an ARN of another service", endpoints{region: "eu-west-1"}, dataPlane, "arn:aws:sqs:eu-west-1:1:q", "", "is not the ARN of a queue"},
		{"an ARN without an account", endpoints{region: "eu-west-1"}, dataPlane, "arn:aws:kinesis:eu-west-1::queue/q", "", "no valid region and account"},
		{"no region", endpoints{}, controlPlane, "", "", "AWS_REGION"},
		{"a wrong region", endpoints{region: "eu west"}, controlPlane, "", "", "not a valid part"},
	} {
		got, err := c.in.resolve(c.plane, c.arn, c.account)
		switch {
		case err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		case err == nil && got != c.want:
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAnARNIsWrittenAsItWasRead(t *testing.T) {
	t.Parallel()
	const text = "arn:aws:kinesis:eu-west-1:123456789012:queue/q-1a2b"
	a, err := parseARN(text)
	if err != nil || a.String() != text || a.ID != "q-1a2b" {
		t.Errorf("%+v, %v", a, err)
	}
}
