package consume

import (
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/cmd/weir/internal/shellexec"
)

// about is the text that --help shows.
const about = `Runs one worker of an application. All workers with the same --app and --store
share the shards of the stream: start as many as you like, stop and kill them at
will. Every record is handled at least once, and the records of one key in
order.

A record is handled when it is on standard output, or with --exec, when the
command that got it exits with 0, with --lambda, when the function has answered,
or with --to, when it is in a file or in an object in S3. Only then does the
application's progress pass it. --exec runs the command once for each batch,
through the shell, with the batch's records on its standard input. After any
other exit code the command gets the same batch again, after a pause that grows
to 30 s. The command finds WEIR_STREAM, WEIR_SHARD and WEIR_EPOCH in its
environment; the epoch grows with every change of the shard's owner, so a
database can refuse a late writer. weir ends a command whose shard moves to
another worker. Batches of several shards run at the same time. If the worker is
killed (SIGKILL), Linux kills the command too, but not the processes that the
command has started; begin the last command with "exec" to start none. On other
systems the command continues; compare the epoch if that matters. The command
inherits the worker's environment without AWS credentials,
` + cli.StoreVariable + ` and ` + cli.DeadVariable + `. With --exec-credentials it
gets these, too.

` + shellexec.AboutResults + `

` + aboutLambda + `

--to file:PATH appends a line of JSON for each record to a file: its data if
that is JSON, otherwise {"data_base64":"..."}, or with -o json an object about
the record. A batch is on disk before it counts as handled. Records that a
worker had written when it was killed may be there twice, and its last line may
be cut short.

--to s3://BUCKET/PREFIX writes such lines into compressed objects below
PREFIX/STREAM/dt=DATE/hour=HOUR/, by the hour in UTC in which an object's first
record arrived. Each record is in exactly one object, even after crashes and
repetitions. An object is written when it has --object-size bytes, or
--object-age after its first record. The bucket has to be in the stream's
region, and weir needs permission to list, read and write; AWS_ENDPOINT_URL_S3
sets another server than AWS.

` + records.AboutFilters + `

A batch at which the command or the function fails is handled again without end,
unless --max-attempts or --max-age sets a limit. Then its records first go to --dead
as dead letters, unchanged, and only then does the progress pass them; "weir
dead" shows them and handles them again. (Letters of --dead-format lambda are
for programs that read the letters of Lambda's event source, and "weir dead"
does not read them. Their account is that of a --stream by ARN, or 000000000000,
and their function is --app.) While no other record can be handled either, or
too many are given up, weir waits.

Ctrl-C, SIGTERM and a closed standard output (as by "| head") end the worker in
order: it finishes its batches, saves its progress and gives its shards to the
others. Batches that are not finished after --stop-timeout are interrupted and
named on standard error; they will be handled again. The worker ends at most 20
s after that time. A second Ctrl-C or SIGTERM, a second or more after the first,
ends it at once. If the store does not answer during the stop, so that progress
may not be saved, the command says so and exits with 1.

Standard output has only records. Standard error is the log, one line for each
event, with the time, the level, the application, worker, stream and shard. A
failure names the first and the last sequence number of the records that will be
handled again.

Many flags set the option of the same name in weir's Go package
(--failover-after is FailoverAfter); the package's documentation says more about
each.

` + records.AboutBinary

const examples = `  weir consume --stream flights --app billing --store sqlite:billing.db
  weir consume --stream flights --app billing --store dynamodb:weir --create-store
  weir consume --stream flights --create-stream 4 --app billing --store dynamodb:weir --create-store
  weir consume --stream flights --app loader --store sqlite:loader.db --batch 500 --exec 'psql -c "copy raw from stdin"'
  weir consume --stream flights --app loader --store sqlite:loader.db --exec ./load --max-attempts 3 --bisect --dead file:dead.ndjson
  weir consume --stream flights --app loader --store sqlite:loader.db --exec ./load.py --exec-results --dead file:dead.ndjson
  weir consume --stream flights --app loader --store sqlite:loader.db --lambda 'python3 -m awslambdaric app.handler' --function-response-types ReportBatchItemFailures
  weir consume --stream flights --app archive --store dynamodb:weir --to s3://my-bucket/raw
  weir consume --stream flights --app billing --store sqlite:billing.db --fan-out
  weir consume --stream flights --app big --store sqlite:big.db --filter '{"data":{"amount":[{"numeric":[">",100]}]}}'
  weir consume --stream flights --app look --store memory: --from 15m`
