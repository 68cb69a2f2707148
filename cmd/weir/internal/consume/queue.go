package consume

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/codecs"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/queue"
)

// queueFlags are the flags that only consumers of queues have.
type queueFlags struct {
	name                    string // name or ARN
	hold, maxHold, ackDelay time.Duration
	byKey                   bool
}

const ackDelayText = "how long an acknowledgement waits for others, 1ms to 10s; ten do not wait " +
	"(default: the time to handle ten records, 100ms to half of --hold)"

// rows returns the flags that only consumers of queues have. They are a part of table.
func (q *queueFlags) rows() []row {
	only := []rule{{q.name != "", "FLAG applies only to queues: add --queue NAME"}}
	return []row{
		{
			name: "hold", to: &q.hold, rules: only,
			text: "how long records are hidden from other consumers at a time, 5s " +
				"to 12h; weir extends it while they are handled (default 30s)",
		},
		{
			name: "max-hold", to: &q.maxHold, rules: only,
			text: "how long a record may be handled, with all retries, before " +
				"other consumers get it, up to 12h (default 1h)",
		},
		{
			name: "ack-delay", to: &q.ackDelay, rules: only,
			text: ackDelayText,
		},
		{
			name: "order-by-key", to: &q.byKey, rules: only,
			text: "handle the records of a key one at a time within this process; " +
				"a queue keeps no order",
		},
	}
}

// ofQueues contains the flags that consumers of queues have. The text is that of "weir queue
// consume", if it differs.
var ofQueues = map[string]string{
	"queue":           "queue, by `NAME` or ARN",
	"app":             "application `NAME` in dead letters and metrics, and of the function (default: the value of --queue)",
	"worker":          "`NAME` of this consumer in the log (default: host and process)",
	"filter":          "",
	"filter-not-json": "what happens to a record that is not JSON if a pattern needs \"data\": pass, drop (as Lambda does), or fail: it is set aside",
	"decode":          "",
	"exec":            "shell `COMMAND` that handles records, with the records on its input",
	"batch":           "the maximum number of records of a command or an event, 1 to 1000; neither waits for a full batch (default 10)",
	"parallel":        "how many commands or calls of a function run at the same time, 1 to 10000 (default 10; with --lambda, one per process)",
	"to":              "write records to `URL`: file:PATH",
	"max-attempts":    "set a record aside after this number of failed calls, 1 to 10000 (default: never)",
	"max-age":         "set a failed record aside if it is older than this, from 1s (default: never)",
	"dead":            "", "outage-grace": "", "dead-letters-per-minute": "",
	"exec-credentials": "", "exec-results": "", "output": "",
	"max-memory":       "memory for records and answers, 40MiB to 1024GiB (default 128MiB)",
	"aggregates":       "how to handle records that the KPL has packed into one: unpack, or keep-packed, which is the default for functions",
	"retry-min":        "the first pause before a failed record is handled again; each further pause is twice as long (default 1s)",
	"retry-max":        "the longest pause before a failed record is handled again (default 1m)",
	"stop-timeout":     "how long handlers may take to finish at the end (default 30s)",
	"hold":             "how long records are hidden from other consumers at a time, 5s to 12h; weir extends it while they are handled (default 30s)",
	"max-hold":         "how long a record may be handled, with all retries, before other consumers get it, up to 12h (default 1h)",
	"ack-delay":        ackDelayText,
	"order-by-key":     "handle the records of a key one at a time within this process; a queue keeps no order",
	"lambda":           "shell `COMMAND` that runs a function of AWS Lambda, which handles records",
	"invoke":           "`URL` of an emulator of AWS Lambda, whose function handles records; without a path, the name of the function is --app",
	"lambda-processes": "", "lambda-timeout": "", "lambda-memory": "", "lambda-output": "", "pass-env": "",
	"function-response-types":       "",
	"maximum-record-age-in-seconds": "set older records aside without calling the function, 60 to 604800; -1 is no limit (default -1)",
	"batch-size":                    "Lambda's name for --batch (default 10)",
	"maximum-retry-attempts":        "retries of a failed record until it is set aside, one less than --max-attempts; -1 is no limit (default -1)",
	"filter-criteria":               "",
	"log":                           "", "endpoint": "", "role": "",
	"wait":   "wait without a time limit for the service, instead of ending after --connect-timeout",
	"health": "", "metrics": "",
	"metrics-emf":       "write metrics for CloudWatch Logs, one line per minute: `WHERE` is stderr, or file:PATH for the CloudWatch agent",
	"metrics-namespace": "",
}

// beside contains the flags that the row of another flag registers.
var beside = []string{"region", "connect-timeout", "role-external-id", "role-session", "help", "help-all"}

