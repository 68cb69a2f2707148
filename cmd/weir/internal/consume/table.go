package consume

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/deadletters"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/cmd/weir/internal/shellexec"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
)

// table returns the flags of consume. It is called to register the flags. It is called again after
// they are parsed, because rules contain the values of flags.
func (o *options) table(cmd *cobra.Command) []row {
	s, g, l := &o.settings, &o.settings.OnFailure, &o.lambda
	const noWindow = "FLAG cannot be combined with --tumbling-window-in-seconds: a window " +
		"needs all of its records, so none is dead-lettered, and a failed call is repeated " +
		"until it succeeds"
	var (
		function = rule{l.used(), "FLAG applies only to functions of AWS Lambda: add --lambda " +
			"or --invoke"}
		process = rule{l.invoke == "", "FLAG applies only to --lambda; --invoke starts no " +
			"processes"}
		start = rule{l.invoke == "", "--lambda-processes and --pass-env apply only to " +
			"--lambda; --invoke starts no processes"}
		dead = rule{o.failures.dead != "" || o.queue.name != "", "FLAG needs a destination for dead letters: add " +
			"--dead, such as --dead file:PATH"}
		whole   = rule{l.window == 0, noWindow}
		halves  = rule{l.window == 0 || !g.Bisect, noWindow}
		inOrder = rule{l.window == 0 || s.Concurrency.Keys < 2, "FLAG cannot be combined with " +
			"--tumbling-window-in-seconds: the records of a window are handled one after the " +
			"other"}
		objects = rule{o.to.inBucket(), "FLAG applies only to objects in S3: add --to " +
			"s3://BUCKET/PREFIX"}
	)
	tooLong := fmt.Sprintf("FLAG %v is too long: use up to 24h", l.timeout)
	const lambdasDead = "FLAG needs a destination for dead letters: add --dead file:PATH"
	return append([]row{
		// Input and progress.
		{name: "stream", to: &o.streams, text: "stream, by `NAME` or ARN; may be repeated"},
		{
			name: "queue", to: &o.queue.name,
			text: "consume a queue, by `NAME` or ARN, and not the shards of a stream; \"weir queue " +
				"consume -h\" has the flags for it",
		},
		{
			name: "shard", to: &s.Shards,
			text: "shard to read, by `ID`; may be repeated",
		},
		{
			name: "app", to: &o.app,
			text: "application: workers with the same `NAME` share the progress",
		},
		{name: "store", to: with(stores.Register, &o.store)},
		{name: "create-store", to: &o.newTable, text: "create the DynamoDB table if it does " +
			"not exist (a SQLite file is always created); \"weir store create -h\" lists the " +
			"settings of its URL"},
		{
			name: "create-stream", to: &o.new,
			text: "create the stream if it does not exist, with `N` shards or on-demand; \"weir " +
				"stream create\" has more settings",
			complete: words{"on-demand\tthe service decides", "1", "4"},
			then:     func() error { return awsconf.CheckNewStreams(o.streams...) },
		},
		{
			name: "from", to: &o.from,
			text: "where a new application starts: " + records.FromHelp,
			complete: words{
				"oldest\tthe oldest record in the stream",
				"latest\trecords that arrive from now on",
				"15m\tthe last quarter of an hour",
			},
		},
		{
			name: "until-tip", to: &o.until.tip,
			text: "end when the records that are in the stream at the start are handled",
			rules: []rule{
				{!o.until.tip || o.until.at == "", "--until-tip and --until are two ends: give " +
					"one of them"},
			},
		},
		{
			name: "until", to: &o.until.at,
			text: "end when records from before `TIME` are handled: " + records.UntilHelp,
			then: func() error { return o.until.parse(time.Now()) },
		},
		{name: "worker", to: &o.worker, text: "name of this worker in logs and listings " +
			"(default: host and process)"},
		{
			name: "fan-out",
			to: func(cmd *cobra.Command) {
				o.fanOut.Register(cmd, "default: the name of the application")
			},
		},
		{
			name: "filter",
			to: func(cmd *cobra.Command) {
				o.filter.Register(cmd, "it is retried without end, or with --dead it is "+
					"dead-lettered")
			},
		},
		{
			name: "filter-not-json",
			rules: []rule{
				{l.window == 0 || o.filter.NotJSON != weir.FailNotJSON, "--filter-not-json " +
					"fail does not go with --tumbling-window-in-seconds: no record fails by " +
					"itself there; use pass or drop"},
			},
		},

		{
			name: "decode", to: o.decode.Register,
			rules: []rule{
				{!l.used(), "FLAG does not go with --lambda and --invoke: functions get the payloads as they are"},
				{!o.to.inBucket(), "FLAG does not go with --to s3: objects contain the payloads as they are"},
			},
		},

		// Handling of records.
		{
			name: "exec", to: &o.exec,
			text: "shell `COMMAND` that handles each batch",
			rules: []rule{
				{!l.used(), "--lambda or --invoke, and --exec, are two ways to handle a " +
					"record: give one of them"},
			},
		},
		{
			name: "exec-credentials", to: with(shellexec.RegisterCredentials, &o.execCredentials),
			rules: []rule{
				{o.exec != "" || !o.execCredentials, "FLAG applies only to --exec: add it " +
					"(--lambda has --pass-env)"},
			},
		},
		{
			name: "exec-results", to: o.execResults.Register,
			then: func() error { return o.execResults.Apply(cmd, o.exec, "output", &o.out) },
		},
		{
			name: "output",
			to: func(cmd *cobra.Command) {
				o.out.Register(cmd, "text is the data, json an object about each record")
			},
			rules: []rule{
				{!l.used(), "FLAG does not apply to functions, which get Lambda's event: leave " +
					"it out"},
			},
		},
		{
			name: "to", to: &o.to.url,
			text: "write records to `URL`: file:PATH or s3://BUCKET/PREFIX",
			rules: []rule{
				{l.command == "", "FLAG and --lambda are two ways to handle a record: give one " +
					"of them"},
				{o.exec == "" && l.invoke == "", "FLAG and --exec are two ways to handle a " +
					"record: give one of them"},
			},
			then: o.to.parse,
		},
		{
			name: "object-size",
			to:   parsed(&o.to.size, cli.ParseSize, 1, 1<<30, "1 byte to 1GiB, such as 16MiB"),
			text: "the size of the data, before compression, at which an object of --to s3:// is " +
				"written (default 16MiB)",
			rules: []rule{objects},
		},
		{
			name: "object-age", to: &o.to.age, rules: []rule{objects},
			text: "how long after its first record an object of --to s3:// is written, 1s to 24h " +
				"(default 1m)",
		},

		// Functions of AWS Lambda.
		{name: "lambda", to: &l.command, text: "shell `COMMAND` that runs a function of AWS " +
			"Lambda, which handles each batch"},
		{
			name: "invoke", to: &l.invoke,
			text: "`URL` of an emulator of AWS Lambda, whose function handles each batch; " +
				"without a path, the name of the function is --app",
			rules: []rule{
				{l.command == "", "--lambda and --invoke are two ways to reach a function: " +
					"give one of them"},
			},
			then: func() (err error) { l.invoke, err = invokeURL(l.invoke, o.app); return err },
		},
		{
			name: "lambda-processes", to: number(&l.processes, 1, 1000),
			text: "the maximum number of processes of --lambda, 1 to 1000 (default: one per " +
				"core)",
			rules: []rule{function, start},
		},
		{
			name: "lambda-timeout", to: &l.timeout,
			text: "how long a call of the function may take, and the start of its process, up to " +
				"24h (default 1m)",
			rules: []rule{function, {l.timeout <= 24*time.Hour, tooLong}},
		},
		{
			name: "lambda-memory",
			to:   parsed(&l.memory, cli.ParseSize, 16<<20, 1<<40, "16MiB to 1024GiB"),
			text: "memory limit for a process of --lambda and its children, such as 512MiB, from " +
				"16MiB, on Linux only; a process above the limit is killed and restarted " +
				"(default: no limit)",
			rules: []rule{
				function, process,
				{measuresMemory, "FLAG works only on Linux, where weir can measure the memory " +
					"of processes: leave it out here"},
			},
		},
		{
			name: "lambda-output",
			to:   parsed(&l.output, parseOutputRate, 0, 1<<30, "1KiB to 1GiB, or 0 for no bound"),
			text: "limit in bytes per second for the output of each process of --lambda, with " +
				"bursts of ten times as many; the rest is dropped; 0 is no limit (default " +
				"256KiB)",
			rules: []rule{function, process},
		},
		{
			name: "pass-env", to: &l.pass,
			text: "pass the worker's environment variable `NAME` to the function; may be " +
				"repeated",
			rules: []rule{function, start}, then: l.checkPass,
		},
		{
			name: "function-response-types", to: &l.respond,
			text: "`TYPE` of a function's answer: with ReportBatchItemFailures, the function " +
				"reports which records failed",
			rules: []rule{function}, then: l.checkRespond,
		},
		{
			name: "maximum-record-age-in-seconds",
			to:   parsed(&l.age, parseRecordAge, -1, 604_800, "60 to 604800, or -1 for no limit"),
			text: "dead-letter older records without calling the function, 60 to 604800; -1 is " +
				"no limit (default -1). --max-age dead-letters only records that failed",
			rules: []rule{
				function, {l.window == 0 || l.age < 0, noWindow},
				{l.age < 0 || g.MaxAge == 0, "FLAG dead-letters all older records, and " +
					"--max-age only those that also failed: give one of them"},
				{l.age < 0 || dead.met, lambdasDead},
			},
		},
		{
			name: "tumbling-window-in-seconds", to: number(&l.window, 0, 900),
			text: "call the function with windows of this length, by arrival time, and pass its " +
				"state from call to call, 1 to 900; 0 is no windows (default 0)",
			rules: []rule{function},
		},
		{
			name: "batch-size", is: "batch", to: number(&s.Batching.MaxRecords, 1, 10_000),
			text:  "Lambda's name for --batch (default 100)",
			rules: []rule{function},
		},
		{
			name: "maximum-retry-attempts", is: "max-attempts",
			to: parsed(&g.MaxAttempts, callsOfRetries, 0, 10_000, "-1 to 9999"),
			text: "retries of a failed call until its records are dead-lettered, one less than " +
				"--max-attempts; -1 is no limit (default -1)",
			rules: []rule{
				function, {l.window == 0 || g.MaxAttempts == 0, noWindow},
				{g.MaxAttempts == 0 || dead.met, lambdasDead},
			},
		},
		{
			name: "parallelization-factor", is: "parallel",
			to:    number(&s.Concurrency.Keys, 1, 10_000),
			text:  "Lambda's name for --parallel (default 1)",
			rules: []rule{function, inOrder},
		},
		{
			name: "bisect-batch-on-function-error", is: "bisect", to: &g.Bisect,
			text:  "Lambda's name for --bisect",
			rules: []rule{function, halves, {!g.Bisect || dead.met, lambdasDead}},
		},
		{
			name: "maximum-batching-window-in-seconds", is: "batch-wait", to: &l.wait,
			text: "Lambda's name for --batch-wait, `N` from 0 to 300",
			rules: []rule{
				function,
				{0 <= l.wait && l.wait <= 300, fmt.Sprintf("FLAG %d: want 0 to 300", l.wait)},
			},
			then: func() error { s.Batching.MaxWait = time.Duration(l.wait) * time.Second; return nil },
		},
		{
			name: "starting-position", is: "from", to: &l.position,
			text:     "Lambda's name for --from: TRIM_HORIZON, LATEST or AT_TIMESTAMP",
			complete: words{"TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"}, rules: []rule{function},
			then: func() (err error) { o.from, err = l.from(); return err },
		},
		{
			name: "starting-position-timestamp", to: &l.at,
			text: "the `TIME` of AT_TIMESTAMP, such as 2026-03-01T12:00:00Z or seconds since " +
				"1970",
			rules: []rule{function, {l.position == "AT_TIMESTAMP", notTogether}},
		},
		{
			name: "filter-criteria", is: "filter", to: &l.criteria,
			text: "Lambda's name for --filter, in its `JSON`: " +
				"{\"Filters\":[{\"Pattern\":\"…\"}]}",
			rules: []rule{function},
			then: func() (err error) {
				o.filter.Patterns, err = criteriaPatterns(l.criteria)
				return err
			},
		},

		// Dead letters.
		{
			name: "dead",
			to: func(cmd *cobra.Command) {
				deadletters.Register(cmd, &o.failures.dead, "destination of dead letters")
			},
			rules: []rule{whole},
		},
		{
			name: "max-attempts", to: number(&g.MaxAttempts, 1, 10_000),
			text: "dead-letter a batch after this number of failed calls, 1 to 10000 (default: " +
				"never)",
			rules: []rule{dead, whole},
		},
		{
			name: "max-age", to: &g.MaxAge, rules: []rule{dead, whole},
			text: "dead-letter the records of a failed batch that are older than this, from 1s " +
				"(default: never)",
		},
		{
			name: "bisect", to: &g.Bisect, rules: []rule{dead, halves},
			text: "find the record that fails: handle a failed batch again in halves, and " +
				"dead-letter only single records",
		},
		{
			name: "outage-grace", to: &cli.Span{To: &g.OutageGrace, Zero: true},
			text: "how long to wait before dead-lettering if no other record is handled either, " +
				"because the cause may be an outage; 0 does not wait (default 2m)",
			rules: []rule{dead},
		},
		{
			name: "dead-letters-per-minute", to: number(&g.MaxPerMinute, 0, 1_000_000),
			text: "the maximum number of records to dead-letter per minute; 0 is no limit " +
				"(default 60)",
			rules: []rule{dead},
		},
		{
			name: "dead-format",
			to: cli.OneOf(
				&o.failures.asLambda,
				cli.Word("weir", false, "readable by \"weir dead\""),
				cli.Word("lambda", true, "readable by programs that expect Lambda's format"),
			),
			text: "format of dead letters: weir, or lambda, which AWS Lambda sends to a queue " +
				"(without the record) or puts into a bucket (with it); only for sqs: and s3:",
			rules: []rule{dead},
		},

		// Settings of package weir. The texts contain their defaults.
		{
			name: "batch", to: number(&s.Batching.MaxRecords, 1, 10_000),
			text: "the maximum number of records in a batch, 1 to 10000 (default 10000)",
		},
		{
			name: "batch-bytes", to: parsed(&s.Batching.MaxBytes, cli.ParseSize, 0, 1<<30, "0 to 1GiB"),
			text: "the maximum size of the data in a batch, such as 4MiB; a larger record is its " +
				"own batch, and 0 is no limit (default 0)",
		},
		{
			name: "batch-wait", to: &cli.Span{To: &s.Batching.MaxWait, Zero: true},
			text: "how long an incomplete batch waits for more records, up to 5m; 0 does not " +
				"wait (default 0)",
		},
		{
			name: "parallel", to: number(&s.Concurrency.Keys, 1, 10_000),
			text: "how many partition keys of a shard are handled at a time, each in its order, " +
				"1 to 10000 (default 1: one batch of a shard after the other)",
			rules: []rule{
				inOrder,
				{s.Concurrency.Keys < 2 || !o.to.inBucket(), "FLAG cannot be combined with --to " +
					"s3: an object has the records of a shard one after the other"},
			},
		},
		{
			name: "max-memory",
			to:   parsed(&s.MaxMemory, cli.ParseSize, 16<<20, 1<<40, "16MiB to 1024GiB"),
			text: "memory for records that wait to be handled, for all shards together, such as " +
				"512MiB; from 16MiB (default 128MiB)",
		},
		{
			name: "max-leases",
			to:   parsed(&s.MaxLeases, strconv.Atoi, 0, math.MaxInt, "a number from 0 on"),
			text: "the maximum number of shards for this worker; 0 is no limit (default 0)",
		},
		{
			name: "weight",
			to: &cli.Number[float64]{
				To: &s.Weight, Parse: cli.ParseFloat, Low: math.SmallestNonzeroFloat64,
				High: math.MaxFloat64, Want: "a number above 0",
			},
			text: "this worker's share of the shards, relative to the others (default 1)",
		},
		{name: "read-share", to: with(records.RegisterReadShare, &s.Polling.Share)},
		{name: "transport", to: with(records.RegisterTransport, &s.Transport)},
		{
			name: "aggregates",
			to: cli.OneOf(
				&s.Aggregates,
				cli.Word("unpack", weir.Unpack, "each becomes a separate record"),
				cli.Word("unpack-own", weir.UnpackOwn,
					"those whose keys belong to another shard are dropped"),
				cli.Word("keep-packed", weir.KeepPacked, "they are passed on unchanged"),
			),
			text: "how to handle records that the KPL has packed into one: unpack, unpack-own " +
				"(without those whose keys belong to another shard) or keep-packed",
		},
		{
			name: "drop-repeats", to: &s.DropRepeats,
			rules: []rule{{s.Aggregates != weir.KeepPacked, "FLAG cannot be combined with " +
				"--aggregates keep-packed: leave one of them out"}},
			text: "drop handled records that were sent again",
		},
		{
			name: "expired",
			to: cli.OneOf(
				&s.Expired,
				cli.Word("fail", weir.FailExpired, "the shard is not read until a person decides"),
				cli.Word("oldest", weir.OldestExpired, "at the oldest record in the stream"),
				cli.Word("latest", weir.LatestExpired, "with records that arrive from then on"),
			),
			text: "where to continue if a shard's checkpoint has left the stream: fail stops " +
				"reading the shard and reports it; oldest and latest continue there",
		},
		{
			name: "suspect-after",
			to:   parsed(&s.OnFailure.SuspectAfter, parseSuspect, -1, 1000, "1 to 1000, or -1 for never"),
			text: "how many workers must die one after the other at one checkpoint before its " +
				"records are handled one at a time, 1 to 1000; -1 is never (default 2)",
		},
		{
			name: "idle-interval", to: &s.Polling.IdleInterval,
			text: "pause between two reads of a shard without new records, 200ms to 1m (default " +
				"1s)",
		},
		{
			name: "retry-min", to: &s.Retry.MinBackoff,
			text: "the first pause before a failed batch is handled again; each further pause is " +
				"twice as long (default 100ms)",
		},
		{
			name: "retry-max", to: &s.Retry.MaxBackoff,
			text: "the longest pause before a failed batch is handled again (default 30s)",
		},
		{
			name: "heartbeat-interval", to: &s.Timing.HeartbeatInterval,
			text: "how often this worker sends a heartbeat and saves its progress, 100ms to 1m " +
				"(default 1s)",
		},
		{
			name: "failover-after", to: &s.Timing.FailoverAfter,
			text: "how long a worker may be silent before its shards go to others; 3 heartbeat " +
				"intervals to 1h, the same for all workers (default 5s)",
		},
		{
			name: "handoff-timeout", to: &s.Timing.HandoffTimeout,
			text: "how long a batch may take to finish when its shard moves to another worker " +
				"(default 30s)",
		},
		{
			name: "stop-timeout", to: &s.Timing.StopTimeout,
			text: "how long batches may take to finish when the worker stops (default 30s)",
		},
		{name: "stall-after", to: &s.Timing.StallAfter, text: "how long reading a shard may fail " +
			"before another worker tries, 30s to 24h (default 2m)"},
		{name: "list-interval", to: &s.Timing.ListInterval, text: "how often the shards of each " +
			"stream are listed although nothing hints at a change, 1s to 1h (default 1m)"},
		{
			name: "handler-timeout", to: &cli.Span{To: &s.Timing.HandlerTimeout, Zero: true},
			text: "how long a batch may take before its shard goes to another worker, from 1s; 0 " +
				"is no limit (default 0)",
		},
		{
			name: "no-history", to: &s.NoHistory,
			text: "do not store the history of this worker's shards, which \"weir dashboard\" " +
				"shows for 3 hours (one write per minute)",
		},
		{
			name: "endpoint", to: func(cmd *cobra.Command) { o.aws.Register(cmd, true) },
		},
		{name: "role", to: o.aws.Role.Register},
		{
			name: "wait", to: &o.aws.Wait,
			text: "wait without a time limit for the service and the store, instead of ending " +
				"after --connect-timeout",
		},
	}, append(o.queue.rows(), o.reports()...)...)
}
