package multilang

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/oldside"
	"github.com/weir-go/weir/cmd/weir/internal/peers"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/store/memstore"
)

const about = `weir multilang runs programs that were written for Amazon's MultiLangDaemon, such
as record processors with amazon_kclpy or aws-kcl. It needs no Java. It reads
the properties file of the daemon, starts one process of the program for each
shard of this worker, and speaks the daemon's protocol with it.

--store selects the store of the leases and checkpoints, which the properties
file cannot name. Every property is obeyed, mapped to something of weir, or
reported; --strict makes such reports errors. Flags have priority over
properties. The page docs/moving/multilang.md lists all properties.

If a program fails, weir logs why, pauses, and starts it again at its last
checkpoint. With --on-failure exit, all programs stop in order and the command
exits with 1, as the daemon does. A program has failed if it exits, if it
answers wrongly, and if it sends no message within timeoutInSeconds.

A first signal stops all programs in order, within shutdownGraceMillis (5 s by
default). Programs that use amazon_kclpy 1 or aws-kcl 0 need --protocol kcl1.`

const examples = `  weir multilang --properties app.properties --store dynamodb:app-leases
  weir multilang --properties app.properties --store sqlite:app.db --strict`

type failurePolicy string

const (
	failureRestart failurePolicy = "restart"
	failureExit    failurePolicy = "exit"
)

type options struct {
	aws        awsconf.Flags
	properties string
	store      string
	newTable   bool
	strict     bool
	protocol   generation
	onFailure  failurePolicy
	log        cli.LogFormat
}

// Command returns the command "weir multilang".
func Command(t cli.Terminal) *cobra.Command {
	o := options{log: cli.LogText}
	cmd := &cobra.Command{
		Use:     "multilang --properties FILE --store URL",
		Short:   "Run programs of the KCL's MultiLangDaemon, without Java",
		Long:    about,
		Example: examples,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Require(cmd, "properties", "store"); err != nil {
				return err
			}
			url, err := stores.Parse(o.store)
			if err != nil {
				return err
			}
			return explain.Orderly(cmd.Context(), o.run(cmd, t, url))
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.properties, "properties", "p", "", "the properties `FILE` of the MultiLangDaemon")
	stores.Register(cmd, &o.store)
	f.BoolVar(&o.newTable, "create-store", false, "create the DynamoDB table if it does not exist, or the tables of a database")
	f.BoolVar(&o.strict, "strict", false, "refuse properties that weir does not know or use")
	cli.Choose(cmd, "protocol", &o.protocol, "the library of the program: kcl2 for amazon_kclpy 2 and 3 and aws-kcl 2, kcl1 for older ones",
		cli.Word(string(kcl2), kcl2, "amazon_kclpy 2 and 3, aws-kcl 2"), cli.Word(string(kcl1), kcl1, "amazon_kclpy 1, aws-kcl 0"))
	cli.Choose(cmd, "on-failure", &o.onFailure, "what happens when a program fails: restart starts it again, exit stops this worker with 1",
		cli.Word(string(failureRestart), failureRestart, "start it again"), cli.Word(string(failureExit), failureExit, "stop this worker"))
	f.Var(&o.log, "log", "the `FORMAT` of the log on standard error: text or json")
	o.aws.Register(cmd, true)
	o.aws.Role.Register(cmd)
	return cmd
}

// load reads the properties file and sets the flags that it maps to.
func (o *options) load(cmd *cobra.Command, t cli.Terminal) (*settings, error) {
	text, err := os.ReadFile(o.properties)
	if err != nil {
		return nil, fmt.Errorf("--properties: the file %s cannot be read: %w", o.properties, cli.RootError(err))
	}
	s, err := read(parse(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.properties, err)
	}
	if o.strict && len(s.warnings) > 0 {
		return nil, fmt.Errorf("%s: %s (--strict)", o.properties, strings.Join(s.warnings, "; "))
	}
	for _, w := range s.warnings {
		t.Say(slog.LevelWarn, "%s: %s", filepath.Base(o.properties), w)
	}
	for name, value := range s.flags {
		if !cmd.Flags().Changed(name) {
			if err := cmd.Flags().Set(name, value); err != nil {
				return nil, fmt.Errorf("%s: %w", o.properties, err)
			}
		}
	}
	return s, nil
}

