// Package local implements the command "weir local", which runs a Kinesis server for development.
package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/serve"
	"github.com/weir-go/weir/kinesistest"
)

type options struct {
	cfg        kinesistest.Config
	streams    []string
	queues     []string
	caFile     string
	stateDelay time.Duration
}

// Command returns the command "weir local".
func Command(t cli.Terminal) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "local",
		Short: "Run a Kinesis for development on this machine",
		Long: `Serves the Kinesis API on this machine, for development and tests, to any AWS
SDK and to the AWS CLI. Streams, splits, merges and limits behave like the real
ones. Records are kept in memory and are lost when the program ends. Credentials
are not checked. Do not use it for data that matters.

It listens on this machine only unless --addr says otherwise. It answers only
requests whose host is a loopback address, the host in --addr, or a --host, so
that a web page cannot reach it through a host name of its choice. With --addr
0.0.0.0:4567, other machines and containers can use any IP address of this
machine. If they use a host name, set it with --host.

A stream with :on-demand instead of a number of shards is in on-demand mode, and
can have queues.

Streams, consumers and queues become ACTIVE at once. With --state-delay they first are
CREATING, UPDATING or DELETING for a while, as in AWS.

The KCL for Java works with and without --tls. The KPL uses TLS only, so it
needs --tls and VerifyCertificate=false. It also asks STS for its account before
its first record: set its StsEndpoint and StsPort to a server that answers
GetCallerIdentity over TLS. The KPL names streams by ARN with that account, and
calls with an account other than --account are refused.`,
		Example: `  weir local
  weir local --stream flights:4 --stream orders:1
  weir local --stream orders:on-demand --queue billing:orders
  weir local --addr 127.0.0.1:0                     any free port; the first line says which
  weir local --addr 0.0.0.0:4567 --host kinesis     for other containers, which call it kinesis
  weir local --tls --ca-file ca.pem                 then: export AWS_CA_BUNDLE=ca.pem
  weir local --account 123456789012 --state-delay 2s --shard-limit 50     more like a real account`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			wanted, queues, err := o.check()
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), t, wanted, queues)
		},
	}
	cmd.Flags().StringVar(&o.cfg.Addr, "addr", "127.0.0.1:4567", "`ADDR` to listen on; port 0 is any free port")
	cmd.Flags().StringArrayVar(&o.cfg.Hosts, "host", nil, "another host `NAME` that clients use; may be repeated")
	cmd.Flags().StringArrayVar(&o.streams, "stream", nil, "stream to create, `NAME:SHARDS`, NAME for one shard, or NAME:on-demand; may be repeated")
	cmd.Flags().StringArrayVar(&o.queues, "queue", nil, "queue to create, `NAME:STREAM`; STREAM is a --stream in on-demand mode; may be repeated")
	cmd.Flags().StringVar(&o.cfg.Region, "region", "us-east-1", "region in the streams' ARNs")
	cmd.Flags().StringVar(&o.cfg.Account, "account", "000000000000", "account in the streams' ARNs, 12 digits")
	cmd.Flags().DurationVar(&o.stateDelay, "state-delay", 0, "how long streams, consumers and queues are CREATING, UPDATING and DELETING")
	cmd.Flags().IntVar(&o.cfg.ShardLimit, "shard-limit", 20_000, "the maximum number of open shards of the account")
	cmd.Flags().BoolVar(&o.cfg.TLS, "tls", false, "use TLS with a certificate created at the start")
	cmd.Flags().StringVar(&o.caFile, "ca-file", "", "write that certificate to this `FILE`, for AWS_CA_BUNDLE")
	cmd.Flags().BoolVar(&o.cfg.NoLimits, "no-limits", false, "do not apply the limits of Kinesis on calls, records and bytes per second")
	return cmd
}

// check returns the streams and queues to create, or an error if the flags are wrong.
func (o *options) check() ([]wantedStream, []kinesistest.Queue, error) {
	wanted, err := parseStreams(o.streams)
	if err != nil {
		return nil, nil, err
	}
	queues, err := parseQueues(o.queues, wanted)
	if err != nil {
		return nil, nil, err
	}
	return wanted, queues, o.checkServer()
}

// checkServer checks the flags that configure the server.
func (o *options) checkServer() error {
	if o.caFile != "" && !o.cfg.TLS {
		return cli.Usagef("--ca-file applies only to --tls: add it")
	}
	if err := serve.CheckAddr("--addr", o.cfg.Addr); err != nil {
		return err
	}
	for _, h := range o.cfg.Hosts {
		if !serve.HostForm.MatchString(h) {
			return cli.Usagef("--host %q: give only a name, such as kinesis or kinesis.example.com", h)
		}
	}
	switch {
	case !accountForm.MatchString(o.cfg.Account):
		return cli.Usagef("--account %q: an account has 12 digits", o.cfg.Account)
	case o.stateDelay < 0:
		return cli.Usagef("--state-delay %v: it cannot be negative", o.stateDelay)
	case o.cfg.ShardLimit < 1:
		return cli.Usagef("--shard-limit %d: it is at least 1", o.cfg.ShardLimit)
	}
	return nil
}

