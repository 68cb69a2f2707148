// Package consume is the command "weir consume": one worker of an application. Its files are named
// by what their flags are about.
package consume

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/fanout"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/cmd/weir/internal/serve"
	"github.com/weir-go/weir/cmd/weir/internal/shellexec"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/stream"
)

type options struct {
	aws      awsconf.Flags
	out      cli.Format
	streams  []string
	app      string
	store    string
	from     string
	worker   string
	exec     string
	fanOut   fanout.Flag
	newTable bool
	new      stream.Mode // of streams that are made
	verbose  bool
	log      cli.LogFormat
	health   string
	metrics  metricsFlags
	settings weir.Options // those that have flags of their names
	giveUp   giveUpFlags
	filter   records.FilterFlags
	to       toFlags
	// the command gets the worker's credentials
	execCredentials bool
	execResults     shellexec.ResultsFlag
	lambda          lambdaFlags
}

func Command(t cli.Terminal) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "consume --stream NAME --app NAME --store URL",
		Short: "Work on a stream together with others",
		Long: `Runs one worker of an application. All workers with the same --app and --store share the shards of the stream: start
as many as you like, stop and kill them at will. Every record is handled at least once, those of one key in order.

A record is handled when it was written to standard output, or, with --exec, when the command that got it exits with 0,
with --lambda, when the function has answered, or, with --to, when it is in a file or in an object in S3. Only then does
the application's progress pass it. --exec runs the command once for each batch, through the shell, with the batch's
records on its standard input; any other exit code means that the same batch is given to it again, after a pause that
grows to 30 s. The command finds WEIR_STREAM, WEIR_SHARD and WEIR_EPOCH in its environment; the epoch grows with every
change of the shard's owner, so a database can refuse a late writer. The command is ended when the shard moves to another worker before it is done. Batches of several
shards run at the same time. If the worker is killed (SIGKILL), Linux kills the command too, but not what the command
has started; begin the last command with "exec" so that there is nothing in between. Elsewhere it goes on; compare the
epoch where that matters.
The command inherits the worker's environment, but for AWS credentials, ` + cli.StoreVariable + ` and ` + cli.DeadVariable + `,
unless --exec-credentials lets it have them.

` + shellexec.AboutResults + `

` + aboutLambda + `

--to file:PATH appends a line of JSON for each record to a file: its data if that is JSON, {"data_base64":"..."} if it is
not, or with -o json the object about it. A batch is on disk before it counts as handled. What a worker had written when
it was killed may be there twice, and its last line may be cut short.

--to s3://BUCKET/PREFIX writes such lines into objects, compressed, below PREFIX/STREAM/dt=DATE/hour=HOUR/, by the hour in
UTC in which an object's first record arrived. Each record is in one object, once, whatever ends or repeats. An object is
written when it has --object-size bytes, or --object-age after its first record. The bucket has to be in the stream's
region, and needs permission to list, read and write; AWS_ENDPOINT_URL_S3 names another server than AWS.

` + records.AboutFilters + `

A batch that the command or the function fails at is given to it again for ever, unless --attempts or --max-age says when to give it up.
Its letters go to --dead first, with the records as they were, and only then does the progress pass it; "weir dead" shows
them and handles them again. (Not those of --dead-format lambda, which are for programs that read what Lambda's event
source sends: its account is that of --stream by ARN, or 000000000000, and its function is --app.) While nothing else can be handled, either, or too much is given up, it waits with that.

Ctrl-C, SIGTERM and a closed standard output (as by "| head") end the worker in order: it finishes its batches,
saves its progress and gives its shards to the others. What is not finished after --stop-timeout is interrupted and named
on standard error; it will be handled again. 20 s after that time at the latest the worker has ended.
A second Ctrl-C or SIGTERM, a second or more after the first, ends it at once. If the store does not answer while it
stops, so that progress may not be saved, it says so and exits with 1.

Standard output has records alone. What happens is told on standard error, a line each: when, how bad, of which application,
worker, stream and shard. A failure names the first and the last sequence number of what will be handled again.

How a worker works is set by the options of weir's Go package, by the same names (--failover-after is FailoverAfter); the
package's documentation says more about each.

` + records.AboutBinary,
		Example: `  weir consume --stream flights --app billing --store sqlite:billing.db
  weir consume --stream flights --app billing --store dynamodb:weir --create-store
  weir consume --stream flights --create-stream 4 --app billing --store dynamodb:weir --create-store
  weir consume --stream flights --app loader --store sqlite:loader.db --batch 500 --exec 'psql -c "copy raw from stdin"'
  weir consume --stream flights --app loader --store sqlite:loader.db --exec ./load --attempts 3 --bisect --dead file:dead.ndjson
  weir consume --stream flights --app loader --store sqlite:loader.db --exec ./load.py --exec-results --dead file:dead.ndjson
  weir consume --stream flights --app loader --store sqlite:loader.db --lambda 'python3 -m awslambdaric app.handler' --function-response-types ReportBatchItemFailures
  weir consume --stream flights --app archive --store dynamodb:weir --to s3://my-bucket/raw
  weir consume --stream flights --app billing --store sqlite:billing.db --fan-out
  weir consume --stream flights --app big --store sqlite:big.db --filter '{"data":{"amount":[{"numeric":[">",100]}]}}'
  weir consume --stream flights --app look --store memory: --from 15m`,
		Args: o.fanOut.Args,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Require(cmd, "stream", "app", "store"); err != nil {
				return err
			}
			url, err := stores.Parse(o.store)
			if err != nil {
				return err
			}
			if o.new.Given {
				if err := awsconf.CheckNewStreams(o.streams...); err != nil {
					return err
				}
			}
			if err := o.lambda.names.apply(&o.lambda); err != nil {
				return err
			}
			from, err := records.ParseFrom(o.from, time.Now())
			if err != nil {
				return err
			}
			if err := o.execResults.Apply(cmd, o.exec, "output", &o.out); err != nil {
				return err
			}
			if o.exec == "" && o.execCredentials {
				return cli.Usagef("--exec-credentials is about the command of --exec: give that, too (--lambda has --pass-env)")
			}
			if err := o.filter.Apply(&o.settings.Filter); err != nil {
				return err
			}
			fails := o.settings.Filter.NotJSON == weir.FailNotJSON
			o.giveUp.rejects = o.execResults.On || fails
			if err := o.lambda.apply(&o); err != nil {
				return err
			}
			if err := o.to.check(o.exec != "" || o.lambda.used()); err != nil {
				return err
			}
			if err := o.giveUp.apply(&o.settings.GiveUp, o.exec != "" || o.lambda.used() || fails); err != nil {
				return err
			}
			if o.worker == "" {
				host, _ := os.Hostname()
				o.worker = fmt.Sprintf("%s-%d", strings.ToValidUTF8(host, "_"), os.Getpid())
			}
			if o.health != "" {
				if o.health, err = serve.Addr("--health", o.health); err != nil {
					return err
				}
			}
			if err := o.metrics.check(cmd); err != nil {
				return err
			}
			return explain.Orderly(cmd.Context(), o.run(cmd.Context(), t, url, from))
		},
	}
	cmd.Flags().StringArrayVar(&o.streams, "stream", nil, "stream, by `NAME` or ARN; may be repeated")
	cmd.Flags().StringVar(&o.app, "app", "", "application: the `NAME` under which workers share the progress")
	stores.Register(cmd, &o.store)
	cmd.Flags().BoolVar(&o.newTable, "create-store", false, "make the DynamoDB table if it does not exist (SQLite files always are); \"weir store create\" says which settings its URL may have")
	stream.RegisterNew(cmd, &o.new)
	cmd.Flags().StringVar(&o.from, "from", "oldest", "where a new application starts: "+records.FromHelp)
	cmd.Flags().StringVar(&o.worker, "worker", "", "name of this worker for people (default host and process)")
	cmd.Flags().StringVar(&o.exec, "exec", "", "shell `COMMAND` that handles each batch")
	shellexec.RegisterCredentials(cmd, &o.execCredentials)
	o.execResults.Register(cmd)
	o.lambda.register(cmd)
	o.to.register(cmd)
	cmd.Flags().StringVar(&o.health, "health", "", "answer /livez and /readyz over HTTP on `ADDR`, such as 8080 for this machine or 0.0.0.0:8080 for all")
	o.metrics.register(cmd)
	o.fanOut.Register(cmd)
	registerSettings(cmd, &o.settings)
	o.giveUp.register(cmd, &o.settings.GiveUp)
	o.filter.Register(cmd, "it is tried again for ever, or with --dead given up")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "log which shards are taken and given back, too")
	o.log = cli.LogText
	cmd.Flags().Var(&o.log, "log", "how standard error tells what happens: text or json, a line each")
	cli.MustComplete(cmd, "log", "text\tname=value, for people and grep", "json\tan object a line, from the first word on")
	cli.MustComplete(cmd, "from", "oldest\twhat the stream still keeps", "latest\tfrom now on", "15m\tthe last quarter of an hour")
	o.out.Register(cmd, "text hands on the data, json an object about each record")
	o.aws.Register(cmd, true)
	o.aws.Role.Register(cmd)
	o.registerWait(cmd)
	return cmd
}

