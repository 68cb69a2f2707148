package dead

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/codecs"
	"github.com/weir-go/weir/cmd/weir/internal/deadletters"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/shellexec"
	"github.com/weir-go/weir/deadletter"
)

// letterChange contains the parts that the commands drop and retry share.
type letterChange struct {
	Flags
	out  cli.Format
	all  bool
	yes  bool
	dry  bool
	verb string // for example "drop"
	done string // for example "dropped"
}

func (c *letterChange) register(cmd *cobra.Command) {
	c.Flags.register(cmd, "kept")
	cmd.Flags().BoolVar(&c.all, "all", false, "all dead letters; needed if no other flag chooses some")
	cmd.Flags().BoolVar(&c.dry, "dry-run", false, "show the chosen dead letters and do nothing")
	cmd.Flags().BoolVar(&c.yes, "yes", false, "do not ask")
	c.out.Register(cmd, "output format")
}

// changed is the JSON output of drop and retry.
type changed struct {
	Letters int `json:"letters"` // number of selected dead letters
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Taken   int `json:"taken"` // dead letters that another process changed meanwhile
}

// check completes the filter. It returns an error unless the flags select dead letters.
func (c *letterChange) check(cmd *cobra.Command, t cli.Terminal, ids []string) error {
	narrowed, err := c.choose(cmd, ids, deadletter.Kept)
	if err != nil {
		return err
	}
	switch {
	case !narrowed && !c.all:
		return cli.Usagef("%s needs a selection of dead letters: give their IDs, --stream, --shard, --key, --error, --reason, --since or --until, or --all", cmd.CommandPath())
	case narrowed && c.all:
		return cli.Usagef("--all selects all dead letters: leave it out, or leave out the other selections")
	}
	return cli.CanConfirm(cmd, t, c.yes || c.dry)
}

// change shows the selected dead letters, asks for confirmation, and calls do. With --yes it does
// not ask. With --dry-run it only shows them.
func (c *letterChange) change(ctx context.Context, cmd *cobra.Command, t cli.Terminal, ids []string, warning string, do func(deadletter.Box, []deadletter.Item) (deadletter.Outcome, error)) (err error) {
	if err := c.check(cmd, t, ids); err != nil {
		return err
	}
	letters, err := c.Open(ctx, t, !c.dry)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, letters.Close()) }()
	items, unread, err := c.chosen(ctx, t, letters, true)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return errors.Join(c.report(t, changed{}, "No dead letters: nothing to do.\n"), letters.Unreadable(unread))
	}
	if c.dry {
		return errors.Join(c.report(t, changed{Letters: len(items)}, lettersText(items)), letters.Unreadable(unread))
	}
	if !c.yes {
		fmt.Fprint(t.Err, lettersText(items[:min(len(items), 20)]), andMore(len(items)-20))
		if letters.Unmarked {
			warning += " A stream stores no states: dead letters that were handled before are handled again now, and all are handled again the next time."
		}
		if err := cli.Confirm(ctx, t, fmt.Sprintf("This will %s %s.%s", c.verb, cli.Count(len(items), "dead letter"), warning), c.verb); err != nil {
			return err
		}
	}
	o, err := do(letters.Box, items)
	return errors.Join(c.tell(t, len(items), o), err, letters.Unreadable(unread))
}

// tell prints the result for n dead letters.
func (c *letterChange) tell(t cli.Terminal, n int, o deadletter.Outcome) error {
	text := fmt.Sprintf("%s of %s %s.\n", strconv.Itoa(o.Done), cli.Count(n, "dead letter"), c.done)
	if o.Failed > 0 {
		text += fmt.Sprintf("%s failed and stay: run it again for them.\n", strconv.Itoa(o.Failed))
	}
	if o.Taken > 0 {
		text += fmt.Sprintf("%s skipped because of changes by another process.\n", cli.Count(o.Taken, "dead letter"))
	}
	return c.report(t, changed{n, o.Done, o.Failed, o.Taken}, text)
}

func andMore(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("… and %s more\n", strconv.Itoa(n))
}

func (c *letterChange) report(t cli.Terminal, r changed, text string) error {
	if c.out == cli.FormatJSON {
		return json.NewEncoder(t.Out).Encode(r)
	}
	_, err := fmt.Fprint(t.Out, text)
	return err
}

