package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// application is what the page shows of an application.
type application struct {
	Name     string
	State    state
	Sentence string
	Shards   []shardInfo // the worst first
	Workers  []workerInfo
	Leader   string // "" when nobody leads
	Streams  []string
	Open     int // shards that are not finished
	Living   int // workers that are not known to be dead
	Worst    time.Duration
	LagKnown bool
	Changed  time.Time // when a shard was last opened or closed, zero when that is not known
	Seen     time.Time
	Trouble  error // of the store
	LagErr   error
	ListErr  error
}

type shardInfo struct {
	lease.Lease
	State    state
	Sentence string
	Worker   string // who holds it, "" for nobody
	Lag      time.Duration
	LagKnown bool
	Opened   time.Time // zero when it is not known
	Closed   time.Time // zero while it is open
	Unplaced bool      // finished, and nobody knows when
	Handled  time.Time // up to when; zero when it is not known
	Parents  []string
	Children []string
	Troubles []lease.Trouble
}

type workerInfo struct {
	lease.Worker
	Life   life
	Leads  bool
	Leases int
	Load   float64
}

// assess makes what is shown from what was seen.
func assess(name string, s sighting, now time.Time) application {
	a := application{Name: name, Seen: s.at, Trouble: s.err, LagErr: s.lagErr, Streams: streamsOf(s.view.Leases)}
	workers := a.addWorkers(s)
	finished := map[lease.Key]bool{}
	for _, l := range s.view.Leases {
		finished[l.Key] = l.Finished()
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
		f := facts{lease: l, paused: isPaused(s.view.Paused, l.Stream), living: a.Living, retention: known.retention}
		for _, p := range l.Parents {
			if done, there := finished[lease.Key{Stream: l.Stream, Shard: p}]; there && !done {
				f.waits = append(f.waits, p)
			}
		}
		if i, held := workers[l.Owner]; held {
			w := &a.Workers[i]
			of.Worker = cmp.Or(w.Name, w.Session)
			f.owner, f.life = of.Worker, w.Life
			for _, t := range w.Troubles {
				if t.Key == l.Key {
					of.Troubles = append(of.Troubles, t)
				}
			}
		} else if l.Owner != "" {
			of.Worker, f.owner, f.life = l.Owner, l.Owner, lifeEnded
		}
		if len(of.Troubles) > 0 {
			f.trouble = &of.Troubles[0]
		}
		if !l.Finished() {
			f.lags = s.lags[l.Key]
		}
		of.Lag, of.LagKnown = f.lag()
		of.State, of.Sentence = judge(f)
		a.Shards = append(a.Shards, of)
	}
	a.relate(s, now)
	slices.SortStableFunc(a.Shards, func(x, y shardInfo) int {
		return cmp.Or(cmp.Compare(y.State, x.State), cmp.Compare(y.late(), x.late()), x.Key.Compare(y.Key))
	})
	a.conclude(s)
	return a
}

// addWorkers returns where each session is in a.Workers.
func (a *application) addWorkers(s sighting) map[string]int {
	held, load := map[string]int{}, map[string]float64{}
	for _, l := range s.view.Leases {
		held[l.Owner]++
		load[l.Owner] += l.Load.Bytes()
	}
	for _, w := range s.view.Workers {
		info := workerInfo{Worker: w, Life: lifeOf(w, s.beats[w.Session]), Leads: w.Session == s.view.Leader.Session, Leases: held[w.Session], Load: load[w.Session]}
		if info.Life != lifeEnded && info.Life != lifeSilent {
			a.Living++
			if info.Leads {
				a.Leader = cmp.Or(w.Name, w.Session)
			}
		}
		a.Workers = append(a.Workers, info)
	}
	slices.SortFunc(a.Workers, func(x, y workerInfo) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Session, y.Session))
	})
	at := map[string]int{}
	for i, w := range a.Workers {
		at[w.Session] = i
	}
	return at
}

