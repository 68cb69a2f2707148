package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/fanout"
	"github.com/weir-go/weir/cmd/weir/internal/shardlag"
	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/lease"
)

// WorkerName is the hidden command that runs a worker process of the demo.
const WorkerName = "demo-worker"

func Command(t cli.Terminal) *cobra.Command {
	f := flags{o: Options{Workers: 3}}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch workers share a stream, survive failures and lose nothing",
		Long: `Starts a Kinesis inside this program, puts 20,000 real flights into it (the key
is the airport of origin), and lets three worker processes read them together,
with leases in a SQLite file. While the flights arrive, one shard is split, two
are merged, a worker joins, one worker is killed with SIGKILL, and one stops in
order. The address of a page is printed: it shows all of this in a browser while
the demo runs (see "weir dashboard").

The demo ends by itself within about a minute, with a verdict computed from what
the workers' handlers wrote: how many flights were lost (none), how many were
handled twice (those that the killed worker had not checkpointed yet), and
whether the order within each airport was kept. Everything happens on this
machine, in a temporary directory that is removed at the end.

The exit code is 0 only if nothing was lost and no order was broken.`,
		Example: `  weir demo                  watch it
  weir demo --plain          read it, line by line
  weir demo -o json          only the verdict, as one JSON object on standard output
  weir demo --fan-out register  the same, read by enhanced fan-out
  weir demo --kill other     kill a worker that does not lead`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), t) },
	}
	f.out.Register(cmd, "format of the verdict; json prints nothing else on standard output")
	set := cmd.Flags()
	set.BoolVar(&f.plain, "plain", false,
		"print lines instead of a live picture (the default without a terminal of 80 by 24)")
	set.StringVar(&f.victim, "kill", "leader",
		"which worker to kill: leader (the hardest to lose) or other")
	set.IntVar(&f.o.Flights, "flights", 20000, "how many flights to put, 1000 to 20000")
	set.IntVar(&f.o.Shards, "shards", 6, "shards of the stream at the start, 3 to 16")
	set.DurationVar(&f.o.Duration, "duration", 40*time.Second,
		"how long the flights take, 10s to 10m")
	(*fanout.Mode)(&f.o.FanOut).Register(cmd, "push the flights to the workers by fan-out: `MODE` is "+
		"register or temporary (default off, which is polling)")
	set.BoolVar(&f.o.Keep, "keep", false, "keep the temporary directory: journals, logs, leases")
	cli.MustComplete(cmd, "kill", "leader", "other")
	return cmd
}

// flags contains the options of the command.
type flags struct {
	o      Options
	out    cli.Format
	plain  bool
	victim string // the worker to kill
}

// run runs the demo and prints its verdict. It returns an error if records were lost or out of
// order.
func (f flags) run(ctx context.Context, t cli.Terminal) error {
	if err := checkDemo(f.o, f.victim); err != nil {
		return err
	}
	o := f.o
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("this program could not find its own file, so it cannot start workers: %w",
			err)
	}
	o.Leader = f.victim == "leader"
	o.Command = []string{self, WorkerName}
	o.Page = func(store lease.Store, client *kinesis.Client) http.Handler {
		asker := shardlag.Asker(client)
		return dashboard.Handler(store, dashboard.Options{Kinesis: client, Lags: asker})
	}
	var result Result
	switch {
	case f.out == cli.FormatJSON:
		o.Show = &Plain{Out: t.Err}
		result, err = Run(ctx, o)
	case f.plain || !fitsPicture(t):
		o.Show = &Plain{Out: t.Out}
		result, err = Run(ctx, o)
	default:
		result, err = RunLive(ctx, o, t.In, t.Out, t.Interrupt)
	}
	if err != nil {
		if o.Keep && result.Dir != "" {
			t.Note("the files are in %s", result.Dir)
		}
		return err
	}
	write := result.WriteText
	if f.out == cli.FormatJSON {
		write = result.WriteJSON
	}
	if err := write(t.Out); err != nil {
		return err
	}
	if !result.Clean() {
		return fmt.Errorf("the verdict is bad: %d lost, %d out of order",
			result.Lost, result.OrderViolations)
	}
	return nil
}

// fitsPicture reports whether the terminal can show the live picture: it must be large enough and
// support screen control.
func fitsPicture(t cli.Terminal) bool {
	out, isFile := t.Out.(*os.File)
	if !isFile || !cli.IsTerminal(t.Out) || !cli.IsTerminal(t.In) || os.Getenv("TERM") == "dumb" {
		return false
	}
	width, height, err := term.GetSize(int(out.Fd()))
	return err == nil && width >= LeastWidth && height >= LeastHeight
}

func checkDemo(o Options, victim string) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if victim != "leader" && victim != "other" {
		bad("--kill %q: want leader or other", victim)
	}
	if o.FanOut == weir.FanOutExisting {
		bad("--fan-out existing: the stream of the demo has no consumer, so use register or temporary")
	}
	if o.Flights < 1000 || o.Flights > 20000 {
		bad("--flights %d: want 1000 to 20000", o.Flights)
	}
	if o.Shards < 3 || o.Shards > 16 {
		bad("--shards %d: want 3 to 16", o.Shards)
	}
	if o.Duration < 10*time.Second || o.Duration > 10*time.Minute {
		bad("--duration %v: want 10s to 10m", o.Duration)
	}
	if len(errs) > 0 {
		return cli.Usage(errors.Join(errs...))
	}
	return nil
}

func WorkerCommand(t cli.Terminal) *cobra.Command {
	return &cobra.Command{
		Use:    WorkerName + " JSON",
		Short:  "One worker process of the demo",
		Long:   "The demo starts its workers with this command. It is of no use by itself.",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var w Worker
			if err := json.Unmarshal([]byte(args[0]), &w); err != nil {
				return cli.Usagef("%s is started by the demo only: %v", WorkerName, err)
			}
			return w.Run(cmd.Context(), t.In, t.Err)
		},
	}
}
