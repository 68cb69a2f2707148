package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// application contains what the page shows about an application.
type application struct {
	Name string
	standing
	Verdict  health.Verdict
	Sentence string      // of the verdict, without the state
	Shards   []shardInfo // the shard with the worst state first
	Workers  []workerInfo
	Leader   string // "" if there is no leader
	Streams  []string
	Notes    []string // for example about workers that read different streams
	Open     int      // shards that are not finished
	Living   int      // workers that may be alive
	Rate     string   // throughput, for people
	Worst    time.Duration
	LagKnown bool
	Recent   recentLag
	Changed  time.Time // when a shard was last opened or closed; zero if unknown
	Seen     time.Time
	Trouble  error     // of the store
	Failed   time.Time // since when the store does not answer
	LagErr   error
	ListErr  error
}

type shardInfo struct {
	lease.Lease
	standing
	Sentence string
	Worker   string // the owner, "" if there is none
	Held     bool   // the owner lives
	Rate     string // throughput, for people
	Lag      time.Duration
	LagKnown bool
	Opened   time.Time // zero if unknown
	Closed   time.Time // zero while the shard is open
	Unplaced bool      // finished at an unknown time
	Reason   health.Reason
	Since    time.Time // when the state began; zero if unknown
	Handled  time.Time // records up to this time are handled; zero if unknown
	Parents  []string
	Children []string
	Merged   bool // the shard was closed by a merge
	Troubles []lease.Trouble
}

type workerInfo struct {
	lease.Worker
	Life   life
	Leads  bool
	Leases int    // shards that it holds and that are not finished
	Rate   string // throughput, for people
}

// assess computes what the page shows from a read of the application.
func assess(name string, s sighting, now time.Time) application {
	a := application{
		Name: name, Seen: s.at, Trouble: s.err, Failed: s.failed, LagErr: s.lagErr,
		Streams: streamsOf(s.view.Leases), Notes: lease.DescribeStreams(s.view),
	}
	if s.err != nil {
		s = s.unanswered()
	}
	workers := a.addWorkers(s)
	common := a.commonErrors(s.judged)
	judged := map[lease.Key]int{}
	for i, v := range s.judged {
		judged[lease.Key{Stream: v.Stream, Shard: v.Name}] = i
	}
	for _, l := range s.view.Leases {
		of := shardInfo{Lease: l, Parents: l.Parents, Opened: s.opened[l.Key]}
		known := s.streams[l.Stream]
		listed := known.shards[l.Shard]
		if known.err != nil {
			a.ListErr = known.err
		}
		if len(of.Parents) == 0 {
			of.Parents = listed.parents
		}
		if of.Range == (shard.HashRange{}) {
			of.Range = listed.hashes
		}
		if !listed.opened.IsZero() {
			of.Opened = listed.opened
		}
		of.Closed = listed.closed
		if i, held := workers[l.Owner]; held {
			w := &a.Workers[i]
			of.Worker = cmp.Or(w.Name, w.Session)
			for _, t := range w.Troubles {
				if t.Key == l.Key && s.group.Lives(w.Session) {
					of.Troubles = append(of.Troubles, t)
				}
			}
		} else {
			of.Worker = l.Owner
		}
		of.Held, of.Rate = s.group.Holder(l.Key) != "", s.group.ShardRate(l)
		verdict := s.judged[judged[l.Key]].Shard
		if common[verdict.Err] {
			verdict.Err = "" // a note says it
		}
		of.standing, of.Reason, of.Since = standing{verdict.State, l.Finished(), verdict.Reason}, verdict.Reason, verdict.Since
		of.Sentence = verdict.Text()
		if lag := verdict.Lag(); !l.Finished() && lag >= 0 {
			of.Lag, of.LagKnown = lag, true
		}
		a.Shards = append(a.Shards, of)
	}
	a.relate(s, now)
	slices.SortStableFunc(a.Shards, func(x, y shardInfo) int {
		return cmp.Or(cmp.Compare(y.State, x.State), cmp.Compare(y.late(), x.late()), boolCompare(x.Done, y.Done), x.Key.Compare(y.Key))
	})
	a.conclude(s)
	a.Recent = s.past.recent(now).agree(a.State)
	return a
}

// unanswered returns the last read with the states that apply while the store does not answer.
func (s sighting) unanswered() sighting {
	s.facts.StoreSilent = s.failed
	s.judged = slices.Clone(s.judged)
	for i := range s.judged {
		s.judged[i].Shard = s.judged[i].Unanswered()
	}
	return s
}

// commonErrors adds a note for each error that many shards have, and returns these errors.
func (a *application) commonErrors(all []health.Named) map[string]bool {
	const many = 4
	count, common := map[string]int{}, map[string]bool{}
	for _, v := range all {
		if v.Err == "" {
			continue
		}
		if count[v.Err]++; count[v.Err] == many {
			common[v.Err] = true
		}
	}
	for _, text := range slices.Sorted(maps.Keys(common)) {
		a.Notes = append(a.Notes, fmt.Sprintf("%d shards have the last error: %s", count[text], text))
	}
	return common
}

