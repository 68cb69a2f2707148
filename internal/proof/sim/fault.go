package sim

// Fault is a kind of fault, or another event.
type Fault string

// Faults of calls to the store.
const (
	StoreFails  Fault = "store fails"        // with an error and without effect
	StorePanics Fault = "store panics"       // without effect
	AnswerLost  Fault = "store answer lost"  // with an error, but with effect
	StoreSilent Fault = "store silent"       // no answer; the effect is late, or never
	StoreSlow   Fault = "store slow"         // up to 8 s
	StoreTwice  Fault = "store call twice"   // the second one up to 12 s late
	TornView    Fault = "view torn"          // workers are read later than leases
	TornApply   Fault = "apply in parts"     // other calls come in between
	ApplyBreaks Fault = "apply breaks off"   // after some actions, with an error
	CrashBefore Fault = "crash before call"  // of the worker, before the call takes effect
	CrashAfter  Fault = "crash after effect" // after the effect and before the answer
	// for Kinesis, an event, Options.StreamsFunc or a checkpoint in the middle of a batch
	CrashWaits Fault = "crash while waiting"
)

// Faults of calls to Kinesis.
const (
	Throttled    Fault = "throttled"
	ServerError  Fault = "server error"
	BrokenBody   Fault = "broken body"
	Expired      Fault = "iterator expired"
	ServiceSlow  Fault = "kinesis slow"
	Silent       Fault = "kinesis silent"
	EmptyPage    Fault = "empty page"
	ShortPage    Fault = "short page"
	NoChildren   Fault = "end without children"
	AtForAfter   Fault = "at instead of after"
	BrokenAnswer Fault = "garbled answer"
	Garbled      Fault = "other answer garbled"
	// each page has the state of the stream at its own time
	InPages Fault = "listing in pages"
)

// Faults of a handler.
const (
	HandlerSlow    Fault = "handler slow" // up to 70 s, longer than the handoff timeout
	HandlerFails   Fault = "handler fails"
	HandlerPanics  Fault = "handler panics"
	HandlerIgnores Fault = "handler ignores ctx" // for up to 70 s
	Checkpoints    Fault = "handler checkpoints" // in the middle of a batch, and may then fail
	HandlerStops   Fault = "handler stops run"
	CrashInHandler Fault = "crash in handler"
)

// Habits of realistic handlers; see [habit].
const (
	HandlerChanges Fault = "handler changes records" // deletes, sorts, overwrites, …
	HandlerKeeps   Fault = "handler keeps records"   // and checks that they do not change
	// by Done, Checkpoint, RecordFunc, a copy of the batch, goroutines; and may then fail
	HandlerNotes Fault = "handler notes progress"
	// marks progress with those of another shard or batch
	HandlerConfuses Fault = "handler confuses records"
	HandlerLeaves   Fault = "handler leaves goroutine" // which marks progress later
	HandlerCancels  Fault = "handler returns canceled" // although its context has not ended
	HandlerExits    Fault = "handler ends goroutine"
)

// Faults of functions of Options.Events and the logger.
const (
	HookBlocks Fault = "hook blocks" // for up to three minutes
	HookPanics Fault = "hook panics"
)

// Faults of a call that asks a sink for its position, or for a handler.
const (
	SinkFails  Fault = "sink fails"
	SinkHangs  Fault = "sink hangs"
	SinkPanics Fault = "sink panics"
	SinkLies   Fault = "sink lies" // without loss of records
)

// Faults of a call that stores dead letters.
const (
	LettersFail  Fault = "letters fail"
	LettersLost  Fault = "letters' answer lost" // with an error, although they are durable
	LettersPanic Fault = "letters panic"
	LettersSlow  Fault = "letters slow" // up to 70 s
)

// Faults of a call with the results of windows, in addition to those of handlers.
const (
	ResultsLost Fault = "results' answer lost" // with an error, although they are stored
)

// Scheduled events of workers and streams.
const (
	Crash        Fault = "crash"
	AllButOne    Fault = "all but one crash" // at one moment, including the leader
	ShortPause   Fault = "short pause"       // shorter than the failover time
	LongPause    Fault = "long pause"        // longer
	Isolated     Fault = "isolated"          // a worker cannot reach the store for a while
	LeaderCutOff Fault = "leader cut off"
	Outage       Fault = "store outage" // for all workers
	NoService    Fault = "cut off from kinesis"
	// only its heartbeats succeed, from the last fault on
	LeaderStuck Fault = "leader stuck for good"
	// it coordinates but cannot read, from the last fault on
	ReaderStuck Fault = "reader cut off for good"
	Leaves      Fault = "worker leaves"
	Split       Fault = "split"
	Merge       Fault = "merge"
	Doubles     Fault = "doubling"
	Trim        Fault = "records expire"
	Recreate    Fault = "stream made anew"
	Renames     Fault = "stream named or not" // by Options.StreamsFunc
	SetBack     Fault = "sink set back"       // to a backup, while no worker runs
	Resets      Fault = "operator's reset"    // of checkpoints, while workers run or not
)

// Faults of a subscription's next event.
const (
	EventTwice  Fault = "event twice"
	EventCut    Fault = "event cut" // the connection breaks in the middle of it
	EventSilent Fault = "events stop"
	EventEnds   Fault = "events end" // as they do after five minutes
	EventError  Fault = "event is an error"
	EventSlow   Fault = "event slow"
	InUse       Fault = "subscription in use"
)

// Faults of a call of Options.StreamsFunc.
const (
	NamesFail   Fault = "naming fails"
	NamesSilent Fault = "naming silent"
)
