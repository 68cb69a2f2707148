// Package awsconf creates the clients of AWS services for commands. It uses the settings of the AWS
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

// Flags contains the flags that override settings of the AWS SDK. All other settings come from the
// usual sources of the SDK: AWS_REGION, AWS_PROFILE, AWS_ENDPOINT_URL and similar variables, and
// the shared configuration files.
type Flags struct {
	endpoint       string
	dynamoEndpoint string
	region         string
	Role           role // used only for calls to Kinesis
	// HTTP2 enables HTTP/2, which the service requires for subscriptions. Polling takes less CPU
	// time without it.
	HTTP2 bool
	// Reads means that the library reads with the Kinesis client. The client's HTTP client must
	// then not be wrapped; see Greet.
	Reads bool
	Wait  bool // retry until all services have answered

	patience peers.Patience
	Service  *peers.Peer // Kinesis; nil before a client is created
	Tables   *peers.Peer // DynamoDB; nil before a client is created
	Objects  *peers.Peer // S3; nil before a client is created
	Queues   *peers.Peer // SQS; nil before a client is created

	noted map[string]bool // notes that were printed, so that several clients of a command print each note once
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

// Kinesis returns a Kinesis client, after checking that it has an endpoint, a region and
// credentials. If Reads is true, the client keeps the SDK's HTTP client, because weir's own calls
// need it. The caller must not replace that HTTP client. If Reads is false, a wrapper of the client
// sends each request body as a single buffer. A connection then survives an answer that arrives
// before the request has been sent completely.
func (f *Flags) Kinesis(ctx context.Context, t cli.Terminal) (*kinesis.Client, error) {
	cfg, err := f.kinesisSettings(ctx, t)
	if err != nil {
		return nil, err
	}
	f.Service = f.Peer(ctx, "Kinesis")
	if !f.Reads {
		whole := func(o *kinesis.Options) { o.HTTPClient = wholebody.Client(o.HTTPClient) }
		return f.Patient(kinesis.NewFromConfig(cfg, f.override, whole)), nil
	}
	if own, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok && !f.HTTP2 {
		cfg.HTTPClient = peers.NoteConnections(own, f.Service)
	}
	return kinesis.NewFromConfig(cfg, f.override), nil
}

// override sets the endpoint of the flags.
func (f *Flags) override(o *kinesis.Options) {
	if f.endpoint != "" {
		o.BaseEndpoint = aws.String(f.endpoint)
	}
}

// kinesisSettings returns the configuration for calls of Kinesis, with the role of the flags.
func (f *Flags) kinesisSettings(ctx context.Context, t cli.Terminal) (aws.Config, error) {
	if err := checkEndpoint("--endpoint", f.endpoint); err != nil {
		return aws.Config{}, err
	}
	if err := f.Role.check(); err != nil {
		return aws.Config{}, err
	}
	cfg, err := f.settings(ctx, t, func(c aws.Config) *string { return kinesis.NewFromConfig(c, f.override).Options().BaseEndpoint })
	if err == nil && f.Role.arn != "" {
		cfg, err = f.Role.assume(ctx, f, cfg)
	}
	return cfg, err
}

// Patient returns a copy of client. The copy reports its calls to f.Service.
func (f *Flags) Patient(client *kinesis.Client) *kinesis.Client {
	return kinesis.New(client.Options(), func(o *kinesis.Options) {
		o.HTTPClient = peers.Client{HTTPClient: o.HTTPClient, Peer: f.Service, Service: "Kinesis"}
	})
}

// Greet lists one shard of each stream to find out whether the service answers. A reader retries
// every error without end, so Greet reports errors that exist from the start.
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

// Peer returns the state of a service or store that the command calls.
func (f *Flags) Peer(ctx context.Context, name string) *peers.Peer {
	p := peers.New(ctx, name, time.Duration(f.patience))
	p.Wait = f.Wait
	return p
}

// DynamoDB returns a DynamoDB client, after the same checks as Kinesis.
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

// S3 returns an S3 client. If the flags or the environment set an endpoint, the server is not AWS,
// and the client puts bucket names into paths.
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

// regionOfQueue matches the host in the URL of a queue and extracts the region.
var regionOfQueue = regexp.MustCompile(`^(?:sqs(?:-fips)?\.([a-z0-9-]+)|([a-z0-9-]+)\.queue)\.(?:amazonaws\.com|api\.aws)`)

// SQS returns a client for a queue of SQS. The URL of an AWS queue determines the region, any other
// URL the endpoint.
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

// settings loads the SDK's configuration. endpointOf returns the endpoint that a client with this
// configuration would use, or nil.
func (f *Flags) settings(ctx context.Context, t cli.Terminal, endpointOf func(aws.Config) *string) (aws.Config, error) {
	load := func(more ...func(*config.LoadOptions) error) (aws.Config, error) {
		options := append([]func(*config.LoadOptions) error{
			config.WithHTTPClient(httpClient(f.HTTP2)),
			// weir itself reports failed calls
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

	// A server on this machine checks neither the region nor the credentials. Disable the query for
	// instance credentials, which would take seconds.
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

// httpClient returns an HTTP client that gives up connecting to a silent address sooner than the
// SDK does. By default it uses only HTTP/1.1, which halves the CPU time of polling. It must have
// the SDK's type, because AWS_CA_BUNDLE works only with that type.
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
			// The transport is a clone. Without this line it would still offer HTTP/2.
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

// IsLoopback reports whether an endpoint certainly is on this machine.
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
