package sim

import (
	"slices"
	"time"

	"github.com/weir-go/weir"
)

// Profile describes the faults of a simulation and their rates. The rate of a fault of calls is a
// fraction of the calls. The rate of a scheduled event is a number per hour. The rate of a
// permanent fault is a fraction of the simulations.
type Profile struct {
	Name    string
	Workers [2]int
	Shards  [2]int
	Lasts   [2]time.Duration // duration of the part with faults
	Rates   map[Fault]float64
	Repeats bool // records may be handled again
	Large   bool // records have 160 KiB, so that answers are split
	// Huge is, with Large, the fraction of records that are larger than any shard's share of the
	// memory.
	Huge  float64
	Start weir.Position
	// Since makes Options.Start a time in the first half minute of the stream. The workers start
	// after that time.
	Since  bool
	Pushed float64 // fraction of the simulations that read by fan-out
	Reuses float64 // fraction of the simulations that use Options.ReuseBuffers
	Older  float64 // fraction of the starts that use the previous version
	Sinks  bool    // handlers write to a sink that decides where reading starts
	// Letters means that handlers always fail at some records, and that Options.OnFailure
	// decides about these records.
	Letters bool
	Killers bool // handlers also end the process at some records
	// Parallel means that the keys of a shard are handled in parallel.
	Parallel bool
	Filters  bool // Options.Filter drops records
	// Chosen means that Options.Shards names some of the first shards. With two applications, the
	// second one names the others.
	Chosen  bool
	Windows bool // handlers are those of package window; with some seeds, Options.Filter drops records
	// Crosses means that the seed chooses the features from the covering list. See [covering].
	Crosses bool
	Apps    int // number of applications, one if 0
	// Streams contains the smallest and the largest number of streams. Options.Streams names the
	// first stream, and Options.DiscoverStreams names the others.
	Streams   [2]int
	Apart     bool // some workers read only some of them
	Producers int  // records are put by up to this many producers; by none if 0
	Records   time.Duration
	Idle      [2]time.Duration
}

var storeFaults = map[Fault]float64{
	StoreFails: .01, StorePanics: .003, AnswerLost: .01, StoreSilent: .003, StoreSlow: .01, StoreTwice: .01, TornView: .05, TornApply: .05, ApplyBreaks: .03,
}

var serviceFaults = map[Fault]float64{
	Throttled: .02, ServerError: .01, BrokenBody: .02, Expired: .01, ServiceSlow: .01, Silent: .003, EmptyPage: .02, ShortPage: .05,
	NoChildren: .2, AtForAfter: .1, BrokenAnswer: .005,
}

var handlerFaults = map[Fault]float64{
	HandlerSlow: .01, HandlerFails: .02, HandlerPanics: .005, HandlerIgnores: .005, Checkpoints: .03,
}

var habitFaults = map[Fault]float64{
	HandlerChanges: .3, HandlerKeeps: .1, HandlerNotes: .3, HandlerConfuses: .05, HandlerLeaves: .05, HandlerCancels: .02, HandlerExits: .0005, HookBlocks: .01, HookPanics: .02,
	HandlerSlow: .01, HandlerFails: .05, HandlerPanics: .02, HandlerIgnores: .005, Checkpoints: .03,
}

var letterFaults = map[Fault]float64{LettersFail: .1, LettersLost: .05, LettersPanic: .02, LettersSlow: .01}

var eventFaults = map[Fault]float64{
	EventTwice: .02, EventCut: .01, EventSilent: .003, EventEnds: .02, EventError: .01, EventSlow: .01, InUse: .03,
}

var workerFaults = map[Fault]float64{
	CrashBefore: .0004, CrashAfter: .0004, CrashInHandler: .003, HandlerStops: .001,
	Crash: 20, AllButOne: 4, ShortPause: 30, LongPause: 20, Isolated: 20, LeaderCutOff: 15, Outage: 6, Leaves: 20, LeaderStuck: .2,
}

var putFaults = map[Fault]float64{
	PutThrottled: .03, PutRefused: .08, PutUnclear: .04, PutBlank: .02, PutDenied: .005,
	PutFails: .05, PutShort: .02, PutSilent: .02, PutSlow: .04,
	ProducerCrashes: 20, ProducerCloses: 30, ProducerCutOff: 30,
}

var shapeFaults = map[Fault]float64{Split: 40, Merge: 30, Doubles: 4}

func all(of ...map[Fault]float64) map[Fault]float64 {
	sum := map[Fault]float64{}
	for _, m := range of {
		for f, p := range m {
			sum[f] = p
		}
	}
	return sum
}

