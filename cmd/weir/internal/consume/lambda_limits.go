package consume

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/lambda"
)

// lambdaLimits bound what functions of Lambda get.
type lambdaLimits struct {
	age    int // seconds; -1 and 0 are no bound
	window int // seconds; 0 is without windows
	memory int // bytes; 0 is no bound
	output int // bytes a second of each process; 0 is no bound
}

var aboutLimits = []string{"maximum-record-age-in-seconds", "tumbling-window-in-seconds", "lambda-memory", "lambda-output"}

func (l *lambdaLimits) register(f *lambdaFlags) {
	flags := f.flag.Flags()
	flags.Var(&cli.Number[int]{To: &l.age, Parse: parseRecordAge, Low: -1, High: 604_800, Want: "60 to 604800, or -1 for no limit"}, "maximum-record-age-in-seconds",
		"give records that are older up without a try, 60 to 604800; -1 is no limit (default -1). --max-age gives up only what has failed")
	flags.Var(&cli.Number[int]{To: &l.window, Parse: strconv.Atoi, Low: 0, High: 900, Want: "0 to 900"}, "tumbling-window-in-seconds",
		"give the function the records in windows of the time at which they arrived, with a state from answer to answer, 1 to 900; 0 is without (default 0)")
	flags.Var(&cli.Number[int]{To: &l.memory, Parse: cli.ParseSize, Low: 16 << 20, High: 1 << 40, Want: "16MiB to 1024GiB"}, "lambda-memory",
		"memory limit, such as 512MiB, for a process of --lambda and its children; a process above it is killed and restarted; at least 16MiB, Linux only (default: no limit)")
	flags.Var(&cli.Number[int]{To: &l.output, Parse: parseOutputRate, Low: 0, High: 1 << 30, Want: "1KiB to 1GiB, or 0 for no bound"}, "lambda-output",
		"how many bytes per second of the output of each process of --lambda are passed on, with bursts of ten times as many; the rest is dropped; 0 is no limit (default 256KiB)")
}

// parseRecordAge reads a number of seconds that Lambda takes for an age.
func parseRecordAge(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err == nil && n >= 0 && n < 60 {
		err = fmt.Errorf("%d is too short", n)
	}
	return n, err
}

// apply checks the flags, which are about a function that is given.
func (l *lambdaLimits) apply(f *lambdaFlags, o *options) error {
	given := f.flag.Flags().Changed
	if !given("lambda-output") {
		l.output = outputRate
	}
	switch {
	case given("lambda-output") && f.invoke != "":
		return cli.Usagef("--lambda-output applies only to --lambda; --invoke starts no processes")
	case l.memory > 0 && f.invoke != "":
		return cli.Usagef("--lambda-memory applies only to --lambda; --invoke starts no processes")
	case l.memory > 0 && !measuresMemory:
		return cli.Usagef("--lambda-memory works only on Linux, where weir can measure the memory of processes: leave it out here")
	}
	if l.window > 0 {
		if err := l.checkWindow(f, o); err != nil {
			return err
		}
	}
	if l.age > 0 {
		const name = "maximum-record-age-in-seconds"
		switch {
		case f.flag.Flags().Changed("max-age"):
			return cli.Usagef("--%s dead-letters all older records, and --max-age only those that also failed: give one of them", name)
		case o.giveUp.dead == "":
			return cli.Usagef("--%s needs a destination for dead letters: add --dead file:PATH", name)
		}
		o.giveUp.rejects = true
	}
	return nil
}

// checkWindow refuses what windows cannot have.
func (l *lambdaLimits) checkWindow(f *lambdaFlags, o *options) error {
	given := f.flag.Flags().Changed
	for _, c := range []struct {
		name string
		on   bool
	}{
		{"maximum-record-age-in-seconds", l.age > 0},
		{"maximum-retry-attempts", given("maximum-retry-attempts") && f.retries >= 0},
		{"bisect-batch-on-function-error", f.bisect},
		{"attempts", given("attempts")},
		{"max-age", given("max-age")},
		{"bisect", o.settings.GiveUp.Bisect},
		{"dead", given("dead")},
	} {
		if c.on {
			return cli.Usagef("--%s cannot be combined with --tumbling-window-in-seconds: a window needs all of its records, so none is dead-lettered, and a failed call is repeated until it succeeds", c.name)
		}
	}
	switch {
	case f.factor > 1:
		return cli.Usagef("--parallelization-factor cannot be combined with --tumbling-window-in-seconds: the records of a window are handled one after the other")
	case o.settings.Parallel.Keys > 1:
		return cli.Usagef("--parallel cannot be combined with --tumbling-window-in-seconds: the records of a window are handled one after the other")
	case o.settings.Filter.NotJSON == weir.FailNotJSON:
		return cli.Usagef("--filter-not-json fail does not go with --tumbling-window-in-seconds: no record fails by itself there; use pass or drop")
	}
	return nil
}

// megabytes is the memory size that functions see.
func (l *lambdaLimits) megabytes() int {
	if l.memory == 0 {
		return 128
	}
	return l.memory >> 20
}

// maxAge is the age at which a function does not get records any more; 0 is no bound.
func (l *lambdaLimits) maxAge() time.Duration { return time.Duration(max(l.age, 0)) * time.Second }

// byFunction has a function handle what is read, in a way to invoke it.
func (o *options) byFunction(t cli.Terminal, invoke func(context.Context, *weir.Batch, []byte) ([]byte, error), region string) (destination, error) {
	limits := &o.lambda.limits
	h := lambda.Handler{
		Invoke: invoke, Source: o.source(region), Report: len(o.lambda.respond) > 0, MaxAge: limits.maxAge(),
		Retries: func(b *weir.Batch, err error, attempt int, pause time.Duration) {
			t.Say(slog.LevelWarn, "the function failed in a window of %s/%s (attempt %d, next in %v): %v", b.Stream, b.Shard, attempt, pause.Round(time.Millisecond), err)
		},
	}
	if limits.window == 0 {
		return handledBy(h), nil
	}
	shards, err := h.Windows(time.Duration(limits.window) * time.Second)
	to := handledBy(h)
	to.run = func(ctx context.Context, c *weir.Consumer) error { return c.RunShards(ctx, shards) }
	return to, err
}
