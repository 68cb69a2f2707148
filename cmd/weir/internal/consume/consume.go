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

// Command returns the command.
func Command(t cli.Terminal) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "consume --stream NAME --app NAME --store URL",
		Short:   "Handle the records of a stream, together with other workers",
		Long:    about,
		Example: examples,
		Args:    o.fanOut.Args,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, from, err := o.check(cmd)
			if err != nil {
				return err
			}
			return explain.Orderly(cmd.Context(), o.run(cmd.Context(), t, url, from))
		},
	}
	o.register(cmd)
	return cmd
}

// check refuses flags that contradict each other, completes the options, and returns the store's
// URL and the place where a new application starts.
func (o *options) check(cmd *cobra.Command) (url stores.URL, from weir.Position, err error) {
	if err := cli.Require(cmd, "stream", "app", "store"); err != nil {
		return url, from, err
	}
	url, err = stores.Parse(o.store)
	if err != nil {
		return url, from, err
	}
	if o.new.Given {
		if err := awsconf.CheckNewStreams(o.streams...); err != nil {
			return url, from, err
		}
	}
	if err := o.lambda.names.apply(&o.lambda); err != nil {
		return url, from, err
	}
	from, err = records.ParseFrom(o.from, time.Now())
	if err != nil {
		return url, from, err
	}
	if err := o.execResults.Apply(cmd, o.exec, "output", &o.out); err != nil {
		return url, from, err
	}
	if o.exec == "" && o.execCredentials {
		return url, from, cli.Usagef("--exec-credentials applies only to --exec: add it (--lambda has --pass-env)")
	}
	if err := o.filter.Apply(&o.settings.Filter); err != nil {
		return url, from, err
	}
	fails := o.settings.Filter.NotJSON == weir.FailNotJSON
	o.giveUp.rejects = o.execResults.On || fails
	if err := o.lambda.apply(o); err != nil {
		return url, from, err
	}
	if err := o.to.check(o.exec != "" || o.lambda.used()); err != nil {
		return url, from, err
	}
	if err := o.giveUp.apply(&o.settings.GiveUp, o.exec != "" || o.lambda.used() || fails); err != nil {
		return url, from, err
	}
	if o.worker == "" {
		host, _ := os.Hostname()
		o.worker = fmt.Sprintf("%s-%d", strings.ToValidUTF8(host, "_"), os.Getpid())
	}
	if o.health != "" {
		if o.health, err = serve.Addr("--health", o.health); err != nil {
			return url, from, err
		}
	}
	if err := o.metrics.check(cmd); err != nil {
		return url, from, err
	}
	return url, from, nil
}

// register adds the flags.
func (o *options) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&o.streams, "stream", nil, "stream, by `NAME` or ARN; may be repeated")
	cmd.Flags().StringVar(&o.app, "app", "", "application: workers with the same `NAME` share the progress")
	stores.Register(cmd, &o.store)
	cmd.Flags().BoolVar(&o.newTable, "create-store", false, "create the DynamoDB table if it does not exist (a SQLite file is always created); \"weir store create -h\" lists the settings of its URL")
	stream.RegisterNew(cmd, &o.new)
	cmd.Flags().StringVar(&o.from, "from", "oldest", "where a new application starts: "+records.FromHelp)
	cmd.Flags().StringVar(&o.worker, "worker", "", "name of this worker in logs and listings (default: host and process)")
	cmd.Flags().StringVar(&o.exec, "exec", "", "shell `COMMAND` that handles each batch")
	shellexec.RegisterCredentials(cmd, &o.execCredentials)
	o.execResults.Register(cmd)
	o.lambda.register(cmd)
	o.to.register(cmd)
	cmd.Flags().StringVar(&o.health, "health", "", "serve /livez and /readyz over HTTP on `ADDR`, such as 8080 for this machine or 0.0.0.0:8080 for all")
	o.metrics.register(cmd)
	o.fanOut.Register(cmd)
	registerSettings(cmd, &o.settings)
	o.giveUp.register(cmd, &o.settings.GiveUp)
	o.filter.Register(cmd, "it is retried without end, or with --dead it is dead-lettered")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "also log each shard that is taken or given back")
	o.log = cli.LogText
	cmd.Flags().Var(&o.log, "log", "format of the log on standard error: text or json, one event per line")
	cli.MustComplete(cmd, "log", "text\tname=value, for people and grep", "json\tan object a line, from the first word on")
	cli.MustComplete(cmd, "from", "oldest\tthe oldest record in the stream", "latest\trecords that arrive from now on", "15m\tthe last quarter of an hour")
	o.out.Register(cmd, "text is the data, json an object about each record")
	o.aws.Register(cmd, true)
	o.aws.Role.Register(cmd)
	o.registerWait(cmd)
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
