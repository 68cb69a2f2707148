package sim

// Fault is a kind of fault, or of another event.
type Fault string

// Faults of calls to the store.
const (
	StoreFails  Fault = "store fails"        // fails with an error, without effect
	StorePanics Fault = "store panics"       // panics, without effect
	AnswerLost  Fault = "store answer lost"  // fails with an error, but takes effect
	StoreSilent Fault = "store silent"       // is not answered, and takes effect late or never
	StoreSlow   Fault = "store slow"         // arrives up to 8 s late; so may the answer
	StoreTwice  Fault = "store call twice"   // takes effect a second time, up to 12 s later
	TornView    Fault = "view torn"          // workers are read later than leases
	TornApply   Fault = "apply in parts"     // other calls happen in between
	ApplyBreaks Fault = "apply breaks off"   // fails after some of the actions
	CrashBefore Fault = "crash before call"  // the worker crashes before the call takes effect
	CrashAfter  Fault = "crash after effect" // the worker crashes after the effect and before the answer
	// CrashWaits is a crash while the worker waits for something other than the store, such as
	// Kinesis, a sink or the destination of dead letters.
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
	// InPages means that each page of a listing shows the stream at its own time.
	InPages Fault = "listing in pages"
)

// Faults of a handler.
const (
	HandlerSlow    Fault = "handler slow" // takes up to 70 s, longer than the handoff timeout
	HandlerFails   Fault = "handler fails"
	HandlerPanics  Fault = "handler panics"
	HandlerIgnores Fault = "handler ignores ctx" // for up to 70 s
	Checkpoints    Fault = "handler checkpoints" // in the middle of a batch; the handler may fail afterwards
	HandlerStops   Fault = "handler stops run"
	CrashInHandler Fault = "crash in handler"
)

// Habits of realistic handlers. See [habit].
const (
	HandlerChanges Fault = "handler changes records" // deletes, sorts or overwrites records, for example
	HandlerKeeps   Fault = "handler keeps records"   // keeps records and checks that they do not change
	// HandlerNotes marks progress by Done, Checkpoint, RecordFunc, a copy of the batch, or
	// goroutines. The handler may fail afterwards.
	HandlerNotes Fault = "handler notes progress"
	// HandlerConfuses marks progress with records of another shard or batch.
	HandlerConfuses Fault = "handler confuses records"
	HandlerLeaves   Fault = "handler leaves goroutine" // the goroutine marks progress later
	HandlerCancels  Fault = "handler returns canceled" // although its context has not ended
	HandlerExits    Fault = "handler ends goroutine"
)

// Faults of Options.OnEvent and of the logger.
const (
	HookBlocks Fault = "hook blocks" // for up to three minutes
	HookPanics Fault = "hook panics"
)

// Faults of a call that queries the position of a sink, or opens a handler.
const (
	SinkFails  Fault = "sink fails"
	SinkHangs  Fault = "sink hangs"
	SinkPanics Fault = "sink panics"
	SinkLies   Fault = "sink lies" // a wrong position that loses no records
	// SinkLost is a COMMIT that takes effect and returns an error.
	SinkLost Fault = "sink's answer lost"
	// SinkLate is a call of a handler that begins late, as in a process that was frozen. It does
	// not notice that its lease is lost.
	SinkLate Fault = "sink's owner late"
)

// Faults of a call that stores dead letters.
const (
	LettersFail  Fault = "letters fail"
	LettersLost  Fault = "letters' answer lost" // fails with an error, although the dead letters are durable
	LettersPanic Fault = "letters panic"
	LettersSlow  Fault = "letters slow" // takes up to 70 s
)

// Faults of a call with the results of windows. They occur in addition to the faults of handlers.
const (
	ResultsLost Fault = "results' answer lost" // fails with an error, although the results are stored
)

// Scheduled events that affect workers and streams.
const (
	Crash        Fault = "crash"
	AllButOne    Fault = "all but one crash" // all workers but one crash at the same moment, including the leader
	ShortPause   Fault = "short pause"       // shorter than the failover time
	LongPause    Fault = "long pause"        // at least nine tenths of the failover time
	Isolated     Fault = "isolated"          // a worker cannot reach the store for a while
	LeaderCutOff Fault = "leader cut off"
	Outage       Fault = "store outage" // no worker can reach the store
	NoService    Fault = "cut off from kinesis"
	// LeaderStuck means that only the heartbeats of a leader succeed, from the last fault to the
	// end.
	LeaderStuck Fault = "leader stuck for good"
	// ReaderStuck means that a worker can reach the store but cannot read, from the last fault to
	// the end.
	ReaderStuck Fault = "reader cut off for good"
	Leaves      Fault = "worker leaves"
	Split       Fault = "split"
	Merge       Fault = "merge"
	Doubles     Fault = "doubling"
	Trim        Fault = "records expire"
	Recreate    Fault = "stream made anew"
	Renames     Fault = "stream named or not" // Options.DiscoverStreams names a stream, or stops naming it
	SetBack     Fault = "sink set back"       // the sink is restored from a backup while no worker runs
	Resets      Fault = "operator's reset"    // an operator resets checkpoints, with or without running workers
)

// Faults of the next event of a subscription.
const (
	EventTwice  Fault = "event twice"
	EventCut    Fault = "event cut" // the connection breaks in the middle of an event
	EventSilent Fault = "events stop"
	EventEnds   Fault = "events end" // the stream ends, as it does after five minutes
	EventError  Fault = "event is an error"
	EventSlow   Fault = "event slow"
	InUse       Fault = "subscription in use"
)

// Faults of a call of Options.DiscoverStreams.
const (
	NamesFail   Fault = "naming fails"
	NamesSilent Fault = "naming silent"
)

// Faults of calls of PutRecords.
const (
	PutThrottled Fault = "put throttled"         // the whole call
	PutRefused   Fault = "put refused in part"   // some records, for a lack of room
	PutUnclear   Fault = "put unclear in part"   // InternalFailure for some records, stored or not
	PutBlank     Fault = "put blank in part"     // some results lack both a code and a place
	PutDenied    Fault = "put denied in part"    // some records, for good
	PutFails     Fault = "put fails"             // with effect or without
	PutShort     Fault = "put answer incomplete" // results are missing
	PutSilent    Fault = "put silent"            // no answer; the effect is late, or never
	PutSlow      Fault = "put slow"
)

// Scheduled events of producers.
const (
	ProducerCrashes Fault = "producer crashes"
	ProducerCloses  Fault = "producer closes" // within a time that may be too short
	ProducerCutOff  Fault = "producer cut off from kinesis"
)