// relate fills in what shards tell of each other: a shard was closed when its first child was
// opened.
func (a *application) relate(s sighting, now time.Time) {
	at := map[lease.Key]int{}
	for i, of := range a.Shards {
		at[of.Key] = i
	}
	for i := range a.Shards {
		child := &a.Shards[i]
		for _, p := range child.Parents {
			j, there := at[lease.Key{Stream: child.Stream, Shard: p}]
			if !there {
				continue
			}
			parent := &a.Shards[j]
			parent.Children = append(parent.Children, child.Shard)
			if !child.Opened.IsZero() && (parent.Closed.IsZero() || child.Opened.Before(parent.Closed)) {
				parent.Closed = child.Opened
			}
		}
	}
	for i := range a.Shards {
		of := &a.Shards[i]
		if of.Finished() && of.Closed.IsZero() {
			of.Closed = s.gone[of.Key]
			of.Unplaced = of.Closed.IsZero()
		}
	}
	for i := range a.Shards { // a child of which no time is known was opened when its parent was closed
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

// handledUpTo is the time up to which the records of a shard are handled: now less its lag, or when
// the record at its checkpoint arrived.
func handledUpTo(of *shardInfo, now time.Time) time.Time {
	switch {
	case of.Finished():
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

// conclude is the application's own state: that of its worst shard.
func (a *application) conclude(s sighting) {
	var first *shardInfo
	count := map[state]int{}
	for i := range a.Shards {
		of := &a.Shards[i]
		if of.State == stateFinished {
			continue
		}
		a.Open++
		count[of.State]++
		if first == nil {
			first = of
		}
		if of.LagKnown {
			a.LagKnown, a.Worst = true, max(a.Worst, of.Lag)
		}
	}
	switch {
	case len(s.view.Leases) == 0 && len(s.view.Workers) == 0:
		a.State, a.Sentence = stateOK, "The store knows nothing of it."
	case len(s.view.Leases) == 0:
		a.State, a.Sentence = stateWaiting, "It has workers and no shards yet."
	case first == nil:
		a.State, a.Sentence = stateFinished, fmt.Sprintf("All %d shards were read to their ends.", len(a.Shards))
	case first.State <= stateOK:
		a.State, a.Sentence = stateOK, plural(a.Open, "The shard is read", fmt.Sprintf("All %d shards are read", a.Open))
		switch {
		case a.LagKnown && a.Worst >= time.Second:
			a.Sentence += ", the worst is " + short(a.Worst) + " behind"
		case a.LagKnown:
			a.Sentence += ", and nothing waits"
		}
		a.Sentence += "."
	default:
		a.State = first.State
		a.Sentence = "Shard " + shortID(first.Shard) + " " + first.Sentence
		if n := count[first.State] - 1; n > 0 {
			a.Sentence += fmt.Sprintf("; %d more %s %s", n, plural(n, "is", "are"), first.State)
		}
		a.Sentence += "."
	}
	if a.Leader == "" && a.Living > 0 && a.Open > 0 {
		a.Sentence += " Nobody leads."
	}
}

// late is the lag that counts: what comes from reading once a second does not order anything.
func (of *shardInfo) late() time.Duration {
	if of.Lag <= enough {
		return 0
	}
	return of.Lag
}

// lineage is how a shard is related to others, in words.
func (of shardInfo) lineage() string {
	var parts []string
	switch len(of.Parents) {
	case 1:
		parts = append(parts, "split from "+shortID(of.Parents[0]))
	case 2:
		parts = append(parts, "merged from "+strings.Join(shorts(of.Parents), " and "))
	}
	switch len(of.Children) {
	case 1:
		parts = append(parts, "merged into "+shortID(of.Children[0]))
	case 2:
		parts = append(parts, "split into "+strings.Join(shorts(of.Children), " and "))
	}
	return strings.Join(parts, ", ")
}

func isPaused(paused []string, stream string) bool {
	return slices.Contains(paused, "") || slices.Contains(paused, stream)
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
