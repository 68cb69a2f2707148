// Package awsconf makes the clients of AWS services that commands use, from the settings of the AWS
// SDK and the flags that override them.
package awsconf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/logging"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/peers"
	"github.com/weir-go/weir/cmd/weir/internal/redact"
	"github.com/weir-go/weir/cmd/weir/internal/wholebody"
)

// Flags are the settings of the AWS SDK that the command line may override. Everything else
// comes from where the SDK always takes it: AWS_REGION, AWS_PROFILE, AWS_ENDPOINT_URL and the like,
// and the shared configuration files.
type Flags struct {
	endpoint       string
	dynamoEndpoint string
	region         string
	Role           role // of Kinesis alone
	// for subscriptions, which the service wants over it; polling is cheaper without
	HTTP2 bool
	// the library reads with the client of Kinesis, which may not be wrapped then; see greet
	Reads bool
	Wait  bool // retry until all have answered

	patience peers.Patience
	Service  *peers.Peer // Kinesis, once there is a client
	Tables   *peers.Peer // DynamoDB, the same
	Objects  *peers.Peer // S3, the same
	Queues   *peers.Peer // SQS, the same

	noted map[string]bool // printed notes, so that two clients of one command print each once
}

func (f *Flags) Register(cmd *cobra.Command, withDynamo bool) {
	cmd.Flags().StringVar(&f.endpoint, "endpoint", "", "`URL` of Kinesis (default: the AWS SDK's, AWS_ENDPOINT_URL_KINESIS or AWS_ENDPOINT_URL)")
	cmd.Flags().StringVar(&f.region, "region", "", "AWS region (default: the AWS SDK's, AWS_REGION)")
	f.patience = peers.DefaultPatience
	cmd.Flags().Var(&f.patience, "connect-timeout", "how long to wait for the first answer of the service, and of the store")
	if withDynamo {
		cmd.Flags().StringVar(&f.dynamoEndpoint, "dynamodb-endpoint", "", "`URL` of DynamoDB (default: the AWS SDK's, AWS_ENDPOINT_URL_DYNAMODB or AWS_ENDPOINT_URL)")
	}
}

// Kinesis makes a client, after checking that it has an endpoint, a region and credentials to work
// with. Callers that read must not replace its HTTP client, because weir's own calls need this one.
// Other callers keep their connection when an answer comes before the request is sent completely.
func (f *Flags) Kinesis(ctx context.Context, t cli.Terminal) (*kinesis.Client, error) {
	if err := checkEndpoint("--endpoint", f.endpoint); err != nil {
		return nil, err
	}
	if err := f.Role.check(); err != nil {
		return nil, err
	}
	override := func(o *kinesis.Options) {
		if f.endpoint != "" {
			o.BaseEndpoint = aws.String(f.endpoint)
		}
	}
	cfg, err := f.settings(ctx, t, func(c aws.Config) *string { return kinesis.NewFromConfig(c, override).Options().BaseEndpoint })
	if err != nil {
		return nil, err
	}
	if f.Role.arn != "" {
		if cfg, err = f.Role.assume(ctx, f, cfg); err != nil {
			return nil, err
		}
	}
	f.Service = f.Peer(ctx, "Kinesis")
	if !f.Reads {
		whole := func(o *kinesis.Options) { o.HTTPClient = wholebody.Client(o.HTTPClient) }
		return f.Patient(kinesis.NewFromConfig(cfg, override, whole)), nil
	}
	if own, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok && !f.HTTP2 {
		cfg.HTTPClient = peers.NoteConnections(own, f.Service)
	}
	return kinesis.NewFromConfig(cfg, override), nil
}

// Patient is a client whose calls are noted.
func (f *Flags) Patient(client *kinesis.Client) *kinesis.Client {
	return kinesis.New(client.Options(), func(o *kinesis.Options) {
		o.HTTPClient = peers.Client{HTTPClient: o.HTTPClient, Peer: f.Service, Service: "Kinesis"}
	})
}

