package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/judge"
	"github.com/weir-go/weir/cmd/weir/internal/sqlitefile"
)

const (
	stream = "flights"
	app    = "demo"
)

// Worker contains the arguments of a worker process of the demo.
type Worker struct {
	Name     string
	Endpoint string        // URL of the embedded Kinesis in the parent process
	Dir      string        // contains the SQLite file and the journals
	Beat     time.Duration // see weir.Options; 0 means the default
	Failover time.Duration
	FanOut   weir.FanOutMode
	Keep     bool // do not remove Dir if the parent dies
}

func storePath(dir string) string         { return filepath.Join(dir, "leases.db") }
func journalPath(dir, name string) string { return filepath.Join(dir, name+".journal") }
func logPath(dir, name string) string     { return filepath.Join(dir, name+".log") }

// Run runs a worker process: an ordinary consumer whose handler writes each record to a journal.
// Run returns when ctx ends, or when the parent process asks for it through the pipe lifeline. If
// lifeline is closed, the parent is dead, and its embedded Kinesis with it. Run then ends this
// process.
func (w Worker) Run(ctx context.Context, lifeline io.Reader, log io.Writer) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	orphaned := make(chan struct{})
	defer func() {
		select {
		case <-orphaned:
			select {} // wait until the process ends, which the code below causes
		default:
		}
	}()
	go func() { // ends with the process, because a read from standard input cannot be interrupted
		if awaitStop(lifeline) {
			stop()
			return
		}
		close(orphaned)
		if !w.Keep {
			abandonScratch(w.Dir) // the main process is gone
		}
		os.Exit(1)
	}()

	store, err := sqlitefile.Open(ctx, storePath(w.Dir), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	file, err := os.OpenFile(journalPath(w.Dir, w.Name), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()

	client := kinesis.New(kinesis.Options{
		BaseEndpoint: aws.String(w.Endpoint),
		Region:       "us-east-1",
		HTTPClient:   awshttp.NewBuildableClient(),
		Credentials:  credentials.NewStaticCredentialsProvider("demo", "demo", ""),
	})
	consumer, err := weir.New(client, store, weir.Options{
		App: app, Streams: []string{stream}, Worker: w.Name, FanOut: weir.FanOut{Mode: w.FanOut},
		Timing: weir.Timing{HeartbeatInterval: w.Beat, FailoverAfter: w.Failover},
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		return err
	}
	return consumer.Run(ctx, &journal{file: file, turn: make(chan struct{}, 1)})
}

// journal is the handler. It writes a line for each record. It returns nil only after the lines are
// in the file.
type journal struct {
	file io.Writer
	turn chan struct{} // one batch at a time, so that times increase within the file
	last int64
	buf  []byte
}

func (j *journal) Handle(ctx context.Context, b *weir.Batch) error {
	select {
	case j.turn <- struct{}{}:
		defer func() { <-j.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	j.buf = j.buf[:0]
	for _, r := range b.Records {
		index, err := flightIndex(r.Data)
		if err != nil {
			return weir.Stop(err)
		}
		j.last = max(time.Now().UnixNano(), j.last+1)
		j.buf = judge.AppendLine(j.buf, judge.Handling{
			Shard: b.Shard, Epoch: b.Epoch, Sequence: r.SequenceNumber, Key: r.PartitionKey, Index: index, At: j.last,
		})
	}
	if len(j.buf) == 0 {
		return nil
	}
	// Write all lines at once. A kill can then cut only the end.
	if _, err := j.file.Write(j.buf); err != nil {
		return weir.Stop(fmt.Errorf("the journal cannot be written: %w", err))
	}
	return nil
}
