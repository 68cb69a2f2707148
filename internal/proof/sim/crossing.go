package sim

import (
	"maps"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/sim/judge"
)

// crossing contains the enabled features of an application and their random settings. It is nil if
// the profile does not cross features.
type crossing struct {
	on         featureSet
	batchWait  time.Duration
	batchBytes int
	idle       time.Duration
	ways       []int // ways in which handlers fail at a record; see letters.go
}

// Crossed contains the enabled features of an application, and how long its workers lived.
type Crossed struct {
	On    featureSet
	Lived time.Duration
}

// has reports whether a feature is enabled.
func (c *crossing) has(f feature) bool { return c != nil && c.on.has(f) }

// crossingFaults contains the faults that can occur with any features.
var crossingFaults = map[Fault]float64{
	HandlerSlow: .01, HandlerFails: .05, HandlerPanics: .02, HandlerIgnores: .005, CrashInHandler: .004, HandlerStops: .002,
	CrashBefore: .0005, CrashAfter: .0005, StoreFails: .01, AnswerLost: .01, StoreSlow: .005, TornApply: .05,
	Throttled: .02, ServerError: .01, ShortPage: .05, Split: 40, Merge: 25, Crash: 15,
}

// makeCrossing chooses the features of an application. The first application gets a set of the list
// that [covering] returns, and consecutive seeds select consecutive sets. If a run has as many
// seeds as the list has sets, each set is used once. Another application gets a random set of the
// list. Then makeCrossing adds some compatible features at random.
func (w *world) makeCrossing(seed uint64) {
	if !w.profile.Crosses {
		return
	}
	list := covering()
	d := roll(w.seed, "crossing")
	place := seed % uint64(len(list))
	if !w.isFirst() {
		place = d.next() % uint64(len(list))
	}
	s := list[place]
	for _, f := range d.order(int(features)) {
		if next := s.with(feature(f)); d.chance(.1) && next.legal() {
			s = next.whole()
		}
	}
	if !w.isFirst() { // all applications share the features of the streams
		ofStreams := setOf(featExpiring, featAggregated)
		s = s.without(ofStreams) | w.apps[0].crosses.on&ofStreams
	}
	c := &crossing{on: s, ways: []int{saysNothing}}
	w.crosses = c
	for _, of := range []struct {
		feature
		way int
	}{{featNamed, names}, {featRejected, rejects}, {featTooOld, leavesOut}} {
		if c.has(of.feature) {
			c.ways = append(c.ways, of.way)
		}
	}
	if c.has(featNamed) && c.has(featRejected) {
		c.ways = append(c.ways, rejectsByName)
	}
	c.batchWait, c.batchBytes, c.idle = d.often(100*time.Millisecond, 20*time.Second), 1+d.below(400), d.often(300*time.Millisecond, 20*time.Second)
	p := &w.profile
	p.Rates = maps.Clone(p.Rates)
	p.Parallel, p.Letters, p.Filters, p.Killers, p.Windows = c.has(featParallel), s.hasAny(givesUp), c.has(featFiltered), c.has(featSuspects), c.has(featWindowed)
	p.Sinks = c.has(featPosition) && !c.has(featWindowed)
	p.Pushed, p.Reuses = share(c.has(featFannedOut)), share(c.has(featReused))
	// A rejected record is dead-lettered only if there is a destination.
	if !p.Letters && c.has(featRejected) && !s.hasAny(setOf(featPullForm, featLoopForm)) {
		p.Letters = d.chance(.5)
	}
	for f, rates := range faultsOf {
		if !c.has(f) {
			for fault := range rates {
				delete(p.Rates, fault)
			}
		}
	}
	if !p.Letters {
		for fault := range letterFaults {
			delete(p.Rates, fault)
		}
	}
	if c.has(featSuspects) { // the previous version does not record deaths
		p.Older = 0
	}
	if w.isFirst() {
		// If the service's clock differed more from true time, records would count as too old for
		// minutes.
		w.skew = d.span(-2*time.Second, 2*time.Second)
	}
}

