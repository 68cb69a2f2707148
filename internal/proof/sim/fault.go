package sim

// Fault is a kind of thing that goes wrong, or that happens besides.
type Fault string

// What may become of a call to the store.
const (
	StoreFails  Fault = "store fails"        // with an error, and nothing happened
	StorePanics Fault = "store panics"       // and nothing happened
	AnswerLost  Fault = "store answer lost"  // with an error, though it happened
	StoreSilent Fault = "store silent"       // no answer; it happens late, or never
	StoreSlow   Fault = "store slow"         // up to 8 s
	StoreTwice  Fault = "store call twice"   // the second time up to 12 s late
	TornView    Fault = "view torn"          // workers are read later than leases
	TornApply   Fault = "apply in parts"     // others come in between
	ApplyBreaks Fault = "apply breaks off"   // after some actions, with an error
	CrashBefore Fault = "crash before call"  // of the worker, before the call has an effect
	CrashAfter  Fault = "crash after effect" // … before the answer
	// for Kinesis, an event, Options.StreamsFunc or a checkpoint in the middle of a batch
	CrashWaits Fault = "crash while waiting"
)

// What may become of a call to Kinesis.
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
	// each of which tells of the stream as it is when that is asked for
	InPages Fault = "listing in pages"
)

// What a handler may do.
const (
	HandlerSlow    Fault = "handler slow" // up to 70 s, longer than the hand-off timeout
	HandlerFails   Fault = "handler fails"
	HandlerPanics  Fault = "handler panics"
	HandlerIgnores Fault = "handler ignores ctx" // for up to 70 s
	Checkpoints    Fault = "handler checkpoints" // in the middle of a batch, and may then fail
	HandlerStops   Fault = "handler stops run"
	CrashInHandler Fault = "crash in handler"
)

// What handlers do as people write them; see [habit].
const (
	HandlerChanges Fault = "handler changes records" // deletes, sorts, overwrites, …
	HandlerKeeps   Fault = "handler keeps records"   // and looks whether they stay what they were
	// by Done, Checkpoint, RecordFunc, a copy of the batch, goroutines; and may then fail
	HandlerNotes Fault = "handler notes progress"
	// notes progress with those of another shard or batch
	HandlerConfuses Fault = "handler confuses records"
	HandlerLeaves   Fault = "handler leaves goroutine" // which notes progress later
	HandlerCancels  Fault = "handler returns canceled" // though its context goes on
	HandlerExits    Fault = "handler ends goroutine"
)

// What functions of Options.Events and the logger may do.
const (
	HookBlocks Fault = "hook blocks" // for up to three minutes
	HookPanics Fault = "hook panics"
)

// What becomes of a call that asks a sink for its position, or for a handler.
const (
	SinkFails  Fault = "sink fails"
	SinkHangs  Fault = "sink hangs"
	SinkPanics Fault = "sink panics"
	SinkLies   Fault = "sink lies" // in ways that lose nothing
)

// What becomes of a call that puts letters of records that are given up.
const (
	LettersFail  Fault = "letters fail"
	LettersLost  Fault = "letters' answer lost" // with an error, though they are durable
	LettersPanic Fault = "letters panic"
	LettersSlow  Fault = "letters slow" // up to 70 s
)

// What becomes of a call with the results of windows, beside what becomes of handlers.
const (
	ResultsLost Fault = "results' answer lost" // with an error, though they are kept
)

// What happens to workers and streams at times of its own.
const (
	Crash        Fault = "crash"
	AllButOne    Fault = "all but one crash" // at one moment, the leader among them
	ShortPause   Fault = "short pause"       // shorter than the failover time
	LongPause    Fault = "long pause"        // longer
	Isolated     Fault = "isolated"          // a worker reaches the store no more, for a while
	LeaderCutOff Fault = "leader cut off"
	Outage       Fault = "store outage" // for everybody
	NoService    Fault = "cut off from kinesis"
	// it beats but cannot look; from the last fault on
	LeaderStuck Fault = "leader stuck for good"
	// it coordinates but cannot read; from the last fault on
	ReaderStuck Fault = "reader cut off for good"
	Leaves      Fault = "worker leaves"
	Split       Fault = "split"
	Merge       Fault = "merge"
	Doubles     Fault = "doubling"
	Trim        Fault = "records expire"
	Recreate    Fault = "stream made anew"
	Renames     Fault = "stream named or not" // by Options.StreamsFunc
	SetBack     Fault = "sink set back"       // to a backup, while nobody works
	Resets      Fault = "operator's reset"    // of checkpoints, while workers run or not
)

// What may become of a subscription's next event.
const (
	EventTwice  Fault = "event twice"
	EventCut    Fault = "event cut" // the connection breaks in the middle of it
	EventSilent Fault = "events stop"
	EventEnds   Fault = "events end" // as they do after five minutes
	EventError  Fault = "event is an error"
	EventSlow   Fault = "event slow"
	InUse       Fault = "subscription in use"
)

// What may become of a call of Options.StreamsFunc.
const (
	NamesFail   Fault = "naming fails"
	NamesSilent Fault = "naming silent"
)