// notOfQueues says why a flag cannot be combined with --queue. noShards applies to the others.
var notOfQueues = map[string]string{
	"stream":                             "a queue belongs to one stream, so leave it out",
	"create-stream":                      "a queue belongs to a stream that exists, so use \"weir stream create\" and \"weir queue create\"",
	"store":                              "the service keeps the state of a queue, so a consumer needs no store, so leave it out",
	"create-store":                       "the service keeps the state of a queue, so a consumer needs no store, so leave it out",
	"from":                               "a queue has its start since it was created, so use \"weir queue create --from\"",
	"until-tip":                          "a queue does not say when it is empty, so leave it out",
	"until":                              "a queue has no order, so no record is the last one of a time, so leave it out",
	"tumbling-window-in-seconds":         "a window needs the records of a shard in order, and a queue has no order, so leave it out",
	"parallelization-factor":             "it is a number for each shard, and a queue has none, so use --parallel",
	"bisect-batch-on-function-error":     "a failed batch of a queue is always handled again record by record, so leave it out",
	"maximum-batching-window-in-seconds": "a batch of a queue never waits, because the holds of its records run, so leave it out",
	"starting-position":                  "a queue has its start since it was created, so use \"weir queue create --from\"",
	"starting-position-timestamp":        "a queue has its start since it was created, so use \"weir queue create --from\"",
	"dead-format":                        "Lambda's format needs the shard of a record, and a queue does not have it, so leave it out",
	"bisect":                             "a failed batch of a queue is always handled again record by record, so leave it out",
	"batch-wait":                         "a batch of a queue never waits, because the holds of its records run, so leave it out",
	"batch-bytes":                        "a batch of a queue has a number of records, so use --batch",
	"verbose":                            "a queue has no leases to log, so leave it out",
	"metrics-by-shard":                   "a queue has no shards, so leave it out",
	"handler-timeout":                    "the hold of a record ends a long call, so use --max-hold",
	"object-size":                        "records of a queue cannot be written to S3, so use --exec or --to file:PATH",
	"object-age":                         "records of a queue cannot be written to S3, so use --exec or --to file:PATH",

	"dynamodb-endpoint": "the service keeps the state of a queue, so a consumer needs no store, so leave it out",
}

const noShards = "it is about shards, and a queue has none, so leave it out"

// withoutQueue returns the error for a flag that consumers of queues do not have.
func withoutQueue(flag string) error {
	why, known := notOfQueues[flag]
	if !known {
		why = noShards
	}
	return cli.Usagef("--%s does not go with --queue: %s", flag, why)
}

// consumeQueue consumes a queue.
func (o *options) consumeQueue(cmd *cobra.Command, t cli.Terminal) error {
	qo, err := o.checkQueue(cmd)
	if err != nil {
		return err
	}
	return explain.Orderly(cmd.Context(), o.runQueue(cmd.Context(), t, qo))
}

// checkQueue returns the options of the consumer. It returns an error if flags are missing,
// invalid, or do not go with a queue.
func (o *options) checkQueue(cmd *cobra.Command) (qo queue.Options, err error) {
	if err := cli.Require(cmd, "queue"); err != nil {
		return qo, err
	}
	if err := awsconf.CheckQueue(o.queue.name); err != nil {
		return qo, err
	}
	var wrong error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if _, is := ofQueues[f.Name]; is || slices.Contains(beside, f.Name) || wrong != nil {
			return
		}
		wrong = withoutQueue(f.Name)
	})
	if wrong != nil {
		return qo, wrong
	}
	if o.lambda.used() && o.app == "" && strings.HasPrefix(o.queue.name, "arn:") {
		return qo, cli.Usagef("a function needs a name, and --queue is an ARN: add --app NAME")
	}
	o.app = cmp.Or(o.app, o.queue.name)
	for _, r := range o.table(cmd) {
		if err := r.check(cmd); err != nil {
			return qo, err
		}
	}
	o.given = flagsOf(cmd)
	given, s := cmd.Flags().Changed, &o.settings
	handled := o.exec != "" || o.lambda.used()
	switch {
	case o.to.bucket != "":
		return qo, cli.Usagef("--to %.140s: records of a queue cannot be written to S3; use --to file:PATH or --exec", o.to.url)
	case s.Aggregates == weir.UnpackOwn:
		return qo, cli.Usagef("--aggregates unpack-own is about shards, and a queue has none: use unpack or keep-packed")
	case given("batch") && !handled:
		return qo, cli.Usagef("--batch applies only to --exec, --lambda and --invoke: add one of them")
	case given("max-attempts") && !handled, given("max-age") && !handled:
		return qo, cli.Usagef("--max-attempts and --max-age need a handler that can fail: add --exec, --lambda or --invoke")
	}
	if err := o.filter.Apply(&s.Filter); err != nil {
		return qo, err
	}
	s.Filter.By = o.decode.Matcher(s.Filter.By)
	if o.lambda.used() {
		if err := o.completeFunction(given); err != nil {
			return qo, err
		}
	}
	if err := o.applyFailurePolicy(given); err != nil {
		return qo, err
	}
	if p := &s.OnFailure; given("outage-grace") && p.OutageGrace == 0 {
		p.OutageGrace = -1
	}
	if p := &s.OnFailure; given("dead-letters-per-minute") && p.MaxPerMinute == 0 {
		p.MaxPerMinute = -1
	}
	if o.worker == "" {
		host, _ := os.Hostname()
		o.worker = fmt.Sprintf("%s-%d", strings.ToValidUTF8(host, "_"), os.Getpid())
	}
	p := &s.OnFailure
	qo = queue.Options{
		Queue: o.queue.name, App: o.app, Concurrency: s.Concurrency.Keys, BatchSize: s.Batching.MaxRecords,
		OrderByKey: o.queue.byKey, KeepPacked: s.Aggregates == weir.KeepPacked, Filter: s.Filter, MaxBytes: int64(s.MaxMemory),
		Hold: o.queue.hold, MaxHold: o.queue.maxHold, AckDelay: o.queue.ackDelay,
		MinBackoff: s.Retry.MinBackoff, MaxBackoff: s.Retry.MaxBackoff, StopTimeout: s.Timing.StopTimeout,
		OnFailure: queue.FailurePolicy{MaxAttempts: p.MaxAttempts, MaxAge: p.MaxAge, OutageGrace: p.OutageGrace, MaxPerMinute: p.MaxPerMinute},
	}
	return qo, nil
}

