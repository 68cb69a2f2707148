package consume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/shellexec"
	"github.com/weir-go/weir/lambda"
)

const aboutLambda = `--lambda COMMAND handles the records with a function that was written for AWS
Lambda. weir starts up to --lambda-processes of the command, which must be a
runtime client of Lambda (such as python -m awslambdaric app.handler), and sends
them Lambda's events over Lambda's Runtime API on 127.0.0.1. Aggregates stay
packed, as in Lambda, unless --aggregates is given. Then the eventID of an
unpacked record ends in its number in the aggregate. If a call takes longer than
--lambda-timeout, it has failed, and weir restarts the process. Standard error
shows the output of each process after the number of the process. A process gets
the worker's environment without AWS credentials and ` + cli.StoreVariable + `.
--invoke URL sends the same events to an emulator of Lambda, unsigned, and
starts no process.

Lambda's own parameters are flags too, such as --batch-size. Unlike Lambda, weir
needs --dead for records that it must not retry any longer. With
--parallelization-factor, an event has the records of one key.
--maximum-record-age-in-seconds dead-letters older records without a call, and
at once, whatever --outage-grace and --dead-letters-per-minute are. With
--tumbling-window-in-seconds the function gets a state and must return one.`

// lambdaFlags contains the flags for running Lambda functions.
type lambdaFlags struct {
	command   string
	invoke    string // URL of the function
	processes int
	timeout   time.Duration
	respond   []string
	pass      []string
	age       int // seconds; -1 and 0 mean no limit
	window    int // length in seconds; 0 means no windows
	memory    int // limit in bytes; 0 means no limit
	output    int // limit in bytes per second and process; 0 means no limit

	// The values of flags that have the same names as settings of Lambda. They are in Lambda's
	// format.
	wait         int
	position, at string
	criteria     string
}

func (f *lambdaFlags) checkRespond() error {
	for _, kind := range f.respond {
		if kind != "ReportBatchItemFailures" {
			return cli.Usagef(
				"--function-response-types %.140q: there is only ReportBatchItemFailures", kind)
		}
	}
	return nil
}

func (f *lambdaFlags) checkPass() error {
	for _, name := range f.pass {
		if name == "" || strings.Contains(name, "=") {
			return cli.Usagef("--pass-env %.140q is not the name of a variable: "+
				"write it like --pass-env AWS_PROFILE", name)
		}
	}
	return nil
}

// complete sets the defaults of a worker that runs Lambda functions.
func (f *lambdaFlags) complete(o *weir.Options, given func(flag string) bool) {
	if !given("aggregates") {
		o.Aggregates = weir.KeepPacked
	}
	if !given("lambda-output") {
		f.output = outputRate
	}
	o.Batching.MaxRecords = cmp.Or(o.Batching.MaxRecords, 100)
	f.processes = cmp.Or(f.processes, runtime.GOMAXPROCS(0))
	f.timeout = cmp.Or(f.timeout, time.Minute)
}

// used reports whether a Lambda function handles the records.
func (f *lambdaFlags) used() bool { return f.command != "" || f.invoke != "" }

// functions is a pool of processes that run the same Lambda function. Each call takes one process
// from the pool and returns it afterwards.
type functions struct {
	t       cli.Terminal
	command string
	timeout time.Duration
	env     []string
	arn     string
	free    chan *function
	memory  *memoryBound // nil if there is no memory limit
	output  *outputs
}

