package health

// reasonRow is a row of the table of reasons.
type reasonRow struct {
	label    string // in JSON
	words    string // for people
	report   string // in the heartbeats of workers, which other versions read; "" if never reported
	activity Activity
	trouble  bool   // it keeps records from being handled, and no operator chose it
	remedy   string // what an operator can do if it lasts
}

const (
	readRemedy = "check the network, the credentials and the permissions of the worker"
	slowRemedy = "find out what the handler waits for; Options.Timing.HandlerTimeout bounds a call"
)

// reasons is the table of reasons. A test compares it with docs/guide/health.md.
var reasons = [...]reasonRow{
	NoReason:    {},
	OtherReason: {"other", "another reason", "", NoActivity, true, "look at the log of the worker"},

	NotStarted: {"not_started", "starting", "starting", Starting, true, readRemedy},
	OpeningHandler: {"opening_handler", "opening its handler", "opening its handler", Starting, true,
		"find out what ShardHandlers waits for, such as the database of a sink"},

	AtTip:       {"at_tip", "at the tip", "at the tip", Reading, false, ""},
	Pacing:      {"pacing", "pacing", "pacing", Reading, false, ""},
	Positioning: {"positioning", "positioning", "positioning", Reading, true, readRemedy},
	Requesting:  {"requesting", "reading", "reading", Reading, true, readRemedy},
	Subscribing: {"subscribing", "subscribing", "subscribing", Reading, true, readRemedy},
	Subscribed:  {"subscribed", "subscribed", "subscribed", Reading, false, ""},

	InHandler: {"in_handler", "in the handler", "in the handler", Handling, true, slowRemedy},
	StoringDeadLetters: {"storing_dead_letters", "storing dead letters", "giving records up",
		Handling, true, "check the destination of dead letters"},

	ReadFailed: {"read_failed", "backing off", "backing off", Retrying, true, readRemedy},
	HandlerFailed: {"handler_failed", "waiting to handle again", "waiting to handle again", Retrying,
		true, "fix the handler, or set when records are dead-lettered (Options.OnFailure)"},
	DeadLettersFailed: {"dead_letters_failed", "dead letters cannot be stored", "letters cannot be put",
		Retrying, true, "repair the destination of dead letters (Options.OnFailure.Destination)"},
	NoOtherHandled: {"no_other_handled",
		"the worker has handled no other record since the record first failed", "patience", Retrying,
		true, "check what the handler depends on, such as a database"},
	RateLimited: {"rate_limited", "the limit of dead letters per minute is reached", "rate", Retrying, true,
		"fix the records or the handler, or raise Options.OnFailure.MaxPerMinute"},
	CutOff: {"cut_off", "cut off", "cut off", Retrying, true, readRemedy},

	AwaitingHandler: {"awaiting_handler", "waiting for the handler", "waiting for the handler", Waiting,
		true, slowRemedy},
	AwaitingMemory: {"awaiting_memory", "waiting for memory", "waiting for memory", Waiting, true,
		"raise Options.MaxMemory, or find the handler that keeps its records"},
	AwaitingBatch: {"awaiting_batch", "waiting for a full batch", "waiting for a full batch", Waiting,
		false, ""},
	Suspected: {"suspected", "suspected of killing workers", "suspected of killing workers", Waiting,
		true, "find out why workers died at the record that the log names"},
	AfterStall: {"after_stall", "waiting after a stall", "waiting after a stall", Waiting, true,
		"look in the log for the reason of the stall"},

	ClosingHandler: {"closing_handler", "closing its handler", "closing its handler", Stopping, true,
		"find out what ShardHandler.Close waits for"},
	Ended: {"ended", "read to its end", "read to its end", Stopping, false, ""},
	Abandoned: {"abandoned", "abandoned", "abandoned", Stopping, true,
		"make the handler return when its context ends; only a restart of the process ends a handler that is abandoned now"},

	WaitsForParents: {"waits_for_parents", "waits for its parents", "", NoActivity, false, ""},
	Paused: {"paused", "paused", "", NoActivity, false,
		"resume it when the work on it is done (weir group resume)"},
	NoRoom: {"no_room", "no worker has room", "", NoActivity, true,
		"start more workers, or raise Options.MaxLeases"},
	NoWorker: {"no_worker", "no worker lives", "", NoActivity, true,
		"start a worker, and find out why the last one ended"},
	Unassigned: {"unassigned", "not assigned yet", "", NoActivity, true,
		"look with weir doctor whether a worker leads"},
	OwnerSilent: {"owner_silent", "its worker sends no heartbeats", "", NoActivity, true,
		"check whether the worker runs and reaches the store"},
	NoReader: {"no_reader", "no live worker reads its stream", "", NoActivity, true,
		"add the stream to Options.Streams of a worker"},

	CheckpointHeld: {"checkpoint_held", "its checkpoint is held", "held on purpose", NoActivity, false,
		""},
	DeadLettered: {"dead_lettered", "records were dead-lettered", "gave records up", NoActivity, false,
		"look at the dead letters (weir dead list)"},
	NeverObserved: {"never_observed", "never observed", "", NoActivity, false, ""},
	StoreSilent: {"store_silent", "the store does not answer", "", NoActivity, true,
		"check the store and the network"},
	LagUnknown: {"lag_unknown", "its lag is unknown", "", NoActivity, false,
		"check whether the observer may read the stream"},
	RecordsExpired: {"records_expired", "records expired before they were handled", "", NoActivity,
		true, "find out why the shard was not read in time, and lengthen the retention"},
	RecordsExpire: {"records_expire", "records expire", "", NoActivity, true,
		"lengthen the retention of the stream at once, then remove the cause of the lag"},
	SetBack: {"set_back", "it was reset to an earlier position", "", NoActivity, false, ""},
	NoProgress: {"no_progress", "no record is handled", "", NoActivity, true,
		"look at the log of the worker"},
	BehindBriefly: {"behind_briefly", "since a moment ago", "", NoActivity, false, ""},
	WatchedBriefly: {"watched_briefly", "watched too briefly to say whether it catches up", "",
		NoActivity, false, "watch for longer"},
	LagSteady: {"lag_steady", "its lag neither grows nor falls", "", NoActivity, false,
		"make the handler faster, or add workers, so that the shard catches up"},
	LagFalls: {"lag_falls", "its lag falls", "", NoActivity, false, ""},
	LagGrows: {"lag_grows", "its lag grew", "", NoActivity, true,
		"make the handler faster, handle keys concurrently, or split the shard"},
}