// Greet describes the streams, to find out whether the service answers. A reader retries every
// error without end, so errors that are there from the start have to be reported before it begins.
func (f *Flags) Greet(ctx context.Context, client *kinesis.Client, streams ...string) error {
	asking := f.Patient(client)
	for _, s := range streams {
		name, arn := NameOrARN(s)
		err := peers.Persist(ctx, f.Wait, f.Service, func() error {
			_, err := asking.ListShards(ctx, &kinesis.ListShardsInput{StreamName: name, StreamARN: arn, MaxResults: aws.Int32(1)})
			return err
		})
		if err != nil {
			return fmt.Errorf("stream %s: %w", s, err)
		}
	}
	return nil
}

// Peer is a service or a store that the command asks.
func (f *Flags) Peer(ctx context.Context, name string) *peers.Peer {
	p := peers.New(ctx, name, time.Duration(f.patience))
	p.Wait = f.Wait
	return p
}

// DynamoDB is the same for DynamoDB.
func (f *Flags) DynamoDB(ctx context.Context, t cli.Terminal) (*dynamodb.Client, error) {
	if err := checkEndpoint("--dynamodb-endpoint", f.dynamoEndpoint); err != nil {
		return nil, err
	}
	f.Tables = f.Peer(ctx, "DynamoDB")
	override := func(o *dynamodb.Options) {
		o.HTTPClient = peers.Client{HTTPClient: wholebody.Client(o.HTTPClient), Peer: f.Tables, Service: "DynamoDB"}
		if f.dynamoEndpoint != "" {
			o.BaseEndpoint = aws.String(f.dynamoEndpoint)
		}
	}
	cfg, err := f.settings(ctx, t, func(c aws.Config) *string { return dynamodb.NewFromConfig(c, override).Options().BaseEndpoint })
	if err != nil {
		return nil, err
	}
	return dynamodb.NewFromConfig(cfg, override), nil
}

// S3 is the same for S3. Another server than AWS, which an endpoint names, has its buckets in
// paths.
func (f *Flags) S3(ctx context.Context, t cli.Terminal) (*s3.Client, error) {
	f.Objects = f.Peer(ctx, "S3")
	override := func(o *s3.Options) {
		o.HTTPClient = peers.Client{HTTPClient: o.HTTPClient, Peer: f.Objects, Service: "S3"}
		o.UsePathStyle = o.BaseEndpoint != nil
	}
	cfg, err := f.settings(ctx, t, func(c aws.Config) *string { return s3.NewFromConfig(c, override).Options().BaseEndpoint })
	if err != nil {
		return nil, err
	}
	return s3.NewFromConfig(cfg, override), nil
}

// regionOfQueue finds the region in the host of a queue's URL.
var regionOfQueue = regexp.MustCompile(`^(?:sqs(?:-fips)?\.([a-z0-9-]+)|([a-z0-9-]+)\.queue)\.(?:amazonaws\.com|api\.aws)`)

// SQS is the same for a queue of SQS, whose URL says where it is, and in which region.
func (f *Flags) SQS(ctx context.Context, t cli.Terminal, queue string) (*sqs.Client, error) {
	f.Queues = f.Peer(ctx, "SQS")
	u, err := url.Parse(queue)
	if err != nil {
		return nil, cli.Usagef("the queue's URL: %s", redact.Text(err.Error()))
	}
	region := regionOfQueue.FindStringSubmatch(u.Host)
	override := func(o *sqs.Options) {
		o.HTTPClient = peers.Client{HTTPClient: o.HTTPClient, Peer: f.Queues, Service: "SQS"}
		if region != nil {
			o.Region = region[1] + region[2]
		} else if o.BaseEndpoint == nil {
			o.BaseEndpoint = aws.String(u.Scheme + "://" + u.Host)
		}
	}
	cfg, err := f.settings(ctx, t, func(c aws.Config) *string { return sqs.NewFromConfig(c, override).Options().BaseEndpoint })
	if err != nil {
		return nil, err
	}
	return sqs.NewFromConfig(cfg, override), nil
}

