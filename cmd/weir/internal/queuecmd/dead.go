package queuecmd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/dead"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/cmd/weir/internal/queues"
	"github.com/weir-go/weir/queue"
)

func deadCommand(t cli.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "dead",
		SuggestFor: []string{"deadletter", "deadletters", "dead-letters", "letters", "dlq"},
		Short:      "List, restore and remove the dead letters of a queue",
		Long: `Lists, restores and removes the dead letters that a queue keeps itself. Those that
consumers have stored elsewhere (--dead) are the subject of "weir dead".

A queue keeps no reason and no error for a dead letter. A dead letter is lost
when its record leaves the stream. "weir queue copy-dead" saves dead letters.

To look at a dead letter, a command receives it, and makes it visible again at
the end. No other process can receive it meanwhile. If the command is killed, the
dead letter stays hidden for up to 2 min.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(deadListCommand(t), deadShowCommand(t), deadRetryCommand(t), deadDropCommand(t))
	return cmd
}

// letter is a dead letter of a queue in the output for programs.
type letter struct {
	RecordID      string    `json:"record_id"`
	Key           string    `json:"key"`
	Arrived       time.Time `json:"arrived"`
	FirstReceived time.Time `json:"first_received"`
	Receives      int       `json:"receives"`
	Bytes         int       `json:"bytes"`
	Data          *string   `json:"data,omitempty"` // as in "weir tail -o json"
	Base64        []byte    `json:"data_base64,omitempty"`
}

func letterOf(d *queue.Delivery, payload bool) letter {
	l := letter{RecordID: d.RecordID, Key: d.PartitionKey, Arrived: d.Arrived.UTC(), FirstReceived: d.FirstReceived.UTC(), Receives: d.ReceiveCount, Bytes: len(d.Data)}
	switch {
	case !payload:
	case utf8.Valid(d.Data):
		text := string(d.Data)
		l.Data = &text
	default:
		l.Base64 = d.Data
	}
	return l
}

func registerMost(cmd *cobra.Command, most *int, what string) {
	cmd.Flags().Var(&cli.Number[int]{To: most, Parse: strconv.Atoi, Low: 1, High: 100_000, Want: "1 to 100000"}, "most", "the maximum number of dead letters to "+what+", 1 to 100000")
}

func deadListCommand(t cli.Terminal) *cobra.Command {
	var f queues.Flags
	var out cli.Format
	most := 100
	cmd := &cobra.Command{
		Use:   "list --queue NAME",
		Short: "List the dead letters of a queue",
		Long: `Lists dead letters of a queue: the record's ID, its age, when it was first received,
how often it was received, and its size. Keys and payloads can contain personal
data, so they are shown only by "weir queue dead show" and -o json.`,
		Example: `  weir queue dead list --queue billing
  weir queue dead list --queue billing --most 1000 -o json | jq -r .record_id`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withLook(cmd, t, &f, func(ctx context.Context, q *queues.Queue, l *queues.Look) error {
				all, err := l.All(ctx, most)
				if err != nil {
					return err
				}
				if out == cli.FormatJSON {
					to := json.NewEncoder(t.Out)
					for i := range all {
						if err := to.Encode(letterOf(&all[i], true)); err != nil {
							return err
						}
					}
					return nil
				}
				_, err = io.WriteString(t.Out, lettersText(q.Name, all, most, t.Columns(), time.Now()))
				return err
			})
		},
	}
	f.Register(cmd)
	registerMost(cmd, &most, "list")
	out.Register(cmd, "output format; json is a dead letter a line, with its payload")
	return cmd
}

// withLook opens the queue of the flags and calls do with a look at its dead letters.
func withLook(cmd *cobra.Command, t cli.Terminal, f *queues.Flags, do func(context.Context, *queues.Queue, *queues.Look) error) error {
	if err := f.Check(cmd); err != nil {
		return err
	}
	q, err := f.Open(cmd.Context(), t)
	if err != nil {
		return err
	}
	return queues.With(cmd.Context(), q.Client, q.ARN, func(l *queues.Look) error { return do(cmd.Context(), q, l) })
}

func lettersText(name string, all []queue.Delivery, most, columns int, now time.Time) string {
	if len(all) == 0 {
		return fmt.Sprintf("Queue %s has no visible dead letters.\n", cli.Visible(name))
	}
	table := cli.Table{
		Columns: []cli.Column{{Head: "RECORD"}, {Head: "AGE"}, {Head: "FIRST RECEIVED"}, {Head: "RECEIVES"}, {Head: "SIZE"}},
	}
	for _, d := range all {
		table.Add(d.RecordID, age(now, d.Arrived), age(now, d.FirstReceived)+" ago", strconv.Itoa(d.ReceiveCount), figures.Bytes(int64(len(d.Data))))
	}
	text := table.Text(columns)
	if len(all) == most {
		text += fmt.Sprintf("There can be more than %s: --most shows more.\n", cli.Count(most, "dead letter"))
	}
	return text
}

func age(now, then time.Time) string {
	return figures.Duration(max(now.Sub(then), 0).Round(time.Second))
}

func deadShowCommand(t cli.Terminal) *cobra.Command {
	var f queues.Flags
	var out cli.Format
	payload := false
	cmd := &cobra.Command{
		Use:   "show --queue NAME RECORD",
		Short: "Show one dead letter of a queue completely",
		Long: `Shows a dead letter with the key and the payload of its record. A payload of JSON
is indented, text is unchanged, and everything else is shown in hexadecimal
digits. With --data it writes only the payload, unchanged. RECORD is an ID that
"weir queue dead list" shows. A queue cannot look a record up, so the command
receives dead letters until it finds the record.`,
		Example: `  weir queue dead show --queue billing 3f1c9a40d2b84c55a0f6d1c2b3e4f506
  weir queue dead show --queue billing --data 3f1c9a40d2b84c55a0f6d1c2b3e4f506 > record`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			if len(ids) != 1 {
				return cli.Usagef("%s shows one dead letter: give the ID of its record", cmd.CommandPath())
			}
			return withLook(cmd, t, &f, func(ctx context.Context, _ *queues.Queue, l *queues.Look) error {
				found, err := l.Find(ctx, ids)
				if err != nil {
					return err
				}
				switch d := &found[0]; {
				case payload:
					_, err = t.Out.Write(d.Data)
				case out == cli.FormatJSON:
					err = json.NewEncoder(t.Out).Encode(letterOf(d, true))
				default:
					_, err = io.WriteString(t.Out, letterText(d))
				}
				return err
			})
		},
	}
	f.Register(cmd)
	cmd.Flags().BoolVar(&payload, "data", false, "write only the payload, unchanged")
	out.Register(cmd, "output format")
	return cmd
}

func letterText(d *queue.Delivery) string {
	var b bytes.Buffer
	line := func(label, text string) { _ = cli.Textf(&b, "%-15s %s\n", label, text) }
	line("record", d.RecordID)
	line("key", d.PartitionKey)
	line("arrived", d.Arrived.UTC().Format(time.RFC3339))
	line("first received", d.FirstReceived.UTC().Format(time.RFC3339))
	line("receives", strconv.Itoa(d.ReceiveCount))
	what, text := dead.PayloadText(d.Data)
	fmt.Fprintf(&b, "\npayload: %s, %s\n%s", figures.Bytes(int64(len(d.Data))), what, text)
	return b.String()
}

// chosen are the flags that select dead letters: all of them, or those of the arguments.
type chosen struct {
	all  bool
	most int
}

func (c *chosen) register(cmd *cobra.Command, what string) {
	c.most = 100_000
	cmd.Flags().BoolVar(&c.all, "all", false, "all visible dead letters of the queue")
	registerMost(cmd, &c.most, what+" with --all")
}

func (c *chosen) check(cmd *cobra.Command, ids []string) error {
	switch {
	case c.all && len(ids) > 0:
		return cli.Usagef("--all and IDs of records exclude each other: give one of them")
	case !c.all && len(ids) == 0:
		return cli.Usagef("%s needs --all, or the IDs of records; \"weir queue dead list\" shows them", cmd.CommandPath())
	case !c.all && cmd.Flags().Changed("most"):
		return cli.Usagef("--most applies only to --all: leave it out")
	}
	return nil
}

// each receives the chosen dead letters, ten at a time, and calls do with them. With --all, it ends
// when no further dead letter is visible. again is the number of records that do restored and that
// have become dead letters again. each does not call do with them twice. Otherwise it would not end
// while a consumer fails at them.
func (c *chosen) each(ctx context.Context, l *queues.Look, ids []string, do func([]queue.Delivery) error) (again int, err error) {
	if !c.all {
		found, err := l.Find(ctx, ids)
		if err != nil {
			return 0, err
		}
		return 0, do(found)
	}
	done := map[string]bool{}
	for len(done) < c.most {
		some, err := l.Next(ctx, c.most-len(done))
		if err != nil || len(some) == 0 {
			return again, err
		}
		fresh := some[:0]
		for _, d := range some {
			if done[d.RecordID] {
				again++
				continue
			}
			done[d.RecordID] = true
			fresh = append(fresh, d)
		}
		if err := do(fresh); err != nil {
			return again, err
		}
	}
	return again, nil
}

func deadRetryCommand(t cli.Terminal) *cobra.Command {
	var f queues.Flags
	var c chosen
	cmd := &cobra.Command{
		Use:   "retry --queue NAME (--all | RECORD ...)",
		Short: "Give dead letters to the consumers of the queue again",
		Long: `Makes dead letters ordinary records of the queue again, with no receives spent.
The consumers of the queue handle them. Remove the cause of the failures first.`,
		Example: `  weir queue dead retry --queue billing --all
  weir queue dead retry --queue billing 3f1c9a40d2b84c55a0f6d1c2b3e4f506`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			if err := c.check(cmd, ids); err != nil {
				return err
			}
			return withLook(cmd, t, &f, func(ctx context.Context, q *queues.Queue, l *queues.Look) error {
				n := 0
				again, err := c.each(ctx, l, ids, func(some []queue.Delivery) error {
					m, err := l.Settle(ctx, q.RestoreDeadLetters, some)
					n += m
					return err
				})
				if again > 0 {
					t.Note("%s failed again already: remove the cause first", cli.Count(again, "restored record"))
				}
				return said(t, err, n, "restored")
			})
		},
	}
	f.Register(cmd)
	c.register(cmd, "restore")
	return cmd
}

// said prints how many dead letters were changed, also before an error.
func said(t cli.Terminal, err error, n int, how string) error {
	if err != nil {
		if n > 0 {
			t.Note("%s %s before the error", cli.Count(n, "dead letter"), cli.Plural(n, "was ", "were ")+how)
		}
		return err
	}
	return cli.Textf(t.Out, "%s %s\n", cli.Count(n, "dead letter"), cli.Plural(n, "is ", "are ")+how)
}

func deadDropCommand(t cli.Terminal) *cobra.Command {
	var f queues.Flags
	var c chosen
	var yes bool
	cmd := &cobra.Command{
		Use:   "drop --queue NAME (--all | RECORD ...)",
		Short: "Remove dead letters from the queue for good",
		Long: `Removes dead letters from the queue. This cannot be undone, but the records stay
in the stream until its retention ends. "weir queue copy-dead" saves them first.`,
		Example: `  weir queue dead drop --queue billing 3f1c9a40d2b84c55a0f6d1c2b3e4f506
  weir queue dead drop --queue billing --all --yes     without being asked`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			if err := c.check(cmd, ids); err != nil {
				return err
			}
			if err := cli.CanConfirm(cmd, t, yes); err != nil {
				return err
			}
			return withLook(cmd, t, &f, func(ctx context.Context, q *queues.Queue, l *queues.Look) error {
				if !yes {
					what := "Remove all visible dead letters of queue " + q.Name + "?"
					if !c.all {
						what = "Remove " + cli.Count(len(ids), "dead letter") + " from queue " + q.Name + "?"
					}
					if err := cli.Confirm(ctx, t, what, q.Name); err != nil {
						return err
					}
				}
				n := 0
				_, err := c.each(ctx, l, ids, func(some []queue.Delivery) error {
					m, err := l.Settle(ctx, q.AcknowledgeDeadLetters, some)
					n += m
					return err
				})
				return said(t, err, n, "removed")
			})
		},
	}
	f.Register(cmd)
	c.register(cmd, "remove")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}
