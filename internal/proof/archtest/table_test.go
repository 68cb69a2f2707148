// Package archtest checks which packages of this repository import each other. It contains only
// tests.
package archtest

import "slices"

// module is the path of the root module, and the prefix of the paths of nested modules.
const module = "github.com/weir-go/weir"

// A row states why a package exists, and which packages it may import in addition to the standard
// library. Packages are named without the path of the module. The root package is ".". A name that
// ends in "/..." includes all packages below it.
type row struct {
	pkg   string
	why   string
	ours  []string // packages of this repository that it may import
	tests []string // additional packages that its tests may import
	sdk   bool     // it may import the AWS SDK
	pure  bool     // it has no goroutine, clock, logger, I/O or randomness
}

// rows is the architecture. A new package needs a row, and each row must say why its package
// exists.
var rows = slices.Concat(commandRows, []row{
	{
		pkg: ".", why: "the API: options, handlers, events and errors, and the adapter between them and the engine",
		ours:  []string{"event", "aggregate", "deadletter", "health", "lease", "shard", "internal/batch", "internal/delivery", "internal/failure", "internal/fanout", "internal/follow", "internal/group", "internal/guard/guarded", "internal/keyed", "internal/lock", "internal/memory", "internal/notify", "internal/probe", "internal/pull", "internal/run", "internal/shardrun", "internal/source", "internal/streams", "internal/supervise", "internal/wire"},
		tests: []string{"filter", "kinesistest", "store/...", "internal/previous"}, sdk: true,
	},
	{
		pkg: "internal/run", why: "one run of a consumer: it joins the group, has a loop for each shard, and owns what these share",
		ours:  []string{"event", "health", "internal/emit", "lease", "internal/failure", "internal/fanout", "internal/group", "internal/guard/...", "internal/history/...", "internal/keyed", "internal/lineage", "internal/lock", "internal/memory", "internal/notify", "internal/polling", "internal/pull", "internal/retry", "internal/shardrun", "internal/source", "internal/streams", "internal/supervise", "internal/wire", "internal/wire/codec"},
		tests: []string{"internal/batch", "internal/delivery", "internal/mono", "shard", "store/memstore"}, sdk: true,
	},
	{
		pkg: "internal/shardrun", why: "one shard for one term, from its source to its checkpoint; what follows each step is a value",
		ours:  []string{"event", "health", "aggregate", "internal/emit", "deadletter", "lease", "shard", "internal/backlog", "internal/batch", "internal/delivery", "internal/failure", "internal/group", "internal/guard/guarded", "internal/jitter", "internal/keyed", "internal/lineage", "internal/lock", "internal/memory", "internal/mono", "internal/polling", "internal/pull", "internal/repeats", "internal/retry", "internal/source", "internal/streams", "internal/supervise", "internal/wire/codec"},
		tests: []string{"store/memstore"}, sdk: true,
	},
	{pkg: "internal/pull", why: "hands batches to a function that asks for them", ours: []string{"internal/lock", "internal/mono", "internal/source", "shard"}},
	{
		pkg: "dashboard", why: "the page: what state applications are in, and their shards over time",
		ours: []string{"deadletter", "health", "lease", "shard", "internal/change", "internal/dump", "internal/errtext", "internal/guard", "internal/history", "internal/hostcheck", "internal/lettertext", "payload", "internal/observe", "internal/operate", "internal/queuestate", "internal/seqtime", "internal/streams"}, tests: []string{".", "kinesistest", "store/memstore"}, sdk: true,
	},
	{
		pkg: "producer", why: "writes records to a stream, in order per key and close to the limits; it knows no lease",
		ours:  []string{"aggregate", "internal/guard", "internal/jitter", "internal/notify", "internal/retry", "internal/streams", "internal/wire", "internal/wire/codec", "shard"},
		tests: []string{"kinesistest", "internal/proof/benchserver", "payload"}, sdk: true,
	},
	{
		pkg: "queue", why: "consumes queues: calls, holds, acknowledgements and dead letters; it knows no shard and no lease",
		ours:  []string{".", "aggregate", "deadletter", "health", "internal/failure", "internal/guard", "internal/notify", "internal/probe", "internal/retry"},
		tests: []string{"kinesistest"}, sdk: true,
	},
	{pkg: "health", why: "how shards and applications stand, judged from observations", ours: []string{"internal/errtext", "shard"}, tests: []string{"lease"}, pure: true},
	{pkg: "window", why: "tumbling windows of the records of a shard", ours: []string{".", "shard"}, tests: []string{"aggregate", "lease", "kinesistest", "store/memstore"}},
	{pkg: "filter", why: "EventBridge's patterns, matched without decoding", pure: true},
	{pkg: "payload", why: "codecs of payloads, for producers, handlers and filters", tests: []string{".", "filter", "kinesistest", "producer", "store/memstore"}, pure: true},
	{
		pkg: "payload/s3payload", why: "large payloads as objects in S3; in a module of its own", ours: []string{"payload"},
		tests: []string{".", "deadletter", "filter", "kinesistest", "producer", "store/memstore", "internal/proof/fakes3"}, sdk: true,
	},
	{pkg: "payload/zstdpayload", why: "zstd as a codec; in a module of its own", ours: []string{"payload"}, tests: []string{"producer"}},
	{pkg: "deadletter", why: "dead letters of records that were dead-lettered, and where they are kept", ours: []string{"internal/seen"}, tests: []string{"internal/filled", "internal/proof/oldletters"}},
	{pkg: "deadletter/boxtest", why: "the contract of boxes for dead letters as a test suite", ours: []string{"deadletter"}},
	{
		pkg: "deadletter/kinesisletters", why: "dead letters in another stream",
		ours: []string{".", "deadletter", "internal/retry"}, tests: []string{"kinesistest", "deadletter/boxtest", "internal/proof/oldletters"}, sdk: true,
	},
	{pkg: "internal/seen", why: "what listings of many items showed, for boxes of dead letters", pure: true},
	{pkg: "internal/sqltable", why: "what stores, sinks and dead letters in SQL databases share: tables that several processes may make at once, parameters, codes of errors"},
	{pkg: "deadletter/sqsletters", why: "dead letters in a queue", ours: []string{"deadletter", "internal/guard"}, tests: []string{".", "deadletter/boxtest", "internal/proof/oldletters"}, sdk: true},
	{pkg: "deadletter/sqlletters", why: "dead letters in a table", ours: []string{"deadletter", "internal/seen", "internal/sqltable"}, tests: []string{"."}},
	{pkg: "provision", why: "makes streams that do not exist; nothing that runs calls it", ours: []string{"internal/retry", "internal/streams"}, tests: []string{"kinesistest"}, sdk: true},
	{pkg: "event", why: "what a consumer reports to Options.OnEvent, as values", ours: []string{"deadletter", "health", "shard"}},
	{pkg: "internal/emit", why: "passes the events of a run to Options.OnEvent, and says which of them are changes of state", ours: []string{"event", "internal/notify"}},
	{pkg: "shard", why: "shards, their lineage, hash ranges and positions", pure: true},
	{pkg: "lease", why: "leases, the plan, and what a store has to do", ours: []string{"shard"}, pure: true},
	{pkg: "aggregate", why: "the KPL's aggregation format", pure: true},
	{
		pkg: "internal/group", why: "the acting half of lease: heartbeats, leadership, terms; it sees no record and no AWS",
		ours: []string{"event", "internal/errtext", "internal/lock", "shard", "lease", "internal/jitter", "internal/mono"}, tests: []string{"store/memstore", "store/storetest"},
	},
	{
		pkg: "internal/proof/protocol", why: "the coordination protocol as a model of which every state is visited; it has no use but its tests",
		ours: []string{"lease"}, tests: []string{"shard", "store/memstore"}, pure: true,
	},
	{pkg: "internal/history", why: "the form in which workers report how their shards stood over time", ours: []string{"lease"}, pure: true},
	{
		pkg: "internal/history/sampling", why: "takes samples of how a worker's shards stand, and reports them",
		ours: []string{"event", "health", "internal/group", "internal/history", "internal/lock", "internal/seqtime", "internal/supervise", "lease", "shard"},
	},
	{pkg: "internal/seqtime", why: "times that are in sequence numbers", tests: []string{"kinesistest"}, pure: true},
	{pkg: "internal/observe", why: "what a store and the service say of an application, as package health takes it", ours: []string{"health", "internal/errtext", "internal/history", "internal/supervise", "lease"}, tests: []string{"shard"}, pure: true},
	{pkg: "internal/queuestate", why: "what a queue's numbers and settings mean, and what to do", pure: true},
	{pkg: "internal/backlog", why: "how old the oldest record is that is not handled, or not saved", ours: []string{"health", "internal/source", "shard"}, pure: true},
	{pkg: "internal/supervise", why: "decides whether a shard, a worker and its reading are well", ours: []string{"health", "internal/errtext", "internal/lock", "internal/mono", "lease"}, pure: true},
	{pkg: "internal/errtext", why: "texts of errors, shortened for people", pure: true, sdk: true},
	{pkg: "internal/lettertext", why: "errors and payloads of dead letters, for people", ours: []string{"payload"}, pure: true},
	{pkg: "internal/lineage", why: "decides where a shard of a sink begins, and what is read again before it", ours: []string{"internal/lock", "lease", "shard"}},
	{pkg: "internal/keyed", why: "the partition keys of a shard handled in parallel: which records may be handled now, and before which all is done", ours: []string{"health", "internal/delivery", "internal/lock", "internal/memory", "internal/mono", "internal/source", "internal/supervise", "lease", "shard"}, tests: []string{"internal/failure"}},
	{pkg: "internal/batch", why: "pages become batches: unpacked, filtered, cut, and gathered while they are not full", ours: []string{"aggregate", "internal/source", "shard"}, pure: true},
	{pkg: "internal/repeats", why: "recognizes records that a producer sent again, by their numbers", ours: []string{"aggregate", "lease", "shard"}, tests: []string{"internal/proof/longform"}, pure: true},
	{pkg: "internal/delivery", why: "one batch that is handed over: its records, what is done of it, and the calls that failed", ours: []string{"internal/failure", "internal/lock", "internal/source", "lease", "shard"}, tests: []string{"aggregate"}, pure: true},
	{pkg: "internal/failure", why: "decides what follows a call of the user's code that failed, and which record kills its workers", ours: []string{"deadletter", "internal/lock", "lease", "shard"}, pure: true},
	{pkg: "internal/memory", why: "bounds the memory of what was read and not yet handled", ours: []string{"internal/lock"}},
	{pkg: "internal/change", why: "what a reset or an import of checkpoints changes in a store, and in which order", ours: []string{"lease", "shard"}, tests: []string{"store/memstore"}, pure: true},
	{pkg: "internal/dump", why: "an application's progress as a file", ours: []string{"lease", "shard"}},
	{pkg: "internal/operate", why: "what operators do to an application, for the command and the page", ours: []string{"lease", "shard", "internal/change", "internal/streams"}, tests: []string{"kinesistest", "store/memstore"}, sdk: true},
	{pkg: "internal/probe", why: "health checks over HTTP, of consumers of streams and of queues", ours: []string{"internal/hostcheck"}},
	{pkg: "internal/hostcheck", why: "which hosts may be asked for of what listens on this machine alone"},
	{pkg: "internal/guard", why: "turns panics of user code into errors, on goroutines that weir starts"},
	{
		pkg: "internal/guard/guarded", why: "calls what users pass to weir so that its panics are errors, and says which features a store is not able to serve",
		ours: []string{"internal/lock", "internal/wire", "lease"}, tests: []string{"internal/proof/leaktest", "store/memstore"}, sdk: true,
	},
	{pkg: "internal/retry", why: "pauses between tries", ours: []string{"internal/jitter"}},
	{pkg: "internal/jitter", why: "all that is left to chance, in one place, so that a simulation can decide it"},
	{pkg: "internal/notify", why: "what happens is told to the user's code without waiting for it", ours: []string{"internal/lock"}},
	{pkg: "emfweir", why: "metrics of a consumer as lines for CloudWatch Logs; on the public API", ours: []string{"event", "health", ".", "queue"}, tests: []string{"filter", "kinesistest", "lease", "store/memstore"}, sdk: true},
	{pkg: "promweir", why: "metrics of a consumer for Prometheus; on the public API", ours: []string{"event", ".", "deadletter", "health", "internal/hostcheck", "queue"}, tests: []string{"kinesistest", "lease", "shard", "store/memstore"}, sdk: true},
	{pkg: "internal/mono", why: "points in time in eight bytes, of which each of thousands of shards keeps many"},
	{
		pkg: "internal/streams", why: "what is known of streams: names, shards, when they were created, whether they can be read",
		ours: []string{"internal/guard", "internal/lock", "shard", "internal/retry", "internal/wire", "internal/wire/codec"}, tests: []string{"kinesistest"}, sdk: true,
	},
	{pkg: "internal/change", why: "what operators' writes change in a store, decided for the command and for the simulation's operator; pure", ours: []string{"shard", "lease"}, tests: []string{"store/memstore"}},
	{
		pkg: "internal/kcl", why: "the KCL's lease table, and the plans that move an application between it and weir; pure",
		ours: []string{"shard", "lease", "internal/change"}, pure: true,
	},
	{
		pkg: "internal/foreign", why: "checkpoints of other clients, and the plans that move an application between them and weir; pure",
		ours: []string{"shard", "lease", "internal/change"}, pure: true,
	},
	{pkg: "internal/kcl/leasetable", why: "the calls of DynamoDB for that table; it decides nothing", ours: []string{"internal/kcl"}, tests: []string{"shard"}, sdk: true},
	{
		pkg: "internal/source", why: "what those who read shards and those who take what was read have in common; it sees no lease",
		ours: []string{"health", "shard", "internal/streams", "internal/wire", "internal/wire/codec"}, sdk: true,
	},
	{
		pkg: "internal/polling", why: "reads shards with GetRecords",
		ours:  []string{"health", "internal/lock", "shard", "internal/jitter", "internal/memory", "internal/mono", "internal/retry", "internal/source", "internal/streams", "internal/wire", "internal/wire/codec"},
		tests: []string{"kinesistest"}, sdk: true,
	},
	{
		pkg: "internal/fanout", why: "reads shards by subscriptions",
		ours: []string{"health", "internal/lock", "shard", "internal/jitter", "internal/memory", "internal/polling", "internal/retry", "internal/source", "internal/streams", "internal/wire", "internal/wire/codec"}, tests: []string{"kinesistest"}, sdk: true,
	},
	{
		pkg: "internal/follow", why: "all shards of a stream for one who remembers nothing; it sees no lease",
		ours: []string{"internal/lock", "shard", "internal/fanout", "internal/memory", "internal/polling", "internal/retry", "internal/source", "internal/streams"}, sdk: true,
	},
	{pkg: "internal/http1", why: "speaks HTTP/1.1 to few hosts at the cost of the system calls; only the wire needs it", ours: []string{"internal/lock"}},
	{
		pkg: "internal/wire", why: "calls to Kinesis at little more than the cost of receiving the answers",
		ours: []string{"internal/lock", "internal/http1", "internal/mono", "internal/wire/codec"}, tests: []string{"aggregate", "kinesistest", "shard", "internal/proof/answers"}, sdk: true,
	},
	{
		pkg: "internal/wire/codec", why: "answers of Kinesis decoded without copying; it makes no calls",
		ours: []string{"shard", "aggregate"}, tests: []string{"internal/proof/answers"}, sdk: true,
	},
	{
		pkg: "internal/proof/answers", why: "answers in every style, and slow readers that stand for the truth",
		ours: []string{"shard", "internal/wire/codec"}, sdk: true,
	},
	{
		pkg: "store/memstore", why: "the reference for all stores, in memory",
		ours: []string{"shard", "lease"}, tests: []string{".", "kinesistest", "store/storetest"},
	},
	{
		pkg: "store/sqlstore", why: "leases in SQL databases; the caller brings the driver",
		ours: []string{"shard", "lease", "internal/guard", "internal/sqltable"}, tests: []string{"store/storetest"},
	},
	{
		pkg: "store/dynamostore", why: "leases in a DynamoDB table of our own shape",
		ours: []string{"shard", "lease", "internal/guard", "internal/sqltable"}, tests: []string{"store/storetest"}, sdk: true,
	},
	{
		pkg: "store/redisstore", why: "leases in Redis, a script for each call",
		ours: []string{"shard", "lease", "internal/guard", "internal/sqltable"}, tests: []string{"store/storetest"},
	},
	{
		pkg: "sink", why: "effects exactly once in any database with transactions: the positions of shards and of partitions of their keys",
		ours: []string{".", "event", "deadletter", "shard"}, tests: []string{"sink/sinktest"},
	},
	{pkg: "sink/sinktest", why: "the contract of a database for package sink as a test suite, and such a database in memory", ours: []string{".", "sink"}},
	{
		pkg: "sink/sqlsink", why: "effects in SQL databases, with the position or the keys of records in the transaction; the caller brings the driver",
		ours: []string{".", "deadletter", "queue", "shard", "sink", "internal/sqltable"},
	},
	{pkg: "lambda", why: "functions of AWS Lambda as handlers: their events, answers, windows and runtime API; on the public API", ours: []string{".", "internal/retry", "queue"}, tests: []string{"event", "deadletter", "kinesistest", "lease", "store/memstore"}, sdk: true},
	{
		pkg: "sink/s3sink", why: "records as objects in S3, each in one; on the public API",
		ours: []string{".", "shard", "sink/s3sink/internal/bucket"}, tests: []string{"event", "aggregate", "deadletter", "lease", "kinesistest", "store/memstore", "internal/proof/fakes3", "sink/s3sink/s3letters"}, sdk: true,
	},
	{
		pkg: "sink/s3sink/s3letters", why: "dead letters of records that were dead-lettered, in S3",
		ours: []string{"deadletter", "shard", "internal/guard", "internal/seen", "sink/s3sink/internal/bucket"}, tests: []string{".", "deadletter/boxtest", "internal/proof/fakes3", "internal/proof/oldletters"}, sdk: true,
	},
	{
		pkg: "otelweir", why: "metrics and traces of a consumer and a producer for OpenTelemetry; on the public API",
		ours: []string{"event", ".", "health", "aggregate", "producer", "queue"}, tests: []string{"shard", "lease", "kinesistest", "store/memstore", "weirtest", "internal/proof/leaktest"}, sdk: true,
	},
	{pkg: "sink/s3sink/internal/bucket", why: "the few requests to S3 that objects and dead letters need", sdk: true},
	{
		pkg: "internal/proof/behaviour", why: "tests of whole consumers and readers by the public API; it only has tests",
		tests: []string{"event", ".", "aggregate", "deadletter", "filter", "health", "lambda", "lease", "producer", "shard", "sink", "sink/sinktest", "sink/sqlsink", "window", "kinesistest", "weirtest", "store/...", "internal/history", "internal/previous", "internal/source", "internal/guard/...", "internal/wire", "internal/proof/leaktest"}, sdk: true,
	},
	{
		pkg: "internal/proof/bench", why: "benchmarks of whole consumers and readers by the public API; it only has tests",
		tests: []string{"event", ".", "aggregate", "kinesistest", "lease", "shard", "store/...", "internal/wire", "internal/wire/codec", "internal/proof/benchserver", "internal/proof/leaktest"}, sdk: true,
	},
	{pkg: "internal/proof/oldletters", why: "a dead letter as earlier versions wrote it, for tests of destinations", pure: true},
	{pkg: "internal/proof/fakes3", why: "an S3 in memory, with conditions and faults; sharing code would share misunderstandings"},
	{
		pkg: "store/storetest", why: "the contract of stores as a test suite, which compares with the reference",
		ours: []string{"shard", "lease", "store/memstore", "internal/previous", "internal/filled"},
	},
	{pkg: "internal/filled", why: "values all of whose fields are set, for tests", ours: []string{"shard"}, tests: []string{"lease"}},
	{pkg: "internal/previous", why: "a store as workers of the version before use it", ours: []string{"lease"}, tests: []string{"shard", "store/..."}},
	{
		pkg: "kinesistest/...", why: "the embedded Kinesis; sharing the client's code would share its misunderstandings",
		ours: []string{"kinesistest/..."}, sdk: true,
	},
	{
		pkg: "weirtest", why: "runs consumers in people's tests; it is no part of kinesistest, which must not know weir",
		ours: []string{".", "shard", "lease", "kinesistest"}, tests: []string{"deadletter", "queue", "store/memstore"}, sdk: true,
	},
	{
		pkg: "cmd/weir/...", why: "the command",
		ours:  slices.Concat(commandUses, []string{"cmd/weir/..."}),
		tests: []string{"internal/proof/wronginput", "internal/proof/fakes3", "weirtest"}, sdk: true,
	},
	{
		pkg: "internal/proof/integration/chaos/verdict", why: "judges what handlers wrote while things went wrong; it shares nothing with what it judges",
		pure: true,
	},
	{
		pkg: "internal/proof/integration/chaos/watch", why: "compares metrics with what handlers wrote; it shares nothing with what it judges",
		ours: []string{"internal/proof/integration/chaos/verdict"}, pure: true,
	},
	{pkg: "internal/proof/integration/chaos/cut", why: "a network that fails, for any client and server"},
	{
		pkg: "internal/proof/integration/...", why: "tests against servers that nobody here wrote, and the drivers they need",
		ours: []string{
			".", "shard", "lease", "aggregate", "deadletter/...", "payload/...", "store/...", "sink/...", "kinesistest", "weirtest", "internal/wire",
			"dashboard", "event", "health", "producer", "promweir", "queue", "window", "internal/proof/scenario", "internal/history", "internal/kcl/...", "internal/previous", "internal/filled", "internal/proof/longform", "internal/proof/oldletters", "internal/proof/wronginput", "internal/proof/integration/...",
		}, sdk: true,
	},
	{
		pkg: "docs/moving", why: "the programs of the pages about moving from other clients, as they run", tests: []string{"event", ".", "lease", "kinesistest", "queue", "store/memstore"}, sdk: true,
	},
	{pkg: "scripts/sbom", why: "what a release was built of, in a form that tools read"},
	{pkg: "scripts/runtests", why: "go test over all modules, with a summary that a person can read"},
	{pkg: "scripts/codecount", why: "lines, exported names and statements of each package, now and at an earlier commit"},
	{pkg: "scripts/moduleproxy", why: "what the go command would be given if the tree were released, so that installs are tried before"},
	{
		pkg: "internal/proof/benchserver", why: "a Kinesis that copies prepared answers, for benchmarks; sharing code would share costs",
		tests: []string{"kinesistest", "internal/wire", "internal/wire/codec"}, sdk: true,
	},
	{
		pkg: "internal/proof/sim", why: "whole applications in virtual time, step by step from a seed, with faults",
		ours: []string{"event", "aggregate", "internal/lock", "deadletter", ".", "shard", "lease", "internal/change", "internal/jitter", "internal/keyed", "internal/proof/sim/...", "store/memstore", "internal/previous", "producer", "sink", "window"}, sdk: true,
	},
	{pkg: "internal/proof/sim/model", why: "a Kinesis for the simulation; sharing code would share misunderstandings"},
	{pkg: "internal/proof/sim/judge", why: "says what is wrong with what handlers did; it shares nothing with what it judges"},
	{
		pkg: "internal/proof/queuesim", why: "a queue and its processes in virtual time, from a seed, with faults; the model and the judge share nothing with package queue",
		ours: []string{".", "aggregate", "deadletter", "filter", "internal/jitter", "payload", "queue"}, sdk: true,
	},
	{pkg: "internal/proof/sim/mutants", why: "the command that breaks weir on purpose and sees that the simulation notices"},
	{
		pkg: "internal/proof/scenario", why: "measures coordination from outside, and judges what handlers wrote; it shares nothing with what it judges",
		tests: []string{"event", ".", "shard", "lease", "internal/group", "kinesistest", "store/memstore"}, sdk: true,
	},
	{
		pkg: "examples/...", why: "whole programs",
		ours: []string{".", "shard", "lease", "store/...", "kinesistest"}, sdk: true,
	},
	{
		pkg: "docs/guide", why: "the code that the guide shows, as tests; it has no use but that",
		tests: []string{"event", "health", ".", "dashboard", "shard", "lease", "deadletter", "filter", "payload", "producer", "provision", "queue", "sink/sqlsink", "kinesistest", "weirtest", "window", "store/..."}, sdk: true,
	},
	{pkg: "internal/proof/wronginput", why: "runs the command with wrong inputs and judges what it says; two modules have such inputs"},
	{pkg: "internal/proof/archtest", why: "this table"},
	{pkg: "internal/proof/longform", why: "separates the tests of every change from those of the night; any test may import it"},
	{pkg: "internal/lock", why: "the mutexes of the engine, and the order in which they may be taken"},
	{pkg: "internal/proof/pooled", why: "compares objects that are used again with new ones; any test may import it"},
	{pkg: "internal/proof/leaktest", why: "fails tests that leave goroutines behind; any test may import it"},
})

// nested lists the nested modules. They may require any modules. The root module may require only
// the AWS SDK.
var nested = []string{"cmd/weir", "deadletter/sqsletters", "internal/proof/integration", "otelweir", "payload/s3payload", "payload/zstdpayload", "promweir", "sink/s3sink", "store/redisstore"}

// never lists packages that other packages must not import, whatever the rows say.
var never = []string{"cmd/...", "internal/proof/sim/...", "internal/proof/queuesim"}

// impure lists packages that a pure package must not import.
var impure = []string{
	"crypto/rand", "log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http", "os", "os/exec", "os/signal", "syscall",
}

// clocks lists the functions of package time that read a clock or wait for one. AfterFunc is not
// listed, because it counts as starting a goroutine.
var clocks = []string{
	"After", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until",
}
