package put

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/codecs"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/provision"
)

type putOptions struct {
	aws    awsconf.Flags
	out    cli.Format
	stream string
	field  string
	create bool
	shards int32
	pack   bool
	loose  bool
	number bool
	large  onTooLarge
	codec  codecs.Compress
	quiet  bool
}

// onTooLarge selects the treatment of lines that are larger than a record may be.
type onTooLarge int

const (
	failOnTooLarge onTooLarge = iota
	skipTooLarge
)

func Command(t cli.Terminal) *cobra.Command {
	var o putOptions
	cmd := &cobra.Command{
		Use:   "put --stream NAME [FILE|-]",
		Short: "Put lines of a file into a stream",
		Long: `Puts each line of a file, or of standard input, into a stream as one record,
without the end of the line. Empty lines are skipped. With --key, lines are JSON
objects and the named field is the partition key. Without it each record gets a
random key, which spreads the records evenly over the shards.

A shard accepts 1 MiB and 1,000 records per second. A refused record is sent
again until the service accepts it, for any reason, so nothing is lost, and more
shards make put faster.

The order of each key is kept. A request has at most one record of a key, and
the next one follows when the service has accepted it. This is slow with few
keys. --aggregate packs the lines of a shard into records of up to 1 MiB, in
the format of the KPL, and keeps the order without being slow. It also costs
less, because the service bills at least 25 KB per record. All consumers must
unpack the records, as weir and the KCL do. --no-order sends many records of a
key in one request, so that a refused record can be overtaken by a later one
with its key.

--compress compresses each line by itself. Lines that it does not make smaller
stay as they are, and so do keys. Consumers have to decompress: weir tail and
weir consume do so with --decode.

An invalid line ends the command: all lines before it are put, and none after
it. So does a line that is too large for a record, unless --on-too-large is
skip. There is no choice that splits a line: Kinesis does not mark the parts of
a record, so consumers would handle each part as a line. If an answer of the
service is lost, a record may be in the stream twice. --numbered lets consumers
of weir recognize that.`,
		Example: `  weir put --stream flights --key origin flights.ndjson
  weir put --stream flights --create --shards 4 --key origin flights.ndjson
  weir put --stream flights --aggregate --key origin flights.ndjson    cheaper, and faster with few keys
  tail -f app.log | weir put --stream logs --on-too-large skip -
  weir put --stream flights --key origin -o json flights.ndjson    a summary for programs`,
		Args: cli.OneFileAtMost,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.Require(cmd, "stream"); err != nil {
				return err
			}
			if err := awsconf.CheckStreams(o.stream); err != nil {
				return err
			}
			if cmd.Flags().Changed("shards") {
				if !o.create {
					return cli.Usagef("--shards applies only to --create: add it")
				}
				if o.shards < 1 || o.shards > 10000 {
					return cli.Usagef("--shards %d: a stream has 1 to 10000", o.shards)
				}
			}
			switch {
			case o.number && !o.pack:
				return cli.Usagef("--numbered needs packed records: add --aggregate")
			case o.number && o.loose:
				return cli.Usagef("--numbered cannot be combined with --no-order: leave one of them out")
			}
			name := "-"
			if len(args) == 1 {
				name = args[0]
			} else if cli.IsTerminal(t.In) {
				return cli.Usagef("name a file, or - for standard input")
			}
			return o.run(cmd.Context(), t, name)
		},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
	}
	cmd.Flags().StringVar(&o.stream, "stream", "", "stream, by `NAME` or ARN")
	cmd.Flags().StringVar(&o.field, "key", "", "the `FIELD` of the JSON objects with the partition key")
	cmd.Flags().BoolVar(&o.create, "create", false, "create the stream if it does not exist")
	cmd.Flags().Int32Var(&o.shards, "shards", 1, "shards of a stream that is created")
	cmd.Flags().BoolVar(&o.pack, "aggregate", false,
		"pack lines into larger records, in the format of the KPL")
	cmd.Flags().BoolVar(&o.loose, "no-order", false,
		"faster with few keys, but records of a key may be reordered if the service refuses some")
	cmd.Flags().BoolVar(&o.number, "numbered", false,
		"number the records, so that \"weir consume --drop-repeats\" handles each once; needs --aggregate")
	cli.Choose(cmd, "on-too-large", &o.large,
		"what happens at a line that is too large for a record: fail, or skip it",
		cli.Word("fail", failOnTooLarge, "end the command"),
		cli.Word("skip", skipTooLarge, "leave the line out, and count it in the summary"))
	o.codec.Register(cmd)
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "no progress bar, and no summary except with -o json")
	o.out.Register(cmd, "format of the summary")
	o.aws.Register(cmd, false)
	o.aws.Role.Register(cmd)
	return cmd
}