// Profiles contains all profiles.
var Profiles = append(long, briefs("latest", "since", "streams", "recreate", "fanout", "retention", "habits", "sinks", "letters", "killers", "keys", "keys-letters", "filter", "filter-keys", "windows", "reset", "reset-keys")...)

var long = []Profile{
	{Name: "calm", Rates: map[Fault]float64{Leaves: 12, Split: 6, Merge: 4}, Workers: [2]int{1, 6}, Shards: [2]int{1, 12}},
	{Name: "store", Rates: all(storeFaults, map[Fault]float64{Outage: 20, Isolated: 20, LeaderCutOff: 20, LeaderStuck: .4, Leaves: 120}), Repeats: true, Workers: [2]int{2, 8}, Shards: [2]int{2, 10}},
	{Name: "kinesis", Rates: all(serviceFaults, map[Fault]float64{Split: 20, Merge: 15, NoService: 15, ReaderStuck: .3}), Workers: [2]int{1, 4}, Shards: [2]int{1, 8}},
	{Name: "handler", Rates: all(handlerFaults, map[Fault]float64{Leaves: 30, Split: 10, HandlerStops: .003}), Repeats: true, Workers: [2]int{2, 5}, Shards: [2]int{2, 8}},
	{Name: "reshard", Rates: all(map[Fault]float64{InPages: .3, Split: 120, Merge: 100, Doubles: 10, Leaves: 10}), Workers: [2]int{1, 6}, Shards: [2]int{1, 6}},
	{Name: "crashes", Rates: all(workerFaults, map[Fault]float64{CrashWaits: .001, Split: 30, Merge: 20}), Repeats: true, Workers: [2]int{2, 12}, Shards: [2]int{2, 10}},
	{Name: "stormy", Rates: all(storeFaults, serviceFaults, handlerFaults, workerFaults, shapeFaults), Repeats: true, Workers: [2]int{2, 8}, Shards: [2]int{2, 8}},
	{Name: "retention", Rates: all(serviceFaults, workerFaults, shapeFaults, map[Fault]float64{Trim: 120}), Repeats: true, Workers: [2]int{2, 5}, Shards: [2]int{2, 6}},
	{Name: "recreate", Pushed: .3, Rates: all(workerFaults, map[Fault]float64{Recreate: 15, Split: 20, StoreFails: .01}), Repeats: true, Workers: [2]int{2, 5}, Shards: [2]int{2, 6}},
	{Name: "large", Large: true, Records: 4 * time.Second, Rates: all(serviceFaults, handlerFaults, map[Fault]float64{Crash: 20, Split: 10}), Repeats: true, Workers: [2]int{1, 3}, Shards: [2]int{1, 3}},
	{
		Name: "huge", Large: true, Huge: .25, Pushed: .3, Records: 4 * time.Second, Rates: all(handlerFaults, map[Fault]float64{
			HandlerSlow: .04, HandlerIgnores: .02, Throttled: .02, Silent: .003, ShortPage: .05, Crash: 20, Split: 10,
		}), Repeats: true, Workers: [2]int{1, 3}, Shards: [2]int{2, 6}, Lasts: [2]time.Duration{time.Minute, 3 * time.Minute},
	},
	{
		Name: "latest", Start: weir.Latest, Pushed: .3, Rates: all(storeFaults, serviceFaults, map[Fault]float64{
			CrashBefore: .003, CrashAfter: .003, TornApply: .06, ApplyBreaks: .06, Split: 300, Merge: 200, Crash: 60, Leaves: 60,
		}), Repeats: true, Workers: [2]int{1, 5}, Shards: [2]int{1, 8}, Lasts: [2]time.Duration{30 * time.Second, 3 * time.Minute}, Records: 300 * time.Millisecond,
	},
	{
		Name: "since", Since: true, Pushed: .3, Rates: all(storeFaults, serviceFaults, map[Fault]float64{
			CrashBefore: .003, CrashAfter: .003, TornApply: .06, ApplyBreaks: .06, Split: 300, Merge: 200, Crash: 60, Leaves: 60,
		}), Repeats: true, Workers: [2]int{1, 5}, Shards: [2]int{1, 8}, Lasts: [2]time.Duration{time.Minute, 4 * time.Minute}, Records: 300 * time.Millisecond,
	},
	{
		Name: "streams", Streams: [2]int{2, 4}, Pushed: .3, Rates: all(workerFaults, map[Fault]float64{
			Renames: 60, NamesFail: .1, NamesSilent: .03, Recreate: 10, Split: 40, Merge: 20, StoreFails: .01, ServerError: .01, Throttled: .02, Silent: .003,
		}), Repeats: true, Workers: [2]int{2, 5}, Shards: [2]int{4, 12},
	},
	{
		Name: "apart", Streams: [2]int{2, 4}, Apart: true, Pushed: .3, Rates: all(workerFaults, map[Fault]float64{
			NamesFail: .05, Split: 40, Merge: 20, StoreFails: .01, ServerError: .01, Throttled: .02, Silent: .003,
		}), Repeats: true, Workers: [2]int{2, 5}, Shards: [2]int{4, 12},
	},
	{
		Name: "apart-rolling", Streams: [2]int{2, 4}, Apart: true, Older: .4, Rates: all(workerFaults, map[Fault]float64{
			Split: 40, Merge: 20, StoreFails: .01, Leaves: 120,
		}), Repeats: true, Workers: [2]int{2, 5}, Shards: [2]int{4, 12},
	},
	{Name: "spare", Rates: all(workerFaults, map[Fault]float64{Crash: 60, LongPause: 40, Isolated: 40, LeaderCutOff: 40, Leaves: 60, StoreFails: .005, StoreSlow: .005, Split: 20, Merge: 15}), Repeats: true, Workers: [2]int{20, 50}, Shards: [2]int{1, 6}, Lasts: [2]time.Duration{8 * time.Minute, 24 * time.Minute}},
	{
		Name: "fanout", Pushed: 1, Rates: all(eventFaults, handlerFaults, workerFaults, shapeFaults, map[Fault]float64{
			Throttled: .02, ServerError: .01, ServiceSlow: .01, Silent: .003, NoService: 10, StoreFails: .005,
		}), Repeats: true, Workers: [2]int{2, 5}, Shards: [2]int{2, 8},
	},
	{
		Name: "habits", Pushed: .3, Reuses: .3, Records: 400 * time.Millisecond, Rates: all(storeFaults, habitFaults, workerFaults, map[Fault]float64{
			Throttled: .02, ServerError: .01, Silent: .003, ShortPage: .05, Split: 40, Merge: 30,
		}), Repeats: true, Workers: [2]int{1, 4}, Shards: [2]int{1, 6},
	},
	{
		Name: "sinks", Sinks: true, Pushed: .3, Reuses: .3, Records: 400 * time.Millisecond, Rates: all(storeFaults, handlerFaults, workerFaults, map[Fault]float64{
			SetBack: 60, SinkFails: .05, SinkHangs: .01, SinkPanics: .02, SinkLies: .03, CrashWaits: .003, Throttled: .02, ServerError: .01, Silent: .003, ShortPage: .05, Split: 60, Merge: 40,
		}), Repeats: true, Workers: [2]int{1, 4}, Shards: [2]int{1, 5},
	},
	{
		Name: "restored", Sinks: true, Records: 400 * time.Millisecond, Rates: all(map[Fault]float64{
			SetBack: 120, Split: 240, Merge: 60, SinkLies: .01, StoreFails: .01, Crash: 20,
		}), Repeats: true, Workers: [2]int{1, 3}, Shards: [2]int{1, 3}, Lasts: [2]time.Duration{90 * time.Second, 3 * time.Minute},
	},
	{
		Name: "letters", Letters: true, Pushed: .3, Reuses: .3, Records: 400 * time.Millisecond, Rates: all(storeFaults, workerFaults, letterFaults, map[Fault]float64{
			HandlerSlow: .01, HandlerFails: .05, HandlerPanics: .02, HandlerIgnores: .005, CrashWaits: .003, Throttled: .02, ServerError: .01, Silent: .003, ShortPage: .05, Split: 60, Merge: 40,
		}), Repeats: true, Workers: [2]int{1, 4}, Shards: [2]int{1, 6},
	},
	{
		Name: "killers", Letters: true, Killers: true, Pushed: .3, Reuses: .3, Records: 400 * time.Millisecond, Rates: all(storeFaults, letterFaults, map[Fault]float64{
			CrashBefore: .001, CrashAfter: .001, CrashInHandler: .005, HandlerSlow: .01, HandlerFails: .03, HandlerStops: .001, Leaves: 60, Split: 40, Merge: 20, Throttled: .02, ShortPage: .05,
		}), Repeats: true, Workers: [2]int{1, 5}, Shards: [2]int{1, 6},
	},
	{
		Name: "rolling", Older: .5, Pushed: .3, Rates: all(storeFaults, workerFaults, shapeFaults, map[Fault]float64{Leaves: 120}), Repeats: true,
		Workers: [2]int{2, 8}, Shards: [2]int{2, 10},
	},
	{
		Name: "keys", Parallel: true, Pushed: .3, Records: 150 * time.Millisecond, Rates: all(storeFaults, serviceFaults, handlerFaults, workerFaults, shapeFaults, map[Fault]float64{HandlerSlow: .03, HandlerIgnores: .01, HandlerStops: .003}),
		Repeats: true, Workers: [2]int{1, 5}, Shards: [2]int{1, 6},
	},
	{
		Name: "keys-letters", Parallel: true, Letters: true, Pushed: .3, Records: 300 * time.Millisecond, Rates: all(storeFaults, letterFaults, shapeFaults, map[Fault]float64{
			CrashBefore: .001, CrashAfter: .001, CrashInHandler: .002, HandlerSlow: .02, HandlerFails: .03, HandlerPanics: .005, Leaves: 60, Throttled: .02,
		}), Repeats: true, Workers: [2]int{1, 5}, Shards: [2]int{1, 6},
	},
	{
		Name: "filter", Filters: true, Letters: true, Pushed: .3, Reuses: .3, Records: 300 * time.Millisecond, Rates: all(storeFaults, workerFaults, letterFaults, map[Fault]float64{
			HandlerSlow: .01, HandlerFails: .05, HandlerPanics: .02, HandlerIgnores: .005, CrashWaits: .003, Throttled: .02, ServerError: .01, Silent: .003, EmptyPage: .02, ShortPage: .05, Split: 60, Merge: 40,
		}), Repeats: true, Workers: [2]int{1, 4}, Shards: [2]int{1, 6},
	},
	{
		Name: "filter-keys", Filters: true, Parallel: true, Pushed: .3, Records: 150 * time.Millisecond, Rates: all(storeFaults, handlerFaults, workerFaults, map[Fault]float64{
			Throttled: .02, ServerError: .01, Silent: .003, ShortPage: .05, Split: 60, Merge: 40,
		}), Repeats: true, Workers: [2]int{1, 4}, Shards: [2]int{1, 6},
	},
	{
		Name: "filter-sinks", Filters: true, Sinks: true, Pushed: .3, Reuses: .3, Records: 400 * time.Millisecond, Rates: all(storeFaults, handlerFaults, workerFaults, map[Fault]float64{
			SetBack: 60, SinkFails: .05, CrashWaits: .003, Throttled: .02, ShortPage: .05, Split: 60, Merge: 40,
		}), Repeats: true, Workers: [2]int{1, 4}, Shards: [2]int{1, 5},
	},
	{
		Name: "windows", Windows: true, Pushed: .3, Reuses: .3, Records: 400 * time.Millisecond, Rates: all(storeFaults, serviceFaults, workerFaults, map[Fault]float64{
			HandlerSlow: .01, HandlerFails: .05, HandlerPanics: .02, HandlerIgnores: .005, HandlerStops: .001, CrashInHandler: .01, ResultsLost: .05,
			SinkFails: .05, SinkHangs: .01, SinkPanics: .02, CrashWaits: .003, Leaves: 60, Split: 60, Merge: 40,
		}), Repeats: true, Workers: [2]int{1, 4}, Shards: [2]int{1, 5},
	},
	{
		Name: "reset", Pushed: .3, Reuses: .3, Records: 300 * time.Millisecond, Rates: all(storeFaults, handlerFaults, workerFaults, map[Fault]float64{
			Resets: 40, Throttled: .02, ServerError: .01, Silent: .003, ShortPage: .05, Split: 60, Merge: 40,
		}), Repeats: true, Workers: [2]int{1, 4}, Shards: [2]int{1, 5},
	},
	{
		Name: "reset-keys", Parallel: true, Pushed: .3, Records: 150 * time.Millisecond, Rates: all(storeFaults, handlerFaults, map[Fault]float64{
			Resets: 40, HandlerSlow: .03, HandlerIgnores: .01, CrashBefore: .0004, CrashAfter: .0004, Crash: 20, Leaves: 60, LongPause: 10, Throttled: .02, ShortPage: .05, Split: 40, Merge: 20,
		}), Repeats: true, Workers: [2]int{1, 4}, Shards: [2]int{1, 5},
	},
	{
		Name: "producing", Producers: 3, Pushed: .3, Records: 400 * time.Millisecond,
		Rates: all(putFaults, map[Fault]float64{
			Throttled: .03, ServerError: .02, BrokenBody: .02, Silent: .005, ServiceSlow: .01, InPages: .3,
			Garbled: .01, StoreFails: .005, HandlerFails: .02, HandlerSlow: .005, Crash: 20, Leaves: 30,
			Split: 120, Merge: 100, Doubles: 10,
		}), Repeats: true, Workers: [2]int{1, 3}, Shards: [2]int{1, 5},
		Lasts: [2]time.Duration{45 * time.Second, 150 * time.Second},
		Idle:  [2]time.Duration{300 * time.Millisecond, 3 * time.Second},
	},
	{Name: "crossings", Crosses: true, Records: 400 * time.Millisecond, Rates: allCrossingFaults, Repeats: true, Workers: [2]int{1, 3}, Shards: [2]int{1, 4}, Lasts: [2]time.Duration{90 * time.Second, 4 * time.Minute}},
	{
		Name: "applications", Crosses: true, Apps: 2, Older: .3, Streams: [2]int{2, 2}, Records: 300 * time.Millisecond, Rates: allCrossingFaults, Repeats: true,
		Workers: [2]int{1, 3}, Shards: [2]int{2, 6}, Lasts: [2]time.Duration{90 * time.Second, 4 * time.Minute},
	},
	{
		Name: "chosen", Chosen: true, Apps: 2, Pushed: .3, Reuses: .3, Rates: all(storeFaults, workerFaults, shapeFaults, map[Fault]float64{
			InPages: .3, NoChildren: .2, Throttled: .02, ServerError: .01, Silent: .003, HandlerFails: .02, Trim: 30,
		}), Repeats: true, Workers: [2]int{1, 4}, Shards: [2]int{2, 8},
	},
	{
		Name: "chosen-latest", Chosen: true, Start: weir.Latest, Pushed: .3, Rates: all(storeFaults, workerFaults, map[Fault]float64{
			InPages: .3, NoChildren: .2, Throttled: .02, HandlerFails: .02, Split: 120, Merge: 100, Doubles: 10,
		}), Repeats: true, Workers: [2]int{1, 4}, Shards: [2]int{2, 6}, Lasts: [2]time.Duration{90 * time.Second, 5 * time.Minute},
	},
	{
		Name: "chosen-recreate", Chosen: true, Rates: all(workerFaults, map[Fault]float64{Recreate: 15, Split: 60, Merge: 30, StoreFails: .01, Throttled: .02}),
		Repeats: true, Workers: [2]int{2, 4}, Shards: [2]int{2, 6},
	},
	{Name: "crowd", Rates: all(workerFaults, storeFaults, map[Fault]float64{Split: 20}), Repeats: true, Workers: [2]int{20, 50}, Shards: [2]int{20, 60}, Idle: [2]time.Duration{4 * time.Second, 30 * time.Second}},
}

