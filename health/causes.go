package health

import (
	"fmt"
	"strconv"
)

// These are the thresholds of the causes.
const (
	// busyLeast is the percentage of the time from which a handler counts as busy. Below it, the
	// handler waits for records at least a fifth of the time, so it is not what limits the shard.
	busyLeast = 80
	// hotBusy is the percentage of the time from which a handler is busy enough to explain a shard
	// that alone is behind. It is higher than busyLeast, because the only evidence is one shard.
	hotBusy = 90
	// throttledLeast is the percentage of the time from which throttling slows a shard down
	// noticeably. Short waits are normal when several applications read a stream.
	throttledLeast = 20
	// hotLoad is the load from which a shard is near its limit of 1 MiB of writes a second. Older
	// workers report loads in steps of a factor of 1.4, so their full shards may report 0.8 MiB.
	hotLoad = 0.8 * (1 << 20)
	// A hot shard has more than hotTimes times the median load of the other shards. A smaller
	// difference is normal for keys that are spread by their hashes.
	hotTimes = 4
	// failingLeast is the percentage of the samples with failures of the handler, or of reading,
	// from which these are a cause. A single failure that a retry fixes is not a cause.
	failingLeast = 50
)

// causeRow is a row of the table of causes.
type causeRow struct {
	label string // in JSON
	words string // for people
	when  string // the condition for people; a test compares it with docs/guide/health.md
	// explains reports whether the cause explains the state of an affected shard.
	explains func(*conclusion, *ShardFacts) bool
	// evidence returns a sentence, without a full stop, about the explained shards, the worst
	// first.
	evidence func(*conclusion, []*ShardFacts) string
	steps    func(*conclusion, []*ShardFacts) []Step
}