// run serves until ctx ends.
func (o *options) run(ctx context.Context, t cli.Terminal, wanted []wantedStream, queues []kinesistest.Queue) (err error) {
	server, err := kinesistest.Start(o.cfg)
	if err != nil {
		return serve.ListenError("--addr", o.cfg.Addr, err)
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if o.caFile != "" {
		if err := os.WriteFile(o.caFile, server.CACertPEM(), 0o644); err != nil {
			return fmt.Errorf("the certificate cannot be written: %w", err)
		}
	}
	client := server.Client()
	for _, s := range wanted {
		if _, err := client.CreateStream(ctx, s.input()); err != nil {
			return fmt.Errorf("stream %s: %w", s.name, err)
		}
	}
	for _, q := range queues {
		server.CreateQueue(q) // the flags were checked, so it cannot fail
	}
	// The streams of --stream must be usable before the address is printed. A state delay would
	// make them usable later, so set the delay only now.
	server.SetStateDelay(o.stateDelay)
	if _, err := fmt.Fprint(t.Out, welcome(server.URL(), server.Region(), o.caFile, o.cfg.TLS, wanted, queueARNs(server, queues))); err != nil {
		return err
	}
	if addr, ok := netAddr(server.Addr()); ok && !addr.IP.IsLoopback() {
		t.Note("%s can be reached from other machines, and anyone with access may read and write everything", server.Addr())
	}
	<-ctx.Done()
	return nil
}

type wantedStream struct {
	name   string
	shards int32 // 0 means on-demand mode
}

func (s wantedStream) input() *kinesis.CreateStreamInput {
	if s.shards == 0 {
		return &kinesis.CreateStreamInput{StreamName: &s.name, StreamModeDetails: &types.StreamModeDetails{StreamMode: types.StreamModeOnDemand}}
	}
	return &kinesis.CreateStreamInput{StreamName: &s.name, ShardCount: &s.shards}
}

var accountForm = regexp.MustCompile(`^[0-9]{12}$`)

var streamForm = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,128}$`)

func parseStreams(list []string) ([]wantedStream, error) {
	var all []wantedStream
	for _, s := range list {
		name, count, given := strings.Cut(s, ":")
		if !given {
			count = "1"
		}
		shards, err := int64(0), error(nil)
		if count != "on-demand" {
			shards, err = strconv.ParseInt(count, 10, 32)
		}
		if err != nil || count != "on-demand" && shards < 1 || shards > 10000 || !streamForm.MatchString(name) {
			return nil, cli.Usagef("--stream %q: write it like flights:4 or flights:on-demand, a name of a-z, A-Z, 0-9, _ . - and a number of shards", s)
		}
		if slices.ContainsFunc(all, func(w wantedStream) bool { return w.name == name }) {
			return nil, cli.Usagef("--stream names %s twice", name)
		}
		all = append(all, wantedStream{name, int32(shards)})
	}
	return all, nil
}

// maxQueues is the maximum number of queues of a stream.
const maxQueues = 20

func parseQueues(list []string, streams []wantedStream) ([]kinesistest.Queue, error) {
	var all []kinesistest.Queue
	count := map[string]int{}
	for _, s := range list {
		name, stream, _ := strings.Cut(s, ":")
		if !streamForm.MatchString(name) || !slices.Contains(streams, wantedStream{stream, 0}) {
			return nil, cli.Usagef("--queue %q: write it like billing:orders, a name of a-z, A-Z, 0-9, _ . - and a stream of --stream orders:on-demand", s)
		}
		if slices.ContainsFunc(all, func(q kinesistest.Queue) bool { return q.Name == name }) {
			return nil, cli.Usagef("--queue names %s twice", name)
		}
		if count[stream]++; count[stream] > maxQueues {
			return nil, cli.Usagef("--queue: a stream has at most %d queues, and %s has more", maxQueues, stream)
		}
		all = append(all, kinesistest.Queue{Stream: stream, Name: name})
	}
	return all, nil
}

// queueARNs returns a line about each queue.
func queueARNs(server *kinesistest.Server, queues []kinesistest.Queue) []string {
	lines := make([]string, len(queues))
	for i, q := range queues {
		lines[i] = fmt.Sprintf("Queue %s of stream %s is %s.", q.Name, q.Stream, server.QueueARN(q.Name))
	}
	return lines
}

func netAddr(addr string) (*net.TCPAddr, bool) {
	a, err := net.ResolveTCPAddr("tcp", addr)
	return a, err == nil
}

// welcome returns a text that explains how to reach the server. Its indented lines can be pasted
// into a shell.
func welcome(url, region, caFile string, tls bool, streams []wantedStream, queues []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Kinesis for development on %s\n\nTo use it from another shell, with weir, an AWS SDK, boto3 or the AWS CLI:\n\n", url)
	fmt.Fprintf(&b, "  export AWS_ENDPOINT_URL_KINESIS=%s\n", url)
	fmt.Fprintf(&b, "  export AWS_REGION=%s AWS_DEFAULT_REGION=%[1]s\n", region)
	b.WriteString("  export AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local\n")
	switch {
	case tls && caFile != "":
		fmt.Fprintf(&b, "  export AWS_CA_BUNDLE=%s\n", caFile)
	case tls:
		fmt.Fprintf(&b, "\nIts certificate was made just now; --ca-file FILE writes it to a file for AWS_CA_BUNDLE.\n")
	}
	b.WriteString("  aws kinesis list-streams\n")
	for _, s := range streams {
		if s.shards == 0 {
			fmt.Fprintf(&b, "\nStream %s is in on-demand mode.", s.name)
			continue
		}
		fmt.Fprintf(&b, "\nStream %s has %s.", s.name, cli.Count(s.shards, "shard"))
	}
	for _, line := range queues {
		b.WriteString("\n" + line)
	}
	if len(streams) > 0 {
		b.WriteString("\n")
	}
	b.WriteString("\nCtrl-C ends it; its records are gone then.\n")
	return b.String()
}
