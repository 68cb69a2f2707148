package awsconf

import (
	"context"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/peers"
	"github.com/weir-go/weir/queue"
)

// KinesisQueues returns a client for the queues of Kinesis, after the same checks as Kinesis, and
// the configuration for consumers. A consumer's receives wait for records, so a late answer is not
// reported there.
func (f *Flags) KinesisQueues(ctx context.Context, t cli.Terminal) (*queue.Client, aws.Config, error) {
	cfg, err := f.kinesisSettings(ctx, t)
	if err != nil {
		return nil, cfg, err
	}
	if f.endpoint != "" {
		cfg.BaseEndpoint = aws.String(f.endpoint)
	}
	f.Service = f.Peer(ctx, "Kinesis")
	patient := cfg
	patient.HTTPClient = peers.Client{HTTPClient: cfg.HTTPClient, Peer: f.Service, Service: "Kinesis"}
	client, err := queue.NewClient(patient)
	return client, cfg, err
}

var queueARNForm = regexp.MustCompile(`^arn:aws[a-z0-9-]*:kinesis:[a-z0-9-]+:\d{12}:queue/[A-Za-z0-9-]{1,63}$`)

// CheckQueue checks the value of --queue before it is sent to the service.
func CheckQueue(name string) error {
	switch {
	case strings.HasPrefix(name, "arn:") && strings.Contains(name, ":stream/"):
		return cli.Usagef("--queue %.200q is the ARN of a stream: name a queue of it; \"weir queue list\" shows them", name)
	case strings.HasPrefix(name, "arn:") && !queueARNForm.MatchString(name):
		return cli.Usagef("--queue %.200q is not the ARN of a queue, such as arn:aws:kinesis:eu-west-1:123456789012:queue/4f2c", name)
	case strings.HasPrefix(name, "sqs:"), strings.HasPrefix(name, "http:"), strings.HasPrefix(name, "https:"):
		return cli.Usagef("--queue %.140q is not a queue of Kinesis: give a name or an ARN; queues of SQS are only for --dead", name)
	case !strings.HasPrefix(name, "arn:") && !NameForm.MatchString(name):
		return cli.Usagef("--queue %.140q is not the name of a queue: use 1 to 128 of a-z, A-Z, 0-9, _ . -, or an ARN", name)
	}
	return nil
}

// CloudWatch returns a client for the metrics of queues. A Kinesis on this machine is also asked
// for metrics, unless the settings have an endpoint of CloudWatch.
func (f *Flags) CloudWatch(ctx context.Context, t cli.Terminal) (*cloudwatch.Client, error) {
	cfg, err := f.kinesisSettings(ctx, t)
	if err != nil {
		return nil, err
	}
	peer := f.Peer(ctx, "CloudWatch")
	local := aws.ToString(kinesis.NewFromConfig(cfg, f.override).Options().BaseEndpoint)
	return cloudwatch.NewFromConfig(cfg, func(o *cloudwatch.Options) {
		if o.BaseEndpoint == nil && IsLoopback(local) {
			o.BaseEndpoint = &local
		}
		o.HTTPClient = peers.Client{HTTPClient: o.HTTPClient, Peer: peer, Service: "CloudWatch"}
	}), nil
}
