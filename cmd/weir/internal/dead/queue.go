package dead

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/deadletters"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/deadletter/sqsletters"
)

// openQueue opens the dead letters in a queue and queries the attributes of the queue.
func (l *Flags) openQueue(ctx context.Context, t cli.Terminal) (letters deadletters.Letters, about sqsletters.About, err error) {
	place, err := deadletters.Parse(l.Dead)
	if err == nil && place.Kind != deadletters.Queue {
		err = cli.Usagef("%s is not a queue: \"weir dead list\" shows its dead letters, and takes none out", place)
	}
	if err != nil {
		return letters, about, err
	}
	if letters, err = place.Open(ctx, t, &l.AWS, false); err != nil {
		return letters, about, err
	}
	err = letters.Check(ctx, false, func(ctx context.Context) (err error) {
		about, err = letters.Queue.About(ctx)
		return err
	})
	return letters, about, err
}

func peekCommand(t cli.Terminal) *cobra.Command {
	var l Flags
	var out cli.Format
	most := 10
	cmd := &cobra.Command{
		Use:   "peek --dead sqs:URL",
		Short: "Show some dead letters of a queue without removing them",
		Long: `Shows some dead letters of a queue, in the order in which the queue returns
them: one per line, as in "weir dead list", and how often each was received.
They are given back at once, but each look counts as a receive. A queue with a
redrive policy moves a message that was received too often to its own
dead-letter queue. The command warns of such a policy first. No other process
receives the dead letters while they are shown.`,
		Example: `  weir dead peek --dead sqs:https://sqs.eu-west-1.amazonaws.com/111122223333/orders-dead
  weir dead peek --dead sqs:https://sqs.eu-west-1.amazonaws.com/111122223333/orders-dead --most 100 -o json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.Require(cmd, "dead"); err != nil {
				return err
			}
			letters, about, err := l.openQueue(cmd.Context(), t)
			if err != nil {
				return err
			}
			if about.MaxReceives > 0 {
				t.Note("this counts as a receive of each dead letter; the queue moves it to its own dead-letter queue after %s", cli.Count(about.MaxReceives, "receive"))
			}
			received, err := letters.Queue.Peek(cmd.Context(), most)
			if out == cli.FormatJSON {
				to := json.NewEncoder(t.Out)
				for i := range received {
					err = errors.Join(err, to.Encode(&received[i].Item))
				}
				return err
			}
			_, wrong := fmt.Fprint(t.Out, receivedText(received))
			return errors.Join(wrong, err)
		},
	}
	l.registerPlace(cmd)
	cmd.Flags().Var(&cli.Number[int]{To: &most, Parse: strconv.Atoi, Low: 1, High: 1000, Want: "1 to 1000"}, "most", "the maximum number of dead letters, 1 to 1000")
	out.Register(cmd, "output format; json is a dead letter a line, with its payload")
	return cmd
}

// receivedText formats dead letters as a table. The table omits data that may be personal.
func receivedText(all []sqsletters.Received) string {
	if len(all) == 0 {
		return "No dead letters, except those that other processes have received just now.\n"
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DEAD-LETTERED\tRECEIVED\tREASON\tATTEMPTS\tBYTES\tERROR\tID")
	for _, r := range all {
		_ = cli.Textf(w, "%s\t%d\t%s\t%d\t%d\t%s\t%s\n", r.GivenUp.UTC().Format(time.RFC3339), r.Receives, r.Reason, r.Attempts, len(r.Data), shortened(r.Error), r.ID)
	}
	_ = w.Flush() // cannot fail: it writes to memory
	return b.String()
}

// fromQueue handles dead letters of a queue again. It cannot show them first, because a queue
// cannot list its letters.
func (c *letterChange) fromQueue(ctx context.Context, cmd *cobra.Command, t cli.Terminal, ids []string, warning string, handler func() (letterHandler, error)) error {
	if err := c.check(cmd, t, ids); err != nil {
		return err
	}
	switch {
	case c.dry:
		return cli.Usagef("--dry-run does not apply to a queue, whose dead letters cannot be listed: \"weir dead peek\" shows some")
	case len(c.states) > 0:
		return cli.Usagef("--state does not apply to a queue, which has no states: no dead letter in it was handled")
	}
	letters, about, err := c.openQueue(ctx, t)
	if err != nil {
		return err
	}
	if !c.yes {
		which := "all"
		if !c.all {
			which = "those that were chosen"
		}
		text := fmt.Sprintf("The queue has about %s. This will retry %s, and delete what was handled.%s", cli.Count(about.Messages, "message"), which, warning)
		if about.MaxReceives > 0 {
			text += fmt.Sprintf(" This counts as a receive of each; the queue moves a dead letter to its own dead-letter queue after %s.", cli.Count(about.MaxReceives, "receive"))
		}
		if err := cli.Confirm(ctx, t, text, c.verb); err != nil {
			return err
		}
	}
	handle, err := handler()
	if err != nil {
		return err
	}
	tried, of, apps := 0, c.filter, map[string]bool{}
	wants := func(i deadletter.Item) bool {
		if c.filter.App == "" {
			if len(apps) == 0 {
				of.App = i.App
			}
			apps[i.App] = true
			if i.App != of.App { // also if both names are empty
				return false
			}
		}
		return of.Matches(&i)
	}
	o, err := letters.Queue.Retry(ctx, wants, func(ctx context.Context, i deadletter.Item) error {
		tried++
		return handle.told(ctx, t, i)
	})
	if len(apps) > 1 {
		err = errors.Join(err, severalApps(letters.Place, apps))
	}
	return errors.Join(c.tell(t, tried, o), err)
}