// settings loads the SDK's configuration. endpointOf says where a client made from it would call.
func (f *Flags) settings(ctx context.Context, t cli.Terminal, endpointOf func(aws.Config) *string) (aws.Config, error) {
	load := func(more ...func(*config.LoadOptions) error) (aws.Config, error) {
		options := append([]func(*config.LoadOptions) error{
			config.WithHTTPClient(httpClient(f.HTTP2)),
			// weir reports a failed call itself
			config.WithLogger(logging.Nop{}),
		}, more...)
		if f.region != "" {
			options = append(options, config.WithRegion(f.region))
		}
		cfg, err := config.LoadDefaultConfig(ctx, options...)
		if err != nil {
			var file *fs.PathError
			if strings.Contains(err.Error(), "CA bundle") || errors.As(err, &file) && file.Path == os.Getenv("AWS_CA_BUNDLE") {
				return cfg, fmt.Errorf("the certificates in AWS_CA_BUNDLE cannot be used: %w", err)
			}
			return cfg, fmt.Errorf("the AWS settings cannot be used (check AWS_PROFILE and the shared configuration files): %w", err)
		}
		return cfg, nil
	}
	cfg, err := load()
	if err != nil {
		return cfg, err
	}
	if cfg.Region != "" && !regionForm.MatchString(cfg.Region) {
		return cfg, fmt.Errorf("%q is not an AWS region: set AWS_REGION or --region to something like eu-west-1", cfg.Region)
	}
	endpoint := aws.ToString(endpointOf(cfg))
	if err := checkEndpoint("the endpoint in the AWS settings", endpoint); err != nil {
		return cfg, err
	}
	if !IsLoopback(endpoint) {
		if cfg.Region == "" {
			return cfg, fmt.Errorf("no AWS region is set: set AWS_REGION, choose a profile with AWS_PROFILE, or give --region")
		}
		err := peers.New(ctx, "the AWS credentials", 0).Ask(ctx, func(ctx context.Context) error {
			_, err := retrieve(ctx, cfg)
			return err
		})
		if err != nil {
			return cfg, fmt.Errorf("no usable AWS credentials were found (%s): set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a role is attached", explain.RootCause(err))
		}
		return cfg, nil
	}

	// A server on this machine checks neither; and asking the instance's metadata for credentials
	// would take seconds.
	if cfg, err = load(config.WithEC2IMDSClientEnableState(imds.ClientDisabled)); err != nil {
		return cfg, err
	}
	var dummies []string
	if _, err := retrieve(ctx, cfg); err != nil {
		cfg.Credentials = credentials.NewStaticCredentialsProvider("weir-local", "weir-local", "")
		dummies = append(dummies, "dummy credentials")
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1"
		dummies = append(dummies, "region us-east-1")
	}
	if said := strings.Join(dummies, " and "); said != "" && !f.noted[said] {
		if f.noted == nil {
			f.noted = map[string]bool{}
		}
		f.noted[said] = true
		t.Note("%s is on this machine and the AWS settings are incomplete: using %s", endpoint, said)
	}
	return cfg, nil
}

var regionForm = regexp.MustCompile(`^[a-z0-9-]{2,40}$`)

func retrieve(ctx context.Context, cfg aws.Config) (aws.Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return cfg.Credentials.Retrieve(ctx)
}

// httpClient uses HTTP/1.1 by default, which halves the CPU time of polling, and gives up on a
// silent address sooner than the SDK does. It is the SDK's type, because AWS_CA_BUNDLE needs that.
func httpClient(http2 bool) *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = 5 * time.Second }).
		WithTransportOptions(func(tr *http.Transport) {
			tr.MaxIdleConnsPerHost = 64
			if http2 {
				return
			}
			tr.ForceAttemptHTTP2 = false
			tr.Protocols = new(http.Protocols)
			tr.Protocols.SetHTTP1(true)
			// a clone, which offers what its original would have spoken
			if tr.TLSClientConfig != nil {
				tr.TLSClientConfig.NextProtos = []string{"http/1.1"}
			}
		})
}

func checkEndpoint(where, endpoint string) error {
	if endpoint == "" {
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.RawQuery != "" {
		return cli.Usagef("%s %q is not the URL of a server: write it like http://127.0.0.1:4567", where, redact.URL(endpoint))
	}
	if u.User != nil {
		return cli.Usagef("%s %q has a user name: remove it, because calls are signed with the AWS credentials", where, redact.URL(endpoint))
	}
	return nil
}

// IsLoopback reports whether an endpoint is surely on this machine.
func IsLoopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	host := u.Hostname()
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