// inProperties replaces the names of options by the properties that set them.
var inProperties = strings.NewReplacer(
	"Options.App", "applicationName", "Options.Streams", "streamName", "Options.Worker", "workerId",
	"Options.FanOut.Name", "fanoutConfig.consumerName", "Options.FanOut.ARNs", "fanoutConfig.consumerArn",
	"Options.Timing.FailoverAfter", "failoverTimeMillis", "Options.Timing.HandoffTimeout", "gracefulLeaseHandoffTimeoutMillis",
)

// daemon runs the program for the shards of a worker.
type daemon struct {
	program   *program
	protocol  generation
	onFailure failurePolicy
	empty     bool
	log       *slog.Logger
}

func (o *options) run(cmd *cobra.Command, t cli.Terminal, url stores.URL) (err error) {
	ctx, env := cmd.Context(), os.Environ()
	s, err := o.load(cmd, t)
	if err != nil {
		return err
	}
	if s.profile != "" {
		os.Setenv("AWS_PROFILE", s.profile)
	}
	args, err := findProgram(s.executable)
	if err != nil {
		return fmt.Errorf("%s: %w", o.properties, err)
	}
	log := slog.New(o.log.Handler(t.Err))
	s.options.Logger = log
	o.aws.HTTP2, o.aws.Reads = s.options.FanOut.Mode != weir.FanOutOff || len(s.options.FanOut.ARNs) > 0, true
	client, err := o.aws.Kinesis(ctx, t)
	if err != nil {
		return err
	}
	if _, err := weir.New(client, memstore.New(), s.options); err != nil { // check the options before a store is opened
		return fmt.Errorf("%s: %s", o.properties, inProperties.Replace(err.Error()))
	}
	if err := o.aws.Greet(ctx, client, s.options.Streams...); err != nil {
		return err
	}
	store, err := url.Open(ctx, t, &o.aws, true, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	err = peers.Persist(ctx, o.aws.Wait, store.Peer, func() error {
		if o.newTable {
			if err := store.Migrate(ctx); err != nil {
				return err
			}
		}
		_, err := store.ReadApp(ctx, s.options.App)
		return err
	})
	if err != nil {
		return err
	}
	consumer, err := weir.New(client, store.Store, s.options)
	if err != nil {
		return err
	}
	warn := func(shard, text string) { log.Warn(text, "shard", shard) }
	d := &daemon{
		program: &program{
			args: args, env: env, out: newShared(t.Out), err: newShared(t.Err), timeout: s.timeout,
			grace: graces{10 * time.Second, 5 * time.Second}, warn: warn,
		},
		protocol: o.protocol, onFailure: o.onFailure, empty: s.empty, log: log,
	}
	log.Info("the worker starts", "app", s.options.App, "stream", s.stream, "program", s.executable, "protocol", string(o.protocol))
	dynamo := func() (*dynamodb.Client, error) { return o.aws.DynamoDB(ctx, t) }
	defer oldside.Start(ctx, store, s.options.App, dynamo, log)()
	return ended(store, consumer.RunPull(ctx, d.handler(s)))
}

// handler returns the handler for RunPull. Idle calls find a process that ended while it had
// nothing to do.
func (d *daemon) handler(s *settings) weir.PullHandler {
	idle := time.Second
	if s.empty && s.options.Polling.IdleInterval > 0 {
		idle = s.options.Polling.IdleInterval
	}
	return weir.PullHandler{Pull: d.pull, Idle: idle}
}

// ended returns the error of the command after its worker has returned err.
func ended(store stores.Store, err error) error {
	if broken := explain.NotKept(err); broken != nil {
		return broken
	}
	return store.Explain(err)
}
