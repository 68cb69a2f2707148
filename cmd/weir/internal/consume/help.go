package consume

import (
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/codecs"
	"github.com/weir-go/weir/cmd/weir/internal/records"
	"github.com/weir-go/weir/cmd/weir/internal/shellexec"
)

// about is the text that --help shows.
const about = `Runs one worker of an application. All workers with the same --app and --store
share the shards of the stream. Start, stop or kill workers at any time. Every
record is handled at least once, and the records of one key in order.

A record is handled when it is on standard output. With --exec, it is handled
when its command exits with 0; with --lambda, when the function has answered;
with --to, when it is in a file or an object. Then the checkpoint may pass it.

--exec runs a shell command for each batch, with the records on its standard
input. After any other exit code than 0, the same batch is handled again after a
pause that grows to --retry-max. Batches of several shards run at the same time.
WEIR_STREAM, WEIR_SHARD and WEIR_EPOCH are in the environment of the command.
The epoch grows with every change of the shard's owner, so a database can refuse
the writes of a previous owner. weir ends the command if its shard moves to
another worker. If the worker is killed (SIGKILL), Linux kills the command too,
but not the processes that the command has started; a last command that begins
with "exec" starts none. On other systems the command continues. The command
inherits the worker's environment without AWS credentials, ` + cli.StoreVariable + `
and ` + cli.DeadVariable + `, unless --exec-credentials is given.

` + shellexec.AboutResults + `

` + aboutLambda + `

--to file:PATH appends one line of JSON per record to a file: the data if it is
JSON, otherwise {"data_base64":"..."}. With -o json, the line is an object about
the record. A batch is on disk before it counts as handled. If a worker is
killed, its last records may be in the file twice, and its last line may be
incomplete.

--to s3://BUCKET/PREFIX writes such lines into compressed objects below
PREFIX/STREAM/dt=DATE/hour=HOUR/, by the UTC hour in which the first record of
the object arrived. Each record is in exactly one object, even after crashes.
The bucket must be in the stream's region, and weir needs permission to list,
read and write. AWS_ENDPOINT_URL_S3 selects another server than AWS.

` + records.AboutFilters + ` ` + codecs.About + ` A
record that cannot be decoded is rejected.

If the command or the function fails, its batch is handled again without a
limit, unless --max-attempts or --max-age sets one. At the limit, weir writes the
records to --dead as dead letters, and then the checkpoint moves past them.
"weir dead" lists them and handles them again. It cannot read dead letters in
the format of Lambda. In these, the account is that of a --stream given by ARN,
or 000000000000, and the function is --app.

` + aboutUntil + `

Ctrl-C, SIGTERM and a closed standard output (as by "| head") stop the worker
gracefully: it finishes its batches, saves its progress and hands over its
shards. After --stop-timeout it interrupts unfinished batches and reports them;
they are handled again. The worker ends at most 20 s after that. A second signal
at least a second later ends it at once.

Standard error has the log, one line per event. Many flags set the option of the
same name in weir's Go package (--failover-after is FailoverAfter).

` + records.AboutBinary

const examples = `  weir consume --stream flights --app billing --store sqlite:billing.db
  weir consume --stream flights --app billing --store dynamodb:weir --create-store
  weir consume --stream flights --create-stream 4 --app billing --store dynamodb:weir --create-store
  weir consume --stream flights --app loader --store sqlite:loader.db --batch 500 --exec 'psql -c "copy raw from stdin"'
  weir consume --stream flights --app loader --store sqlite:loader.db --exec ./load --max-attempts 3 --bisect --dead file:dead.ndjson
  weir consume --stream flights --app loader --store sqlite:loader.db --exec ./load.py --exec-results --dead file:dead.ndjson
  weir consume --stream flights --app loader --store sqlite:loader.db --lambda 'python3 -m awslambdaric app.handler' --function-response-types ReportBatchItemFailures
  weir consume --stream flights --app archive --store dynamodb:weir --to s3://my-bucket/raw
  weir consume --stream flights --app billing --store sqlite:billing.db --fan-out register
  weir consume --stream flights --app big --store sqlite:big.db --filter '{"data":{"amount":[{"numeric":[">",100]}]}}'
  weir consume --stream flights --app nightly --store sqlite:nightly.db --exec ./load --until-tip
  weir consume --stream flights --app look --store memory: --from 15m`
