package shellexec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/deadletter"
)

const AboutResults = `With --exec-results the command reports a result for each record. The results
decide which records are done. A rejection also needs exit code 0. The input of
the command has one object per line, as with -o json, with the "id" of the
record. It writes lines like these to descriptor 3 (the number is in
WEIR_RESULTS_FD):

  {"id":"...","result":"done"}
  {"id":"...","result":"failed","error":"why"}
  {"id":"...","result":"rejected","error":"why it can never succeed"}
  {"end":true}

The checkpoint moves up to the first record that is not done. The command gets
that record and all later ones again. A record without a line is not done. No
record of the batch is done if the end line is missing, a line has another form,
an id is not in the batch, or a record has two different results.`

// ResultsFlag is the flag --exec-results: the command of --exec reports a result for each record.
type ResultsFlag struct{ On bool }

func (f *ResultsFlag) Register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.On, "exec-results", false, "let the command report a result for each record, on its descriptor 3")
}

// Apply checks the flag, and sets the format of the command's input to JSON objects. formatFlag is
// the name of the flag that sets this format.
func (f *ResultsFlag) Apply(cmd *cobra.Command, command, formatFlag string, to *cli.Format) error {
	switch {
	case !f.On:
		return nil
	case command == "" && cmd.Flags().Changed("lambda"):
		return cli.Usagef("--exec-results applies only to the command of --exec: a function reports failed records with --function-response-types ReportBatchItemFailures")
	case command == "":
		return cli.Usagef("--exec-results applies only to --exec: add it")
	case !passesDescriptors:
		return cli.Usagef("--exec-results needs a fourth descriptor, which this system cannot pass to a command: leave it out and use the exit code")
	case *to == cli.FormatText && cmd.Flags().Changed(formatFlag):
		return cli.Usagef("with --exec-results the command gets JSON, because it needs the id of each record: leave out --%s", formatFlag)
	}
	*to = cli.FormatJSON
	return nil
}

// resultsDescriptor is the descriptor to which a command writes its results. It is the first of the
// ExtraFiles.
const resultsDescriptor = 3

// PerRecord is a handler that passes each batch to a command. The command reports a result for each
// record.
type PerRecord struct{ Handler }

func (e PerRecord) Handle(ctx context.Context, b *weir.Batch) error {
	if len(b.Records) == 0 {
		return nil
	}
	var input []byte
	var err error
	ids := make([]string, len(b.Records))
	for i, r := range b.Records {
		ids[i] = r.ID()
		object := records.ObjectOf(b.Shard, r.Position().String(), r.ArrivalTime(), r)
		object.ID = ids[i]
		if input, err = records.AppendObject(input, object); err != nil {
			return weir.Stop(err)
		}
	}
	o := e.ask(ctx, input, ids, "WEIR_STREAM="+b.Stream, "WEIR_SHARD="+b.Shard, "WEIR_EPOCH="+strconv.FormatUint(b.Epoch, 10))
	if o.named {
		if o.rejected {
			o.err = weir.Reject(o.err)
		}
		return weir.FailedAt(b.Records[o.done], o.err)
	}
	if o.done > 0 && o.err != nil {
		if err := b.Done(b.Records[o.done-1]); err != nil {
			return err
		}
	}
	return o.err
}

// Letter passes a dead letter to the command, as a batch of one record.
func (e PerRecord) Letter(ctx context.Context, i *deadletter.Item) error {
	object := records.ObjectOf(i.Shard, i.Position, i.Arrived, weir.Record{Data: i.Data, PartitionKey: i.PartitionKey, SequenceNumber: i.SequenceNumber})
	object.ID = i.ID
	input, err := records.AppendObject(nil, object)
	if err != nil {
		return err
	}
	return e.ask(ctx, input, []string{i.ID}, letterEnvironment(i)...).err
}

// Each runs the command for records that do not depend on each other, and returns the error of each
// record, in the order of ids. A record that can never succeed has an error of weir.Reject.
func (e PerRecord) Each(ctx context.Context, input []byte, ids []string, env ...string) []error {
	said, err := e.results(ctx, input, ids, env...)
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) {
		return said.each(err)
	}
	each := said.each(nil)
	for i := range each {
		if each[i] != nil {
			each[i] = err // the end of the command may have caused the failure
		}
	}
	return each
}

// ask runs the command and returns the outcome of the batch.
func (e PerRecord) ask(ctx context.Context, input []byte, ids []string, env ...string) batchOutcome {
	said, err := e.results(ctx, input, ids, env...)
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) {
		return said.outcome(err)
	}
	// The command was ended or did not start. Count its successes so far. Ignore its failures,
	// because the end of the command may have caused them.
	return batchOutcome{done: said.outcome(nil).done, err: err}
}

// results runs the command and returns what it reported. A child process may keep the descriptor
// open after the command has exited. In that case results waits for at most Grace.
func (e PerRecord) results(ctx context.Context, input []byte, ids []string, env ...string) (*results, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return newResults(ids), fmt.Errorf("there is no pipe for the command's results: %w", err)
	}
	said, answered, drained := newResults(ids), make(chan struct{}), make(chan struct{})
	go func() { // ends when r is closed, or earlier
		defer close(drained)
		said.read(r)
		close(answered)
		_, _ = io.Copy(io.Discard, r) // a process that still writes must not block
	}()
	err = e.runWith(ctx, bytes.NewReader(input), []*os.File{w}, append(env, "WEIR_RESULTS_FD="+strconv.Itoa(resultsDescriptor))...)
	_ = w.Close()
	late := time.NewTimer(Grace)
	select {
	case <-answered:
	case <-late.C:
	}
	late.Stop()
	_ = r.Close()
	<-drained
	return said, err
}