// QueueCommand returns the command "weir queue consume". It is "weir consume --queue" with only the
// flags that a queue has.
func QueueCommand(t cli.Terminal) *cobra.Command {
	o := options{log: cli.LogText}
	cmd := &cobra.Command{
		Use:     "consume --queue NAME",
		Short:   "Handle the records of a queue, together with other consumers",
		Long:    aboutQueue,
		Example: queueExamples,
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.consumeQueue(cmd, t) },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if _, flag, unknown := strings.Cut(err.Error(), "unknown flag: --"); unknown {
			if all := Command(t); all.Flags().Lookup(flag) != nil {
				return withoutQueue(flag)
			}
		}
		return cmd.Root().FlagErrorFunc()(cmd, err)
	})
	for _, r := range o.table(cmd) {
		text, is := ofQueues[r.name]
		switch {
		case !is:
			continue
		case r.name == "endpoint":
			o.aws.Register(cmd, false)
			continue
		}
		r.register(cmd)
		if text != "" {
			cmd.Flags().Lookup(r.name).Usage = text
		}
	}
	return cmd
}

const aboutQueue = `Runs one consumer of a queue. Start, stop or kill consumers at any time: a queue
hands its records to all of them, without shards, leases or a store. "weir
consume --queue" is the same. Each record is handled at least once. There is no
order.

A record is handled when it is on standard output. With --exec, it is handled
when its command exits with 0; with --to, when it is in the file. Only then it is
acknowledged.

--exec runs a shell command with some records on its standard input, one line
each. After any other exit code than 0, they are handled again one by one, after
a pause that grows to --retry-max. WEIR_QUEUE (the ARN) and WEIR_STREAM are in
the environment of the command, and WEIR_RECORD (the record's ID) if it gets one
record, as always with --batch 1. The command does not get AWS credentials unless
--exec-credentials is given. If the record's hold is lost, because the service
did not extend it, another consumer may get the record, and weir ends the
command.

With --exec-results the command reports a result for each record, and the others
are acknowledged: see "weir consume --help-all". The input then has an object per
line.

--lambda COMMAND and --invoke URL pass the records to a function of AWS Lambda,
as "weir consume --help-all" describes. The event is that of a stream; its
sequenceNumber is the ID of the record, and its eventSourceARN the queue. With
--function-response-types ReportBatchItemFailures, only the records that the
answer names are handled again. Aggregates stay packed, unless --aggregates is
given.

` + records.AboutFilters + ` They
are acknowledged. ` + codecs.About + ` A
record that cannot be decoded is set aside.

A record that always fails stays with this consumer for up to --max-hold, and is
then delivered again. --max-attempts and --max-age limit that: the record becomes
a dead letter of the queue, or with --dead of that place. "weir queue dead" and
"weir dead" show them.

Ctrl-C and SIGTERM stop the consumer gracefully: it receives no more, finishes
what it handles, acknowledges it and gives the rest back. After --stop-timeout it
interrupts commands, and kills them 1 s later. A second signal at least a second later ends it at once;
its records are delivered again after --hold.

With -o json a line has the record's ID, the key, the times of arrival and of the
first receive, the number of receives, and the data, as "data" if it is UTF-8
text, otherwise as "data_base64".`

const queueExamples = `  weir queue consume --queue billing
  weir queue consume --queue billing --exec ./load --parallel 4
  weir queue consume --queue billing --exec ./load --max-attempts 5 --dead file:dead.ndjson
  weir queue consume --queue billing --exec ./load.py --exec-results --batch 100
  weir queue consume --queue billing --lambda 'python3 -m awslambdaric app.handler' --function-response-types ReportBatchItemFailures
  weir queue consume --queue billing --filter '{"data":{"kind":["order"]}}' --decode gzip --to file:records.ndjson
  weir queue consume --queue billing --exec ./load --health 8080 --metrics 8080
  weir queue consume --queue billing --exec ./load --metrics-emf stderr`
