package sim

import (
	"math/bits"
	"slices"
	"strings"
	"sync"
)

// feature is an option or a kind of result that changes how a shard is handled.
type feature int

const (
	featParallel feature = iota
	featAttempts
	featMaxAge
	featBisect
	featNamed
	featRejected
	featTooOld
	featFiltered
	featBatchWait
	featBatchBytes
	featIdleCalls
	featOpenForm
	featPullForm
	featRecordForm
	featLoopForm
	featPosition
	featWindowed
	featHolds
	featReused
	featAggregated
	featKeepPacked
	featProgressed
	featSuspects
	featFannedOut
	featExpiring
	featPausing
	featDraining
	featResetting
	featPartitions
	features // number of features
)

// featureNames contains the name of each feature, and a two-letter abbreviation for the columns of
// a matrix.
var featureNames = [features]struct{ name, short string }{
	{"Parallel", "Pa"}, {"OnFailure.MaxAttempts", "At"}, {"OnFailure.MaxAge", "Ag"}, {"OnFailure.Bisect", "Bi"}, {"FailedAt", "FA"}, {"Reject", "Re"},
	{"RejectOld", "TO"}, {"Filter", "Fi"}, {"Batching.MaxWait", "BW"}, {"Batching.MaxBytes", "BB"}, {"Idle", "Id"}, {"Open", "Op"}, {"Pull", "Pu"}, {"RecordFunc", "RF"},
	{"Records", "Rs"}, {"Position", "Po"}, {"windows", "Wi"}, {"Hold", "Ho"}, {"ReuseBuffers", "RB"}, {"aggregates", "Ax"}, {"KeepPacked", "KP"},
	{"Done, Checkpoint", "Do"}, {"SuspectAfter", "Su"}, {"FanOut", "FO"}, {"Expired", "Ex"}, {"pauses", "Ps"}, {"drains", "Dr"}, {"resets", "Rt"}, {"Partitions", "Pt"},
}

func (f feature) String() string { return featureNames[f].name }

// featureSet is a set of features.
type featureSet uint32

func setOf(fs ...feature) (s featureSet) {
	for _, f := range fs {
		s |= 1 << f
	}
	return s
}

func (s featureSet) has(f feature) bool              { return s&(1<<f) != 0 }
func (s featureSet) hasAny(other featureSet) bool    { return s&other != 0 }
func (s featureSet) with(f feature) featureSet       { return s | 1<<f }
func (s featureSet) size() int                       { return bits.OnesCount32(uint32(s)) }
func (s featureSet) without(o featureSet) featureSet { return s &^ o }

// all returns the features of the set, in order.
func (s featureSet) all() (fs []feature) {
	for f := range features {
		if s.has(f) {
			fs = append(fs, f)
		}
	}
	return fs
}

var (
	givesUp = setOf(featAttempts, featMaxAge, featBisect)
	// ofShards contains the features that only RunShards and RunPull have.
	ofShards = setOf(featOpenForm, featPullForm, featWindowed, featHolds, featPosition, featIdleCalls)
	forms    = setOf(featOpenForm, featPullForm, featRecordForm, featLoopForm, featWindowed)
)

// pairRule is a reason why certain pairs of features cannot be combined.
type pairRule struct {
	a, b featureSet
	why  string
}

// refusedPairs contains the pairs that weir refuses. TestIllegalPairsAreRefused of the root package
// has a case for each rule.
var refusedPairs = []pairRule{
	{setOf(featParallel), ofShards | setOf(featLoopForm), "RunShards, RunPull and Records refuse Concurrency"},
	{setOf(featParallel), setOf(featReused, featBatchWait), "New refuses it"},
	{givesUp, setOf(featPullForm, featWindowed, featHolds, featLoopForm), "RunPull and Records refuse OnFailure"},
	{setOf(featOpenForm), setOf(featPullForm, featWindowed, featHolds), "ShardHandlers have Open and a PullHandler has Pull"},
	{setOf(featPartitions), setOf(featIdleCalls, featReused, featBatchWait), "RunShards refuses it"},
}