// printer is the handler that writes records to standard output.
type printer struct {
	outlet *outlet
	out    cli.Format
}

func (p printer) Handle(ctx context.Context, b *weir.Batch) error {
	var buf []byte
	var err error
	for _, r := range b.Records {
		if buf, err = records.Append(buf, p.out, b.Shard, r); err != nil {
			return weir.Stop(err)
		}
	}
	if len(buf) == 0 {
		return nil
	}
	return p.outlet.write(ctx, buf)
}

// outlet writes to standard output for many handlers, a batch at a time, so that lines of two
// shards never mix. A reader that is slow holds the handlers up; it does not keep one that has to
// stop.
type outlet struct {
	t    cli.Terminal
	turn chan struct{}
}

func newOutlet(t cli.Terminal) *outlet { return &outlet{t, make(chan struct{}, 1)} }

func (o *outlet) write(ctx context.Context, buf []byte) error {
	select {
	case o.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	written := make(chan error, 1)
	go func() { // ends with the write, or with the process if the output is never read
		_, err := o.t.Out.Write(buf)
		<-o.turn
		written <- err
	}()
	select {
	case err := <-written:
		if err != nil { // it will not open again: the batch stays as it is, for another worker
			return weir.Stop(fmt.Errorf("standard output cannot be written: %w", err))
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