// briefs returns variants of profiles that read by fan-out. They have 20 to 90 seconds of faults,
// all faults of fan-out, and three times as many scheduled faults.
func briefs(names ...string) (them []Profile) {
	for _, name := range names {
		p := long[slices.IndexFunc(long, func(p Profile) bool { return p.Name == name })]
		p.Name, p.Pushed, p.Lasts = p.Name+"-brief", 1, [2]time.Duration{20 * time.Second, 90 * time.Second}
		p.Rates = all(p.Rates, eventFaults, map[Fault]float64{CrashWaits: .001, Garbled: .01, InPages: .5})
		for _, f := range []Fault{Expired, EmptyPage, ShortPage, BrokenAnswer} {
			delete(p.Rates, f) // only for polling
		}
		for f, rate := range p.Rates {
			if rate > 1 {
				p.Rates[f] = 3 * rate
			}
		}
		them = append(them, p)
	}
	return them
}

// ProfileNamed returns the profile with this name.
func ProfileNamed(name string) (Profile, bool) {
	for _, p := range Profiles {
		if p.Name == name {
			return p.filled(), true
		}
	}
	return Profile{}, false
}

func (p Profile) filled() Profile {
	if p.Lasts == [2]time.Duration{} {
		p.Lasts = [2]time.Duration{4 * time.Minute, 12 * time.Minute}
	}
	if p.Idle == [2]time.Duration{} {
		p.Idle = [2]time.Duration{1500 * time.Millisecond, 20 * time.Second}
	}
	if p.Records == 0 {
		p.Records = 1500 * time.Millisecond
	}
	return p
}