// functions returns a pool of processes. A process starts when it is first needed.
func (o *options) functions(t cli.Terminal, region string) *functions {
	fs := &functions{
		t: t, command: o.lambda.command, timeout: o.lambda.timeout, free: make(chan *function, o.lambda.processes),
		arn: "arn:aws:lambda:" + region + ":000000000000:function:" + o.app,
	}
	dir, _ := os.Getwd()
	fs.env = append(shellexec.Environment(false),
		"AWS_LAMBDA_FUNCTION_NAME="+o.app, "AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE="+strconv.Itoa(cmp.Or(o.lambda.memory>>20, 128)),
		"AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/"+o.app, "AWS_LAMBDA_LOG_STREAM_NAME="+strconv.Itoa(os.Getpid()),
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand", "AWS_REGION="+region, "AWS_DEFAULT_REGION="+region)
	for name, value := range map[string]string{"LAMBDA_TASK_ROOT": dir, "_HANDLER": ""} {
		if _, set := os.LookupEnv(name); !set {
			fs.env = append(fs.env, name+"="+value)
		}
	}
	for _, name := range o.lambda.pass {
		if value, set := os.LookupEnv(name); set {
			fs.env = append(fs.env, name+"="+value)
		}
	}
	if most := o.lambda.memory; most > 0 {
		fs.memory = boundMemory(most, groupsMemory, func(err error) {
			t.Say(slog.LevelError, "--lambda-memory has no effect, because the memory of processes cannot be measured: %v", err)
		})
	}
	fs.output = passOutput(t.Err, o.lambda.processes, o.lambda.output, func(format string, args ...any) { t.Say(slog.LevelWarn, format, args...) })
	for i := range o.lambda.processes {
		fs.free <- &function{of: fs, number: i + 1, output: processOutput{of: fs.output, number: i + 1}}
	}
	return fs
}

// invoke passes an event to a free process. If no process is free, it waits for one.
func (fs *functions) invoke(ctx context.Context, event []byte) ([]byte, error) {
	select {
	case f := <-fs.free:
		defer func() { fs.free <- f }()
		return f.invoke(ctx, event)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// close ends all processes. It waits until their calls have returned.
func (fs *functions) close() error {
	for range cap(fs.free) {
		(<-fs.free).end(false)
	}
	fs.memory.close()
	fs.output.close()
	return nil
}

// function is one place in the pool. It contains at most one process.
type function struct {
	of     *functions
	number int
	output processOutput

	api    *lambda.Runtime // nil while there is no process
	kill   context.CancelFunc
	asked  *bool         // ask the process to end before killing it
	exited chan struct{} // closed when the process has ended; then why is set
	why    error

	failed int       // number of consecutive failed starts
	before time.Time // earliest time of the next start
}

var errFunctionTimeout = errors.New("the function did not answer in time")

const longestStartPause = 30 * time.Second

// invoke passes an event to the process. If there is no process, invoke starts one first. A process
// may end after it has answered the previous event, for example because of a panic. It then never
// requests this event, so invoke passes the event to a new process.
func (f *function) invoke(ctx context.Context, event []byte) ([]byte, error) {
	answer, err := f.invokeOnce(ctx, event)
	if errors.Is(err, lambda.ErrNotTaken) {
		answer, err = f.invokeOnce(ctx, event)
	}
	return answer, err
}

func (f *function) invokeOnce(ctx context.Context, event []byte) ([]byte, error) {
	if f.api != nil {
		select {
		case <-f.exited:
			f.end(true)
		default:
		}
	}
	if f.api == nil {
		if err := f.start(ctx); err != nil {
			return nil, err
		}
	}
	call, cancel := context.WithTimeoutCause(ctx, f.of.timeout, errFunctionTimeout)
	defer cancel()
	answer, err := f.api.Invoke(call, event, time.Now().Add(f.of.timeout))
	switch {
	case errors.Is(err, lambda.ErrNotTaken):
		err = fmt.Errorf("%w: %w", err, f.ended())
		f.end(true)
	case errors.Is(err, lambda.ErrClosed): // the process has ended, and the API with it
		err = fmt.Errorf("the function's process ended in the middle of a call: %w", f.ended())
		f.end(true)
	case call.Err() != nil: // the caller no longer waits for the answer
		f.end(true)
	}
	return answer, err
}

// start starts a process and waits until it requests its first event. After each failed start, the
// next start is delayed longer.
func (f *function) start(ctx context.Context) error {
	if pause := time.Until(f.before); pause > 0 {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	api, err := lambda.NewRuntime(f.of.arn)
	if err != nil {
		return err
	}
	life, kill := context.WithCancel(context.Background())
	asked := new(bool)
	f.api, f.kill, f.asked, f.exited, f.why = api, kill, asked, make(chan struct{}), nil
	cmd := shellexec.Shell(life, f.of.command)
	cmd.Env = append(f.of.env[:len(f.of.env):len(f.of.env)], "AWS_LAMBDA_RUNTIME_API="+api.Addr())
	out := &prefixed{w: &f.output, prefix: fmt.Sprintf("[function %d] ", f.number)}
	cmd.Stdout, cmd.Stderr = out, out
	shellexec.OwnGroup(cmd)
	cmd.Cancel = func() error { return shellexec.EndGroup(cmd, !*asked) }
	cmd.WaitDelay = shellexec.Grace
	go func() { // ends with the process; end waits for that
		defer close(f.exited)
		f.why = f.of.bounded(cmd, f.number)
		_ = shellexec.EndGroup(cmd, true) // kill the remaining processes of the group
		out.flush()
		api.Close()
	}()
	late := time.NewTimer(f.of.timeout)
	defer late.Stop()
	select {
	case <-api.Ready():
		f.failed, f.before = 0, time.Time{}
		return nil
	case err = <-api.InitFailed():
	case <-f.exited:
		err = f.ended()
	case <-late.C:
		err = fmt.Errorf("it did not request an event within %v", f.of.timeout)
	case <-ctx.Done():
		f.end(true)
		return context.Cause(ctx)
	}
	f.end(true)
	f.failed++
	f.before = time.Now().Add(min(100*time.Millisecond<<min(f.failed, 20), longestStartPause))
	return fmt.Errorf("the function did not start: %w", err)
}

// ended waits for the end of the process and returns the reason for it.
func (f *function) ended() error {
	<-f.exited
	var exit *exec.ExitError
	if f.why == nil {
		return errors.New("it exited with 0")
	} else if errors.As(f.why, &exit) {
		return exit
	}
	return f.why
}

// end ends the process, if there is one, and waits for its end. Unless force is true, it first asks
// the process to end.
func (f *function) end(force bool) {
	if f.api == nil {
		return
	}
	*f.asked = !force
	f.kill()
	<-f.exited
	f.api.Close()
	f.api = nil
}

// source returns a function that returns the origin of a stream, for the events of that stream. The
// real ARN is known only if the user gave the stream by its ARN.
func (o *options) source(region string) func(stream string) lambda.Source {
	arns := map[string]string{}
	for _, s := range o.streams {
		if _, name, found := strings.Cut(s, ":stream/"); found {
			arns[name] = s
		}
	}
	return func(stream string) lambda.Source {
		arn, known := arns[stream]
		if !known {
			arn = "arn:aws:kinesis:" + region + ":000000000000:stream/" + stream
		}
		return lambda.Source{Region: region, StreamARN: arn, RoleARN: o.role()}
	}
}

// invoking passes an event to a function and returns the function's answer.
type invoking func(ctx context.Context, event []byte) (answer []byte, err error)

// role returns the ARN of the function's role in events.
func (o *options) role() string { return "arn:aws:iam::000000000000:role/" + o.app }

// function returns the function that the flags select. close ends its processes or connections.
func (o *options) function(t cli.Terminal, region string) (invoke invoking, closeFunction func() error) {
	if o.lambda.invoke != "" {
		i, closeInvoker := o.invoker()
		return i.call, closeInvoker
	}
	fs := o.functions(t, region)
	return fs.invoke, fs.close
}

// byFunction returns a destination that passes the records to a Lambda function.
func (o *options) byFunction(t cli.Terminal, region string) (destination, error) {
	invoke, closeFunction := o.function(t, region)
	h := lambda.Handler{
		Invoke: func(ctx context.Context, _ *weir.Batch, event []byte) ([]byte, error) { return invoke(ctx, event) },
		Source: o.source(region), Report: len(o.lambda.respond) > 0,
		MaxAge: time.Duration(max(o.lambda.age, 0)) * time.Second,
		Retries: func(b *weir.Batch, err error, attempt int, pause time.Duration) {
			t.Say(slog.LevelWarn,
				"the function failed in a window of %s/%s (attempt %d, next in %v): %v",
				b.Stream, b.Shard, attempt, pause.Round(time.Millisecond), err)
		},
	}
	to := o.handledBy(h)
	to.close = closeFunction
	if o.lambda.window == 0 {
		return to, nil
	}
	windows, err := h.Windows(time.Duration(o.lambda.window) * time.Second)
	to.run = func(ctx context.Context, c *weir.Consumer) error { return c.RunPull(ctx, windows) }
	return to, err
}