func dropCommand(t cli.Terminal) *cobra.Command {
	c := letterChange{verb: "drop", done: "dropped"}
	cmd := &cobra.Command{
		Use:   "drop --dead PLACE (ID ... | FILTER | --all)",
		Short: "Drop dead letters that are no longer needed",
		Long: `Marks dead letters as dropped: no command handles them again, and "weir dead
list" shows them only with --state dropped. They stay where they are, with their
payload.

The command lists the chosen dead letters and asks for confirmation. If they
belong to several applications, --app has to choose one.`,
		Example: `  weir dead drop --dead file:dead.ndjson --error "unknown currency" --dry-run
  weir dead drop --dead file:dead.ndjson --all --yes`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			ctx := cmd.Context()
			if strings.HasPrefix(c.Dead, string(deadletters.Stream)+":") {
				return cli.Usagef("dead letters in a stream cannot be dropped: the stream deletes them at the end of its retention")
			}
			return c.change(ctx, cmd, t, ids, "", func(box deadletter.Box, items []deadletter.Item) (deadletter.Outcome, error) {
				var all []string
				for _, i := range items {
					all = append(all, i.ID)
				}
				o := deadletter.Outcome{}
				for some := range slices.Chunk(all, 500) { // after an error, the result is unknown for at most this many
					err := box.Mark(ctx, deadletter.Dropped, some...)
					taken := changedLetters(err)
					if err != nil && taken == 0 {
						return o, err
					}
					o.Done += len(some) - taken
					o.Taken += taken
				}
				return o, nil
			})
		},
	}
	c.register(cmd)
	return cmd
}

// changedLetters returns the number of dead letters that another process has changed. It returns 0
// if err contains any other error.
func changedLetters(err error) (n int) {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range several.Unwrap() {
			if !errors.Is(err, deadletter.ErrChanged) {
				return 0
			}
			n++
		}
		return n
	}
	if errors.Is(err, deadletter.ErrChanged) {
		return 1
	}
	return 0
}

// retry contains the options of weir dead retry.
type retry struct {
	letterChange
	exec        string
	toStream    string
	records     cli.Format
	credentials bool
	results     shellexec.ResultsFlag
	decode      codecs.Decode
}

func retryCommand(t cli.Terminal) *cobra.Command {
	r := retry{letterChange: letterChange{verb: "retry", done: "handled"}}
	cmd := &cobra.Command{
		Use:   "retry --dead PLACE --exec COMMAND (ID ... | --all)",
		Short: "Handle dead letters again",
		Long: `Passes dead letters to a command, one after the other, oldest first. The command
gets the record on its standard input, as with "weir consume --exec", and
WEIR_STREAM, WEIR_SHARD, WEIR_EPOCH and WEIR_LETTER (the ID of the dead letter)
in its environment. For a record of a Kinesis queue these are WEIR_QUEUE (the ARN),
WEIR_RECORD (the record ID, with "+2" for record 2 of an aggregate) and
WEIR_LETTER. If the command exits with 0, the dead letter is done. Otherwise the
dead letter stays, and the next one follows. With --exec-results the command
reports the outcome on its descriptor 3, as with "weir consume --exec-results".
A dead letter has the payload as it was in the stream. With --decode the command
gets decoded data, as with "weir consume --decode".

Each dead letter is marked as begun before the command runs and as done
afterwards. If weir is interrupted in between, the outcome is unknown: the dead
letter stays begun and is handled again only with --state begun. If several
processes retry dead letters at once, each dead letter goes to one of them.

A stream (--dead kinesis:STREAM) has no such marks: a dead letter that is
retried twice is handled twice. From a queue (--dead sqs:URL) each dead letter
is received, handled and deleted. One that fails, or that no filter chooses, is
given back at the end. Until then no other process receives it. If weir is
killed, it becomes visible again after two minutes. --since and --until choose
dead letters by the time at which they were written.

--to-stream puts the records into a stream instead, by their keys. Every
application that reads the stream gets them again, behind all records that have
arrived since, so the order of their keys is lost.

The command lists the chosen dead letters and asks for confirmation. If they
belong to several applications, --app has to choose one. A queue cannot be
listed in advance: without --app, weir handles the dead letters of the
application that it receives first, gives all others back, names their
applications, and exits with 1.`,
		Example: `  weir dead retry --dead file:dead.ndjson --all --exec ./handle --dry-run
  weir dead retry --dead file:dead.ndjson --error timeout --exec ./handle
  weir dead retry --dead file:dead.ndjson --stream flights --to-stream flights-again`,
		RunE: func(cmd *cobra.Command, ids []string) error { return r.run(cmd, t, ids) },
	}
	r.register(cmd)
	cmd.Flags().StringVar(&r.exec, "exec", "", "shell `COMMAND` that handles each dead letter")
	shellexec.RegisterCredentials(cmd, &r.credentials)
	r.results.Register(cmd)
	r.decode.Register(cmd)
	cmd.Flags().StringVar(&r.toStream, "to-stream", "", "put the records into this stream, by `NAME`")
	r.records = cli.FormatText
	cmd.Flags().Var(&r.records, "input", "input of the command: text is the data, json an object about the record")
	cli.MustComplete(cmd, "input", "text\tthe data", "json\tan object about the record")
	return cmd
}