// unsaidPairs contains the pairs that a program cannot express with the API.
var unsaidPairs = []pairRule{
	{setOf(featRecordForm), ofShards | setOf(featLoopForm), "a worker has one kind of handler"},
	{setOf(featLoopForm), ofShards, "a worker has one kind of handler"},
	{setOf(featLoopForm), setOf(featNamed, featRejected, featTooOld), "the body of a loop returns no error"},
	{setOf(featLoopForm, featWindowed), setOf(featProgressed), "there is no batch to note progress in"},
	{setOf(featPartitions), setOf(featPullForm, featWindowed, featHolds, featRecordForm, featLoopForm), "only ShardHandlers have Partitions"},
	{setOf(featPartitions), setOf(featParallel), "Concurrency is for keys or for partitions; with partitions, makeParallel draws it, too"},
}

// apart returns the reason why two features cannot be combined, or "" if they can. refused reports
// whether weir refuses the pair.
func apart(a, b feature) (why string, refused bool) {
	find := func(rules []pairRule) string {
		for _, r := range rules {
			if a != b && (r.a.has(a) && r.b.has(b) || r.a.has(b) && r.b.has(a)) {
				return r.why
			}
		}
		return ""
	}
	if why = find(refusedPairs); why != "" {
		return why, true
	}
	return find(unsaidPairs), false
}

// implied adds the features that other features of the set include. Windows include pull, idle and
// hold. Partitions include a sink with positions.
func (s featureSet) implied() featureSet {
	if s.has(featWindowed) {
		s |= setOf(featPullForm, featIdleCalls, featHolds)
	}
	if s.has(featHolds) {
		s |= setOf(featPullForm)
	}
	if s.has(featPartitions) {
		s |= setOf(featOpenForm, featPosition)
	}
	return s
}

// legal reports whether all features of the set can be combined.
func (s featureSet) legal() bool {
	all := s.implied().all()
	for i, a := range all {
		for _, b := range all[i+1:] {
			if why, _ := apart(a, b); why != "" {
				return false
			}
		}
	}
	return true
}

// whole completes a legal set. It adds implied features, and a form of handlers that supports the
// set.
func (s featureSet) whole() featureSet {
	s = s.implied()
	if !s.hasAny(forms) && s.hasAny(setOf(featIdleCalls, featPosition)) {
		s = s.with(featOpenForm)
	}
	return s
}

// String returns the names of the features in the set.
func (s featureSet) String() string {
	var names []string
	for _, f := range s.all() {
		names = append(names, f.String())
	}
	return strings.Join(names, ", ")
}

// pair is a pair of features, the smaller one first.
type pair [2]feature

// pairs returns all pairs of features in the set.
func (s featureSet) pairs() (ps []pair) {
	all := s.all()
	for i, a := range all {
		for _, b := range all[i+1:] {
			ps = append(ps, pair{a, b})
		}
	}
	return ps
}

// legalPairs returns the pairs of features that can be combined.
func legalPairs() (ps []pair) {
	for a := range features {
		for b := a + 1; b < features; b++ {
			if setOf(a, b).legal() {
				ps = append(ps, pair{a, b})
			}
		}
	}
	return ps
}

const (
	mostFeatures = 7  // maximum size of a set of the covering list, before it is completed
	candidates   = 60 // random sets that are compared to choose the next set
)

// covering returns the covering list: sets of features that together contain every legal pair. The
// list is the same in every process. To find the next set of the list, covering tries some random
// legal sets and takes the one with the most new pairs.
var covering = sync.OnceValue(func() (list []featureSet) {
	left := map[pair]bool{}
	for _, p := range legalPairs() {
		left[p] = true
	}
	gains := func(s featureSet) (n int) {
		for _, p := range s.whole().pairs() {
			if left[p] {
				n++
			}
		}
		return n
	}
	d := roll(1, "covering")
	for len(left) > 0 {
		best, most := featureSet(0), 0
		first := slices.Collect(func(yield func(pair) bool) {
			for _, p := range legalPairs() {
				if left[p] && !yield(p) {
					return
				}
			}
		})
		for range candidates {
			p := first[d.below(len(first))]
			s := setOf(p[0], p[1])
			for _, f := range d.order(int(features)) {
				if next := s.with(feature(f)); next.size() <= mostFeatures && next.legal() && gains(next) > gains(s) {
					s = next
				}
			}
			if n := gains(s); n > most {
				best, most = s.whole(), n
			}
		}
		for _, p := range best.pairs() {
			delete(left, p)
		}
		list = append(list, best)
	}
	return list
})

// order returns a random permutation of the numbers from 0 to n-1.
func (d *dice) order(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	for i := range order {
		j := i + d.below(n-i)
		order[i], order[j] = order[j], order[i]
	}
	return order
}
