// Package consume implements the command "weir consume", which runs one worker of an application.
// Each file is named after the subject of its flags.
package consume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/codecs"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/fanout"
	"github.com/weir-go/weir/cmd/weir/internal/records"
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
	fanOut   fanout.Flags
	newTable bool
	new      stream.Mode // mode of streams that the command creates
	verbose  bool
	log      cli.LogFormat
	health   string
	metrics  metricsFlags
	settings weir.Options // options of package weir whose flags have the same names
	failures failureFlags
	filter   records.FilterFlags
	decode   codecs.Decode
	to       toFlags
	// execCredentials means that the command receives the worker's AWS credentials.
	execCredentials bool
	execResults     shellexec.ResultsFlag
	lambda          lambdaFlags
	until           untilFlags
	queue           queueFlags
	given           []string // the flags of the command line, for the log
}

// Command returns the command "weir consume".
func Command(t cli.Terminal) *cobra.Command {
	o := options{from: "oldest", log: cli.LogText, metrics: metricsFlags{shards: true}}
	cmd := &cobra.Command{
		Use:     "consume --stream NAME --app NAME --store URL",
		Short:   "Handle the records of a stream, together with other workers",
		Long:    about,
		Example: examples,
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all, _ := cmd.Flags().GetBool("help-all"); all {
				return cmd.Help()
			}
			if cmd.Flags().Changed("queue") {
				return o.consumeQueue(cmd, t)
			}
			url, from, err := o.check(cmd)
			if err != nil {
				return err
			}
			return explain.Orderly(cmd.Context(), o.run(cmd.Context(), t, url, from))
		},
	}
	for _, r := range o.table(cmd) {
		r.register(cmd)
	}
	for _, r := range o.queue.rows() {
		cmd.Flags().Lookup(r.name).Hidden = true // "weir queue consume" shows them
	}
	helpFlags(cmd, t)
	return cmd
}

// check returns an error if flags are missing, invalid or contradict each other. It completes the
// options. It returns the URL of the store and the start position of a new application.
func (o *options) check(cmd *cobra.Command) (url stores.URL, from weir.Position, err error) {
	if err = cli.Require(cmd, "stream", "app", "store"); err != nil {
		return url, from, err
	}
	o.given = flagsOf(cmd)
	if url, err = stores.Parse(o.store); err != nil {
		return url, from, err
	}
	for _, r := range o.table(cmd) {
		if err = r.check(cmd); err != nil {
			return url, from, err
		}
	}
	if from, err = records.ParseFrom(o.from, time.Now()); err != nil {
		return url, from, err
	}
	if err = o.filter.Apply(&o.settings.Filter); err != nil {
		return url, from, err
	}
	o.settings.Filter.By = o.decode.Matcher(o.settings.Filter.By)
	if o.worker == "" {
		host, _ := os.Hostname()
		o.worker = fmt.Sprintf("%s-%d", strings.ToValidUTF8(host, "_"), os.Getpid())
	}
	if o.lambda.used() {
		o.lambda.complete(&o.settings, cmd.Flags().Changed)
	}
	return url, from, o.applyFailurePolicy(cmd.Flags().Changed)
}

// secretFlags may contain passwords or commands. The log has only their names.
var secretFlags = []string{"store", "dead", "exec", "lambda", "invoke", "filter", "filter-criteria", "pass-env", "role-external-id"}

// flagsOf returns the flags of a command line, except those that other words of the log repeat.
func flagsOf(cmd *cobra.Command) []string {
	given := []string{}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case slices.Contains([]string{"app", "worker", "stream", "store", "queue"}, f.Name):
		case slices.Contains(secretFlags, f.Name):
			given = append(given, "--"+f.Name)
		default:
			given = append(given, "--"+f.Name+"="+f.Value.String())
		}
	})
	return given
}

// printer is a handler that writes records to standard output.
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

// outlet writes the batches of many handlers to standard output. It writes one batch at a time, so
// that lines of two shards never mix. A slow reader delays the handlers. A handler that has to stop
// does not wait for the reader.
type outlet struct {
	t    cli.Terminal
	turn chan struct{}
}

var errOutput = errors.New("standard output cannot be written")

func newOutlet(t cli.Terminal) *outlet { return &outlet{t, make(chan struct{}, 1)} }

func (o *outlet) write(ctx context.Context, buf []byte) error {
	select {
	case o.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	written := make(chan error, 1)
	go func() { // ends with the write; if the output is never read, ends with the process
		_, err := o.t.Out.Write(buf)
		<-o.turn
		written <- err
	}()
	select {
	case err := <-written:
		if err != nil { // standard output will not work again, so leave the batch to another worker
			return weir.Stop(fmt.Errorf("%w: %w", errOutput, err))
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