// run passes the selected dead letters to the command or puts them into the stream.
func (r *retry) run(cmd *cobra.Command, t cli.Terminal, ids []string) error {
	ctx, warning := cmd.Context(), ""
	switch {
	case (r.exec == "") == (r.toStream == ""):
		return cli.Usagef("%s hands dead letters to a command or to a stream: give --exec or --to-stream", cmd.CommandPath())
	case r.toStream != "" && r.decode.On():
		return cli.Usagef("--decode applies only to --exec: consumers of the stream %.140s expect the payloads as they were", r.toStream)
	case r.toStream != "":
		if err := awsconf.CheckStreams(r.toStream); err != nil {
			return err
		}
		warning = fmt.Sprintf(" Every application that reads %s gets them again, behind what has arrived meanwhile.", r.toStream)
	}
	if err := r.results.Apply(cmd, r.exec, "input", &r.records); err != nil {
		return err
	}
	handler := func() (letterHandler, error) { return r.handler(ctx, t) }
	if strings.HasPrefix(r.Dead, string(deadletters.Queue)+":") {
		return r.fromQueue(ctx, cmd, t, ids, warning, handler)
	}
	return r.change(ctx, cmd, t, ids, warning, func(box deadletter.Box, items []deadletter.Item) (deadletter.Outcome, error) {
		handle, err := handler()
		if err != nil {
			return deadletter.Outcome{}, err
		}
		shown := cli.NewBar(t, "handling dead letters", len(items))
		defer shown.Done()
		o, err := deadletter.Retry(ctx, box, items, func(ctx context.Context, i deadletter.Item) error {
			defer shown.Advance(1)
			if err := handle.told(ctx, t, i); err != nil {
				return errTold
			}
			return nil
		})
		if errors.Is(errors.Unwrap(err), errTold) { // there is no other error
			err = fmt.Errorf("%s failed", cli.Count(o.Failed, "dead letter"))
		}
		return o, err
	})
}

// handler returns the function that handles a dead letter again.
func (r *retry) handler(ctx context.Context, t cli.Terminal) (letterHandler, error) {
	if r.toStream != "" {
		return intoStream(ctx, t, &r.AWS, r.toStream)
	}
	to := shellexec.Handler{Terminal: t, Command: r.exec, Format: r.records, Credentials: r.credentials}
	return func(ctx context.Context, i deadletter.Item) error {
		var err error
		if i.Data, err = r.decode.Data(ctx, i.Data); err != nil {
			return fmt.Errorf("--decode %s: %w", &r.decode, err)
		}
		if r.results.On {
			return shellexec.PerRecord{Handler: to}.Letter(ctx, &i)
		}
		return to.Letter(ctx, &i)
	}, nil
}

// letterHandler handles a dead letter again.
type letterHandler func(context.Context, deadletter.Item) error

// errTold replaces the error of a dead letter whose error was printed already.
var errTold = errors.New("it failed")

// told handles one dead letter. If the handler fails before ctx ends, told prints the error.
func (h letterHandler) told(ctx context.Context, t cli.Terminal, i deadletter.Item) error {
	err := h(ctx, i)
	if err != nil && ctx.Err() == nil {
		t.Note("dead letter %s: %s", i.ID, explain.Error(err))
	}
	return err
}

// intoStream returns a handler that puts dead letters into a stream.
func intoStream(ctx context.Context, t cli.Terminal, flags *awsconf.Flags, name string) (letterHandler, error) {
	client, err := flags.Kinesis(ctx, t)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, i deadletter.Item) error {
		_, err := client.PutRecord(ctx, &kinesis.PutRecordInput{
			StreamName: aws.String(name), PartitionKey: aws.String(keyFor(&i)), Data: i.Data,
		})
		return err
	}, nil
}

// keyFor returns the partition key for a dead letter. Records of queues may have no key.
func keyFor(i *deadletter.Item) string {
	r, _ := i.Queue()
	return cmp.Or(i.PartitionKey, r.ID, i.ID)
}