func (o *putOptions) run(ctx context.Context, t cli.Terminal, name string) error {
	in, size, err := openInput(t, name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read from
	client, err := o.aws.Kinesis(ctx, t)
	if err != nil {
		return err
	}
	if o.create {
		if err := o.makeStream(ctx, t, client); err != nil {
			return err
		}
	}
	limit, auto, err := recordLimit(ctx, client, o.stream)
	if err != nil {
		return err
	}
	if auto && o.pack {
		t.Note("stream %s distributes records by itself (AUTO): "+
			"keys have no order, and lines are not packed", o.stream)
	}

	// Ctrl-C ends the reading. The records that were read are still put. The summary can then name
	// the last line that is in the stream.
	began := time.Now()
	source := newLines(in, o.field, limit)
	source.skipLarge = o.large == skipTooLarge
	if encode := o.codec.Encode(); encode != nil {
		source.compress(encode)
	}
	var position atomic.Int64
	bar := o.bar(t, size)
	sender, err := NewSender(Options{
		Client: client, Stream: o.stream, Loose: o.loose, Aggregate: o.pack, Numbered: o.number,
		Taken: func(string) { bar.update(position.Load()) },
	})
	if err != nil {
		return err
	}
	reading := make(chan error, 1)
	// The goroutine ends with the input, or with the process if the input does not end.
	go func() { reading <- feed(ctx, source, sender, &position) }()
	var wrong error
	select {
	case wrong = <-reading:
	case <-sender.Failed():
	case <-ctx.Done():
	}
	sending, cancel := drainContext(ctx, 30*time.Second)
	sum, err := sender.Close(sending)
	cancel()
	bar.finish()
	large := source.large.seen()
	if err != nil {
		return explain.PlainError{Text: explain.Error(err) + "; " + howFar(sum, large), Cause: err}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("stopped; %s", howFar(sum, large))
	}
	if wrong != nil {
		return fmt.Errorf("%w; %s", wrong, howFar(sum, large))
	}
	if o.quiet && o.out != cli.FormatJSON {
		if large.lines > 0 {
			t.Note("%s", howFar(sum, large)) // lines that are not in the stream are no summary
		}
		return nil
	}
	if err := o.report(t, sum, source.skipped, large, time.Since(began)); err != nil {
		return fmt.Errorf("%s; %w", howFar(sum, large), err)
	}
	return nil
}

// drainContext returns a context that ends later than ctx, by the given time.
func drainContext(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	drained, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(by, cancel)
		context.AfterFunc(drained, func() { timer.Stop() })
	})
	return drained, func() { stop(); cancel() }
}

// feed puts the lines until the input ends, a line is invalid, a record fails or ctx ends.
func feed(ctx context.Context, source *lines, to *Sender, position *atomic.Int64) error {
	for {
		e, err := source.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := to.Put(ctx, e); err != nil {
			return fmt.Errorf("line %d: %w", e.Line, err)
		}
		position.Store(source.read)
	}
}

// openInput opens the file or standard input. size is -1 if it is unknown.
func openInput(t cli.Terminal, name string) (in io.ReadCloser, size int64, err error) {
	if name == "-" {
		return io.NopCloser(t.In), -1, nil
	}
	f, err := os.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0, fmt.Errorf("there is no file %s", name)
	case errors.Is(err, fs.ErrPermission):
		return nil, 0, fmt.Errorf("the file %s may not be read by this user", name)
	case err != nil:
		return nil, 0, fmt.Errorf("the file %s cannot be read: %w", name, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	if info.IsDir() {
		return nil, 0, errors.Join(fmt.Errorf("%s is a directory: name a file", name), f.Close())
	}
	if !info.Mode().IsRegular() {
		return f, -1, nil
	}
	return f, info.Size(), nil
}

// makeStream creates the stream unless it exists.
func (o *putOptions) makeStream(ctx context.Context, t cli.Terminal, client *kinesis.Client) error {
	if err := awsconf.CheckNewStreams(o.stream); err != nil {
		return err
	}
	made, err := provision.CreateStream(ctx, client, provision.Stream{Name: o.stream, Shards: int(o.shards)})
	switch {
	case err != nil:
		return err
	case made.Created:
		t.Note("stream %s created, with %s", o.stream, cli.Count(o.shards, "shard"))
	default:
		t.Note("stream %s exists already and is used as it is", o.stream)
	}
	return nil
}

// recordLimit returns the maximum size of a record of the stream, including its key. auto reports
// whether the stream distributes records regardless of their keys. If the permission for the call
// is missing, recordLimit returns the limit that every stream has.
func recordLimit(
	ctx context.Context, client *kinesis.Client, stream string,
) (limit int, auto bool, err error) {
	const usual = 1024 << 10
	name, arn := awsconf.NameOrARN(stream)
	out, err := client.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: name, StreamARN: arn})
	if err != nil {
		if explain.IsAccessDenied(err) {
			return usual, false, nil
		}
		var missing *types.ResourceNotFoundException
		if errors.As(err, &missing) {
			text := explain.Error(err) + ", or give --create to make the stream"
			return 0, false, explain.PlainError{Text: text, Cause: err}
		}
		return 0, false, fmt.Errorf("stream %s: %w", stream, err)
	}
	limit = usual
	if s := out.StreamDescriptionSummary; s != nil {
		auto = s.RecordDistributionStrategy == types.RecordDistributionStrategyAuto
		if s.MaxRecordSizeInKiB != nil {
			limit = int(*s.MaxRecordSizeInKiB) << 10
		}
	}
	return limit, auto, nil
}

// putBar is the progress bar. If the field is nil, it shows nothing.
type putBar struct{ *progressbar.ProgressBar }

func (o *putOptions) bar(t cli.Terminal, size int64) putBar {
	if o.quiet || !cli.IsTerminal(t.Err) {
		return putBar{}
	}
	return putBar{progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(t.Err), progressbar.OptionSetDescription("putting"), progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30))}
}

func (b putBar) update(position int64) {
	if b.ProgressBar != nil {
		_ = b.Set64(position) // it can only fail to draw
	}
}

func (b putBar) finish() {
	if b.ProgressBar != nil {
		_ = b.Finish()
	}
}
