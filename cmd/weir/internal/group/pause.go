package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/lease"
)

type pauseOptions struct {
	target.Flags
	out    cli.Format
	stream string
	wait   time.Duration
}

// pauseCommand returns the command pause if on is true, and otherwise the command resume.
func pauseCommand(t cli.Terminal, on bool) *cobra.Command {
	var o pauseOptions
	cmd := &cobra.Command{
		Use:   "pause --app NAME --store URL [--stream NAME]",
		Short: "Stop reading while workers keep running",
		Long: `Pauses an application, or one of its streams: the workers finish the running
batches, save, give the leases back, and stay running without reading. The pause
lasts until "weir group resume", even if workers are restarted. Nothing is lost
if the application is resumed before the records of the stream expire.

With --wait the command ends when no worker holds a lease, and fails if that
takes longer.`,
		Example: `  weir group pause --app billing --store sqlite:billing.db
  weir group pause --app billing --store dynamodb:weir --stream clicks --wait 1m`,
		Args: cli.NoArgs,
	}
	if !on {
		cmd.Use = "resume --app NAME --store URL [--stream NAME]"
		cmd.Short = "End a pause"
		cmd.Long = `Ends the pause of an application, or of one of its streams: the leader assigns
the leases within one heartbeat interval, and the workers continue at the
checkpoints. The pause of an application and the pauses of its streams are
independent.

With --wait the command ends when every readable lease has an owner, and fails
if that takes longer.`
		cmd.Example = `  weir group resume --app billing --store sqlite:billing.db
  weir group resume --app billing --store dynamodb:weir --stream clicks --wait 1m`
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		url, err := o.URL(cmd, "app")
		if err != nil {
			return err
		}
		if err := checkWait(o.wait); err != nil {
			return err
		}
		return o.run(cmd.Context(), t, url, on)
	}
	o.Register(cmd)
	cmd.Flags().StringVar(&o.stream, "stream", "", "only the stream `NAME` (default: the whole application)")
	registerWait(cmd, &o.wait)
	o.out.Register(cmd, "output format")
	return cmd
}

// pauseReport is the output of pause and resume.
type pauseReport struct {
	App     string   `json:"app"`
	Paused  []string `json:"paused"` // paused streams after the change; "" means all streams
	Changed bool     `json:"changed"`
	Held    int      `json:"held"` // leases of the paused or resumed streams that workers hold
}

func (o *pauseOptions) run(ctx context.Context, t cli.Terminal, url stores.URL, on bool) error {
	store, view, err := o.Open(ctx, t, url)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // the writes are complete, so an error does not matter
	if on || !slices.Contains(view.Paused, o.stream) {
		if _, err := target.LeasesOf(o.App, view.Leases, o.stream); err != nil {
			return err // do not store a pause for a mistyped name
		}
	}
	changed, err := operate.SetPause(ctx, store, o.App, view, o.stream, on, cli.Operator())
	if errors.Is(err, operate.ErrPausedEnough) {
		return fmt.Errorf("%s of %s are paused already, which is as many as can be: pause the whole application instead", cli.Count(len(view.Paused), "stream"), o.App)
	}
	if err != nil {
		return store.Explain(err)
	}
	if view, err = store.ReadApp(ctx, o.App); err != nil {
		return err
	}
	what := "application " + o.App
	if o.stream != "" {
		what = fmt.Sprintf("stream %s of %s", o.stream, o.App)
	}
	if o.wait > 0 {
		what := "still held"
		left := func(v lease.View) int { return heldOf(v, o.stream) }
		if !on {
			what = "held by nobody"
			left = func(v lease.View) int { return unread(v, o.stream) }
		}
		if view, err = await(ctx, t, store, o.App, o.wait, what, left); err != nil {
			return err
		}
	}
	report := pauseReport{o.App, view.Paused, changed, heldOf(view, o.stream)}
	if report.Paused == nil {
		report.Paused = []string{}
	}
	if o.out == cli.FormatJSON {
		return json.NewEncoder(t.Out).Encode(report)
	}
	return cli.Textf(t.Out, "%s\n", report.text(what, on))
}