// causeRows is the table of causes. Its order is that of [Cause].
var causeRows = [...]causeRow{
	NoCause: {},
	CauseStoreSilent: {
		"store_silent", "the store does not answer",
		"the store does not answer",
		func(c *conclusion, _ *ShardFacts) bool { return !c.StoreSilent.IsZero() },
		func(c *conclusion, _ []*ShardFacts) string {
			return "No read of the store has succeeded since " + clock(c.StoreSilent)
		},
		func(c *conclusion, _ []*ShardFacts) []Step {
			return []Step{{"Check the store and the network; this command shows the error",
				"weir group list"}}
		},
	},
	CauseNoWorker: {
		"no_worker", "no worker is alive",
		"an unread shard has no owner, and no worker sends heartbeats",
		reasonIs(NoWorker),
		func(c *conclusion, _ []*ShardFacts) string {
			return c.withDeaths("No worker sends heartbeats")
		},
		func(c *conclusion, _ []*ShardFacts) []Step {
			return []Step{
				{"Start a worker of the application", ""},
				{"Find out how the last worker ended", c.weir("doctor")},
			}
		},
	},
	CauseWorkerSilent: {
		"worker_silent", "the owner of the shard sends no heartbeats",
		"the owner of an unread shard sends no heartbeats, and other workers are alive",
		reasonIs(OwnerSilent),
		func(c *conclusion, _ []*ShardFacts) string {
			return c.withDeaths("The owner sends no heartbeats, and " + plural(c.Workers,
				"other worker is", "other workers are") + " alive")
		},
		func(c *conclusion, _ []*ShardFacts) []Step {
			return []Step{
				{"Wait for the failover time; if the shard is still unread, see what the leader " +
					"plans", c.weir("group plan")},
				{"Check whether the worker runs and reaches the store", c.weir("doctor")},
			}
		},
	},
	CauseNoReader: {
		"no_reader", "no live worker reads the stream",
		"workers are alive, and none of them reads the stream of an unread shard",
		reasonIs(NoReader),
		func(c *conclusion, all []*ShardFacts) string {
			return plural(c.Workers, "worker is", "workers are") + " alive, without " +
				all[0].Stream + " in Options.Streams"
		},
		func(c *conclusion, all []*ShardFacts) []Step {
			return []Step{
				{"Add the stream to Options.Streams of the workers (weir consume --stream=" +
					quote(all[0].Stream) + ")", ""},
				{"See which streams the workers read", c.weir("group describe")},
			}
		},
	},
	CauseNoRoom: {
		"no_room", "too few workers",
		"an unread shard has no owner, and all workers are at their limit of leases",
		reasonIs(NoRoom),
		func(c *conclusion, _ []*ShardFacts) string {
			return c.withDeaths(fmt.Sprintf("%s %s, and Options.MaxLeases allows %d",
				plural(c.Workers, "worker holds", "workers hold"),
				plural(c.Leases, "shard", "shards"), c.MaxLeases))
		},
		func(c *conclusion, _ []*ShardFacts) []Step {
			return []Step{
				{"Start more workers", ""},
				{"Or raise Options.MaxLeases (weir consume --max-leases=0 removes the limit)", ""},
				{"If a worker died, find out why", c.weir("doctor")},
			}
		},
	},
	CauseUnassigned: {
		"unassigned", "the shard is not assigned",
		"an unread shard has no owner, and workers are alive and have room",
		reasonIs(Unassigned),
		func(c *conclusion, _ []*ShardFacts) string {
			leads := "none of them leads"
			if c.Led {
				leads = "one of them leads"
			}
			return c.withDeaths(plural(c.Workers, "worker is", "workers are") + " alive, and " + leads)
		},
		func(c *conclusion, _ []*ShardFacts) []Step {
			return []Step{
				{"See what a leader would assign, and why", c.weir("group plan")},
				{"Look for a reason in the store", c.weir("doctor")},
			}
		},
	},
	CauseDenied:      deniedRow,
	CauseCredentials: credentialsRow,
	CauseStreamGone:  streamGoneRow,
	CausePosition:    positionRow,
	CauseCutOff: {
		"cut_off", "a worker is cut off",
		"the owner reports that it can read none of its shards",
		func(_ *conclusion, s *ShardFacts) bool { return s.CutOff || s.Doing == CutOff },
		func(c *conclusion, all []*ShardFacts) string {
			return "The owner of " + all[0].Name + " can read none of its shards" +
				sinceText(all[0]) + c.lastError(all[0])
		},
		func(c *conclusion, _ []*ShardFacts) []Step {
			return []Step{
				{"Check the network between the workers and Kinesis", ""},
				{"See whether Kinesis answers this machine", c.weir("doctor")},
			}
		},
	},
	CauseReadFails: {
		"read_fails", "reading fails",
		"none of the causes above explains why reading fails, and the owner reports that it fails now, " +
			"or it failed in at least two samples and in at least half of them",
		func(c *conclusion, s *ShardFacts) bool {
			return s.fault == noFault && (s.Doing.Activity() == Reading || s.Doing == ReadFailed ||
				s.Doing == NotStarted || s.Recent.often(s.Recent.Unread))
		},
		func(c *conclusion, all []*ShardFacts) string {
			s := all[0]
			if s.Doing == NoReason {
				return fmt.Sprintf("Reading %s failed in %d of the last %d min", s.Name,
					s.Recent.Unread, s.Recent.Minutes) + c.lastError(s)
			}
			return "The owner of " + s.Name + " gets no records" + sinceText(s) + c.lastError(s)
		},
		func(c *conclusion, _ []*ShardFacts) []Step {
			return []Step{
				{"Check the network between the worker and Kinesis", ""},
				{"See whether Kinesis answers this machine", c.weir("doctor")},
			}
		},
	},
	CauseSuspected: {
		"suspected", "a record may kill its workers",
		"workers that had the shard died one after the other",
		doingIs(Suspected),
		func(_ *conclusion, all []*ShardFacts) string {
			return "Workers died one after the other while they had " + all[0].Name
		},
		func(c *conclusion, _ []*ShardFacts) []Step {
			return []Step{
				{"See how many workers died, and at which record", c.weir("group describe")},
				{"Fix the handler, or dead-letter the record with Options.OnFailure.MaxAttempts " +
					"(weir consume --max-attempts=5)", ""},
			}
		},
	},
	CauseRecordsFail: {
		"records_fail", "records fail",
		"the owner reports that the handler fails now, or the handler failed in at least two samples " +
			"and in at least half of them",
		func(_ *conclusion, s *ShardFacts) bool {
			if doing(s, DeadLettersFailed, StoringDeadLetters) {
				return false // the records have failed, and only their dead letters hold the shard
			}
			return doing(s, HandlerFailed, NoOtherHandled, RateLimited) ||
				s.Doing != NoReason && s.Attempts > 0 && !s.Doing.readsOrRetries() ||
				s.Recent.often(s.Recent.Failing)
		},
		func(c *conclusion, all []*ShardFacts) string {
			s := all[0]
			if s.Attempts > 0 {
				return "The handler of " + s.Name + " has failed " + plural(s.Attempts, "time",
					"times") + " in a row" + c.lastError(s)
			}
			if s.Doing != NoReason {
				return "The handler of " + s.Name + " fails" + sinceText(s) + c.lastError(s)
			}
			return fmt.Sprintf("The handler of %s failed in %d of the last %d min", s.Name,
				s.Recent.Failing, s.Recent.Minutes) + c.lastError(s)
		},
		func(c *conclusion, _ []*ShardFacts) []Step {
			steps := []Step{
				{"See the failing record and its error", c.weir("doctor")},
				{"Fix the handler, or dead-letter such records with " +
					"Options.OnFailure.MaxAttempts " +
					"(weir consume --max-attempts=5)", ""},
			}
			if c.DeadLettered > 0 {
				steps = append(steps, Step{"Look at the dead letters", c.weir("dead list")})
			}
			return steps
		},
	},
	CauseDeadLetters: {
		"dead_letters_fail", "dead letters cannot be stored",
		"the owner reports that dead letters cannot be stored",
		doingIs(DeadLettersFailed, StoringDeadLetters),
		func(c *conclusion, all []*ShardFacts) string {
			return all[0].Name + " waits until its dead letters are stored" +
				sinceText(all[0]) + c.lastError(all[0])
		},
		func(c *conclusion, _ []*ShardFacts) []Step {
			return []Step{{"Repair the destination of dead letters " +
				"(Options.OnFailure.Destination), and test it", c.weir("dead list")}}
		},
	},
	CauseMemory: {
		"memory", "shards wait for memory",
		"the owner reports that the shard waits for memory",
		doingIs(AwaitingMemory),
		func(c *conclusion, all []*ShardFacts) string {
			first := all[0] // its memory was full first
			for _, s := range all[1:] {
				if s.DoingSince.Before(first.DoingSince) {
					first = s
				}
			}
			return "Records that wait to be handled fill Options.MaxMemory of " + first.holder() +
				sinceText(first) + c.busyHandlers()
		},
		func(*conclusion, []*ShardFacts) []Step {
			return []Step{
				{"Make the handler faster: records stay in memory until they are handled", ""},
				{"Raise Options.MaxMemory (weir consume --max-memory=1GiB)", ""},
				{"Or start more workers, so that each has fewer shards", ""},
			}
		},
	},
	CauseHandlerHangs: {
		"handler_hangs", "the handler does not return",
		fmt.Sprintf("the shard has stalled, and its owner reports that one call of the handler is still "+
			"running; or no record is handled although the handler was busy at least %d %% of the time",
			busyLeast),
		func(_ *conclusion, s *ShardFacts) bool {
			return s.State >= Stalled && doing(s, InHandler, OpeningHandler, ClosingHandler,
				Abandoned) || s.hangs()
		},
		func(_ *conclusion, all []*ShardFacts) string {
			return "A call of the handler of " + all[0].Name + " has not returned" +
				sinceText(all[0])
		},
		func(*conclusion, []*ShardFacts) []Step {
			return []Step{
				{"Find out what the handler waits for, such as a database", ""},
				{"Limit its calls with Options.Timing.HandlerTimeout " +
					"(weir consume --handler-timeout=1m)", ""},
			}
		},
	},
	CauseReset: {
		"reset", "the shard was reset",
		"the checkpoint was moved back, and has not reached its earlier place again",
		reasonIs(SetBack),
		func(_ *conclusion, all []*ShardFacts) string {
			return "The checkpoint of " + all[0].Name + " was moved back to an earlier place"
		},
		func(c *conclusion, _ []*ShardFacts) []Step {
			return []Step{{"Wait until the records are handled again, and watch the lag",
				c.weir("group lag")}}
		},
	},
	CauseThrottled: {
		"throttled", "Kinesis throttles the reads",
		fmt.Sprintf("reading waited for throttling at least %d %% of the last %d min, or the owner "+
			"reports that each read is throttled", throttledLeast, RecentMinutes),
		func(_ *conclusion, s *ShardFacts) bool {
			return s.Recent.Minutes > 0 && s.Recent.Throttled >= throttledLeast ||
				s.Doing.readsOrRetries() && s.fault == faultThrottled
		},
		func(c *conclusion, all []*ShardFacts) string {
			if all[0].Recent.Throttled < throttledLeast {
				return "Kinesis throttles each read of the owner of " + all[0].Name +
					sinceText(all[0]) + c.lastError(all[0])
			}
			text := fmt.Sprintf("Reading waited because of throttling for %s of the last %d min",
				percents(all, func(r Recent) int { return r.Throttled }), all[0].Recent.Minutes)
			if all[0].fault == faultThrottled {
				text += c.lastError(all[0])
			}
			return text
		},
		func(*conclusion, []*ShardFacts) []Step {
			return []Step{
				{"Read by enhanced fan-out with Options.FanOut " +
					"(weir consume --fan-out=register), which has its own throughput", ""},
				{"Or find the other readers of the stream: all of them share 2 MiB " +
					"and five reads a second of a shard", ""},
			}
		},
	},
	CauseHotShard: {
		"hot_shard", "one shard is hot",
		fmt.Sprintf("a shard handles more than %d times as many bytes a second as the median of the "+
			"others, and falls behind or handles at least 0.8 MiB a second; or it is the only shard "+
			"that falls behind, and its handler was busy at least %d %% of the time", hotTimes, hotBusy),
		func(c *conclusion, s *ShardFacts) bool { _, hot := c.hot[s]; return hot },
		func(c *conclusion, all []*ShardFacts) string {
			s := all[0]
			if median := c.hot[s]; median >= 0 && s.Load > 0 && median < s.Load/hotTimes {
				return fmt.Sprintf("%s handles %s a second, and the median of the "+
					"other %d shards is %s", s.Name, size(s.Load), len(c.open)-1, size(median))
			}
			return fmt.Sprintf("Of %d shards only %s is behind, and its handler was busy %d %% "+
				"of the last %d min", len(c.open), s.Name, s.Recent.Busy, s.Recent.Minutes)
		},
		func(*conclusion, []*ShardFacts) []Step {
			return []Step{
				{"Handle its partition keys in parallel with Options.Concurrency.Keys " +
					"(weir consume --parallel=16)", ""},
				{"Spread the load over more partition keys, or split the shard with " +
					"aws kinesis split-shard", ""},
			}
		},
	},
	CauseHandlerBusy: {
		"handler_busy", "the handler is busy",
		fmt.Sprintf("the handler was busy at least %d %% of the last %d min", busyLeast,
			RecentMinutes),
		func(_ *conclusion, s *ShardFacts) bool {
			return s.Recent.Minutes > 0 && s.Recent.Busy >= busyLeast && !s.hangs()
		},
		func(_ *conclusion, all []*ShardFacts) string {
			return fmt.Sprintf("The handler was busy %s of the last %d min", percents(all,
				func(r Recent) int { return r.Busy }), all[0].Recent.Minutes)
		},
		func(c *conclusion, _ []*ShardFacts) []Step {
			steps := []Step{{"Handle the partition keys of each shard in parallel with " +
				"Options.Concurrency.Keys (weir consume --parallel=16)", ""}}
			if c.Workers > 0 && c.Workers < len(c.open) {
				steps = append(steps, Step{
					fmt.Sprintf("Start more workers: %s alive, for %d shards",
						plural(c.Workers, "worker is", "workers are"), len(c.open)), "",
				})
			}
			return append(steps, Step{"Make the handler faster", ""})
		},
	},
	CauseExpired: {
		"expired", "records left the stream",
		"records after the checkpoint have expired",
		reasonIs(RecordsExpired),
		func(_ *conclusion, all []*ShardFacts) string {
			return "Records after the checkpoint of " + all[0].Name +
				" left the stream before they were handled"
		},
		func(c *conclusion, all []*ShardFacts) []Step {
			return []Step{{"If the shard is stuck, continue at its oldest record",
				c.weir("group reset") + " --stream " + quote(all[0].Stream) + " --shard " +
					quote(all[0].Name) + " --to oldest"}}
		},
	},
	CausePaused: {
		"paused", "an operator paused it",
		"the application or the stream is paused",
		reasonIs(Paused),
		func(c *conclusion, all []*ShardFacts) string {
			if c.PausedApp {
				return "Workers do not read while the application is paused" + c.pausedBy("")
			}
			return "Workers do not read the stream " + strconv.Quote(all[0].Stream) +
				" while it is paused" + c.pausedBy(all[0].Stream)
		},
		func(c *conclusion, all []*ShardFacts) []Step {
			return c.resume(all)
		},
	},
	CauseParents: {
		"parents", "the shards wait for their parents",
		"the parents of the shard are not finished",
		reasonIs(WaitsForParents),
		func(*conclusion, []*ShardFacts) string {
			return "Shards are read after all records of their parents, to keep the order of " +
				"records"
		},
		func(c *conclusion, _ []*ShardFacts) []Step {
			return []Step{{"Wait until the parents are finished, and watch their lag",
				c.weir("group lag")}}
		},
	},
	CauseLagUnknown: {
		"lag_unknown", "the lag cannot be read",
		"this observer knows no lag of the shard",
		reasonIs(LagUnknown),
		func(c *conclusion, _ []*ShardFacts) string {
			if c.NoLag != "" && !c.HideErrors {
				return "The lag could not be read from Kinesis: " + clean(c.NoLag)
			}
			return "The lag was not read from Kinesis"
		},
		func(c *conclusion, _ []*ShardFacts) []Step {
			return []Step{{"Check the endpoint, the region and the permissions of this observer",
				c.weir("doctor")}}
		},
	},
}