// faultsOf contains the faults that can occur only with a feature.
var faultsOf = map[feature]map[Fault]float64{
	featFannedOut: {EventTwice: .02, EventCut: .01, EventEnds: .02, EventError: .01, EventSlow: .01, InUse: .03},
	featExpiring:  {Trim: 60},
	featPausing:   {ShortPause: 40, LongPause: 20},
	featDraining:  {Leaves: 60},
	featResetting: {Resets: 60},
	featProgressed: {
		HandlerChanges: .3, HandlerKeeps: .1, HandlerNotes: .3, HandlerConfuses: .05, HandlerLeaves: .05, HandlerCancels: .02, Checkpoints: .05,
	},
	featPosition:   {SinkFails: .05, SinkHangs: .01, SinkPanics: .02},
	featPartitions: {SetBack: 60, SinkLost: .05, SinkLate: .02, CrashWaits: .003},
}

// allCrossingFaults contains all faults that can occur in a profile that crosses features.
var allCrossingFaults = func() map[Fault]float64 {
	rates := all(crossingFaults, letterFaults)
	for _, of := range faultsOf {
		rates = all(rates, of)
	}
	return rates
}()

// share returns the share of the simulations that use a feature: 1 if it is enabled, otherwise 0.
func share(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// packed returns the fraction of records that are put as aggregates.
func (w *world) packed() float64 {
	for _, x := range w.apps {
		if x.crosses.has(featAggregated) || x.crosses.has(featKeepPacked) {
			return .6
		}
	}
	return .15
}

// options sets the options of the enabled features, except for options that other parts of the
// simulation set.
func (c *crossing) options(o *weir.Options, by func(time.Duration) time.Duration) {
	if c == nil {
		return
	}
	if c.has(featBatchWait) {
		o.Batching.MaxWait = by(c.batchWait)
	}
	if c.has(featBatchBytes) {
		o.Batching.MaxBytes = c.batchBytes
	}
	if c.has(featKeepPacked) {
		o.Aggregates = weir.KeepPacked
	}
}

// waits returns the additional time that a record may wait because of Options.Batching.MaxWait.
func (c *crossing) waits() time.Duration {
	if !c.has(featBatchWait) {
		return 0
	}
	return c.batchWait + time.Second
}

// isLoop reports whether the worker's handler is a loop over the single records of all shards.
func (w *world) isLoop() bool { return w.crosses.has(featLoopForm) }

// loosely reports whether the repetition of a result may have other records than the first result.
// That happens if records expire, or if an operator moves a checkpoint into a window.
func (w *world) loosely() bool { return w.crosses.has(featExpiring) || w.crosses.has(featResetting) }

// checkSize describes what is wrong with the size of a batch. It returns "" if the size is right.
func (w *world) checkSize(b *weir.Batch, most int) string {
	if w.crosses == nil {
		return ""
	}
	bytes := 0
	for _, r := range b.Records {
		bytes += len(r.Data)
	}
	switch {
	case len(b.Records) > most:
		return "has more records than Options.Batching.MaxRecords"
	case w.crosses.has(featBatchBytes) && len(b.Records) > 1 && bytes > w.crosses.batchBytes:
		return "has more bytes than Options.Batching.MaxBytes"
	}
	return ""
}

// failsSomewhere chooses a random failure of a handler. The handler fails at the first record that
// it cannot handle, or at an earlier record.
func (w *world) failsSomewhere(d *dice, ids []judge.ID) *badly {
	c := w.crosses
	bad := &badly{index: d.below(w.handles(ids)), how: c.ways[d.below(len(c.ways))], wraps: d.below(wraps)}
	bad.n = 1 + d.below(len(ids)-bad.index)
	if d.chance(.1) && !c.has(featRecordForm) { // fail after the last record
		bad.n += len(ids)
	}
	return bad
}

// handles returns the number of records up to the first record at which the handler always fails,
// including that record. If there is no such record, it returns the number of all records.
func (w *world) handles(ids []judge.ID) int {
	if bad := w.badAt(ids); bad != nil {
		return bad.index + 1
	}
	return len(ids)
}