func (r pauseReport) text(what string, on bool) string {
	held := cli.Count(r.Held, "lease") + cli.Plural(r.Held, " is", " are")
	switch {
	case on && r.Changed:
		return fmt.Sprintf("%s is paused; %s still held", what, held)
	case on:
		return fmt.Sprintf("%s was paused already; %s still held", what, held)
	case len(r.Paused) > 0 && !r.Changed:
		return fmt.Sprintf("%s was not paused; %s", what, r.still())
	case !r.Changed:
		return fmt.Sprintf("%s was not paused", what)
	case len(r.Paused) > 0:
		return fmt.Sprintf("%s is not paused any more; %s", what, r.still())
	}
	return fmt.Sprintf("%s is not paused any more; %s held", what, held)
}

// still returns a sentence about the streams that remain paused after a resume.
func (r pauseReport) still() string {
	if slices.Contains(r.Paused, "") {
		return `the whole application is paused: "weir group resume" without --stream ends that`
	}
	return "still paused: " + cli.List(r.Paused)
}

// overIn returns a function that reports whether a session is over. Such a session holds nothing,
// even if leases name it. Sessions that have ended, that have no row, or that are empty are over.
func overIn(v lease.View) func(session string) bool {
	runs := map[string]bool{}
	for _, w := range v.Workers {
		runs[w.Session] = !w.Ended && w.Session != ""
	}
	return func(session string) bool { return !runs[session] }
}

// waitingIn maps each waiting lease to the leases that it waits for. A session that is over cannot
// acknowledge a revoked lease, so no lease waits for such a session.
func waitingIn(v lease.View) map[lease.Key][]lease.Key {
	over, leases := overIn(v), slices.Clone(v.Leases)
	for i := range leases {
		if over(leases[i].Revoked) {
			leases[i].Revoked = ""
		}
	}
	return lease.Waiting(leases, nil)
}

// heldOf returns the number of leases of a stream that workers hold. An empty name means all
// streams.
func heldOf(v lease.View, stream string) (n int) {
	over := overIn(v)
	for _, l := range v.Leases {
		if !over(l.Owner) && (stream == "" || l.Stream == stream) {
			n++
		}
	}
	return n
}

// unread returns the number of leases of a stream that could be read, but that no worker holds. An
// empty name means all streams.
func unread(v lease.View, stream string) (n int) {
	waiting, over := waitingIn(v), overIn(v)
	for _, l := range v.Leases {
		if over(l.Owner) && !l.Finished() && waiting[l.Key] == nil && !isPaused(v.Paused, l.Stream) && (stream == "" || l.Stream == stream) {
			n++
		}
	}
	return n
}

// await reads the application repeatedly until left returns 0. left returns the number of leases
// that are still in the state what. await returns an error if this takes longer than length.
func await(ctx context.Context, t cli.Terminal, store stores.Store, app string, length time.Duration, what string, left func(lease.View) int) (lease.View, error) {
	first, err := store.ReadApp(ctx, app)
	if err != nil {
		return first, err
	}
	last, n := first, left(first)
	if n == 0 {
		return last, nil
	}
	t.Note("%s; waiting for up to %s", these(n, what), figures.Duration(length))
	err = target.Watch(ctx, store, app, first, length, func(now lease.View) bool {
		last, n = now, left(now)
		return n > 0
	})
	switch {
	case errors.Is(err, explain.ErrInterrupted), errors.Is(err, context.Canceled):
		return last, explain.PlainError{Text: fmt.Sprintf("stopped before it was done: %s; the request remains in effect", these(n, what)), Cause: err}
	case err != nil:
		return last, store.Explain(err)
	case n > 0:
		return last, fmt.Errorf("%s after %s: the request remains in effect; \"weir group describe\" shows the progress", these(n, what), figures.Duration(length))
	}
	return last, nil
}

func these(leases int, what string) string {
	return cli.Count(leases, "lease") + cli.Plural(leases, " is ", " are ") + what
}

func registerWait(cmd *cobra.Command, wait *time.Duration) {
	cmd.Flags().DurationVar(wait, "wait", 0, "wait for this to happen, at most this long")
	cli.MustComplete(cmd, "wait", "30s", "1m", "5m")
}

func checkWait(d time.Duration) error {
	if d < 0 || d > 24*time.Hour {
		return cli.Usagef("--wait %v: want 0 to 24h", d)
	}
	return nil
}