// addWorkers adds the workers to a.Workers, and returns the index of each session there.
func (a *application) addWorkers(s sighting) map[string]int {
	for _, w := range s.view.Workers {
		leads := w.Session == s.group.Leader
		info := workerInfo{
			Worker: w, Life: lifeOf(w, s.beats[w.Session]), Leads: leads,
			Rate: s.group.WorkerRate(w.Session),
		}
		if s.err != nil && info.Life != lifeEnded {
			info.Life = lifeNotKnown
		}
		info.Leases, _ = s.group.Holds(w.Session)
		if leads {
			a.Leader = cmp.Or(w.Name, w.Session)
		}
		a.Workers = append(a.Workers, info)
	}
	a.Living, a.Rate = s.group.Living, s.group.Rate()
	slices.SortFunc(a.Workers, func(x, y workerInfo) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Session, y.Session))
	})
	at := map[string]int{}
	for i, w := range a.Workers {
		at[w.Session] = i
	}
	return at
}

// relate fills in the times that can be derived from related shards. A shard was closed when its
// first child shard was opened.
func (a *application) relate(s sighting, now time.Time) {
	at := map[lease.Key]int{}
	for i, of := range a.Shards {
		at[of.Key] = i
	}
	first := map[lease.Key]time.Time{} // opening time of the first child, by parent
	for i := range a.Shards {
		child := &a.Shards[i]
		for _, p := range child.Parents {
			j, there := at[lease.Key{Stream: child.Stream, Shard: p}]
			if !there {
				continue
			}
			parent := &a.Shards[j]
			parent.Children = append(parent.Children, child.Shard)
			parent.Merged = len(child.Parents) > 1
			if opened := first[parent.Key]; !child.Opened.IsZero() && (opened.IsZero() || child.Opened.Before(opened)) {
				first[parent.Key], parent.Closed = child.Opened, child.Opened
			}
		}
	}
	for i := range a.Shards {
		of := &a.Shards[i]
		if of.Done && of.Closed.IsZero() {
			of.Closed = s.gone[of.Key]
			of.Unplaced = of.Closed.IsZero()
		}
	}
	for i := range a.Shards { // a child shard without a known time was opened when its parent was closed
		child := &a.Shards[i]
		for _, p := range child.Parents {
			if j, there := at[lease.Key{Stream: child.Stream, Shard: p}]; there && child.Opened.IsZero() {
				child.Opened = a.Shards[j].Closed
			}
		}
	}
	for i := range a.Shards {
		of := &a.Shards[i]
		if !of.Closed.IsZero() && of.Closed.Before(of.Opened) {
			of.Closed = of.Opened
		}
		of.Handled = handledUpTo(of, now)
		for _, t := range []time.Time{of.Opened, of.Closed} {
			if t.After(a.Changed) {
				a.Changed = t
			}
		}
	}
}

// handledUpTo returns the time up to which the records of a shard are handled. If the lag is known,
// the result is now minus the lag. Otherwise it is the time of the checkpoint, or the time at which
// the shard was opened.
func handledUpTo(of *shardInfo, now time.Time) time.Time {
	switch {
	case of.Done:
		return time.Time{}
	case of.LagKnown && of.Lag <= enough:
		return now
	case of.LagKnown:
		return now.Add(-of.Lag)
	}
	switch of.Position.Kind() {
	case shard.Time:
		return of.Position.Time()
	case shard.Sequence:
		_, arrived, _ := timesOf(of.Position.SequenceNumber())
		return arrived
	}
	return of.Opened
}

// conclude sets the state of the application; see [health.Conclude].
func (a *application) conclude(s sighting) {
	for i := range a.Shards {
		of := &a.Shards[i]
		if of.Done {
			continue
		}
		a.Open++
		if of.LagKnown {
			a.LagKnown, a.Worst = true, max(a.Worst, of.Lag)
		}
	}
	if s.lagErr != nil {
		s.facts.NoLag = s.lagErr.Error()
	}
	s.facts.App = a.Name
	a.Verdict = health.Conclude(s.facts)
	a.standing = standing{State: a.Verdict.State, Done: len(a.Shards) > 0 && a.Open == 0}
	if len(a.Shards) > 0 && a.Shards[0].State == a.State {
		a.Cause = a.Shards[0].Reason
	}
	if a.Verdict.Cause == health.CausePosition || a.Verdict.Cause == health.CauseStreamGone {
		a.LagErr = nil // the sentence has the same error
	}
	a.Sentence = strings.TrimPrefix(a.Verdict.Sentence, a.Verdict.State.String()+": ")
	a.Sentence = strings.TrimPrefix(a.Sentence, "unknown: ") // the label of the state says so
	if a.Leader == "" && a.Living > 0 && a.Open > 0 {
		a.Notes = append(a.Notes, "no worker leads")
	}
}

// A lag up to enough counts as zero, because reading once a second causes such a lag.
const enough = 10 * time.Second

// late returns the lag by which shards are sorted. A lag of at most the constant enough counts as
// zero.
func (of *shardInfo) late() time.Duration {
	if of.Lag <= enough {
		return 0
	}
	return of.Lag
}

// lineage describes the parents and children of a shard in words.
func (of shardInfo) lineage() string {
	var parts []string
	if len(of.Parents) > 0 {
		parts = append(parts, of.came()+" "+strings.Join(shorts(of.Parents), " and "))
	}
	if len(of.Children) > 0 {
		parts = append(parts, of.became()+" "+strings.Join(shorts(of.Children), " and "))
	}
	return strings.Join(parts, ", ")
}

func (of shardInfo) came() string {
	return plural(len(of.Parents), "split from", "merged from")
}

func (of shardInfo) became() string {
	if of.Merged {
		return "merged into"
	}
	return "split into"
}

func streamsOf(leases []lease.Lease) []string {
	var names []string
	for _, l := range leases {
		names = append(names, l.Stream)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
