package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"
)

// Judge finds the following problems in a history:
//
//   - Lost records: records that were never handled, or were handled only by an owner that already
//     had a successor. The progress of such an owner must not count, so the next owner handles the
//     record again. If the next owner did not, the previous owner has saved progress that it was
//     not allowed to save.
//   - Broken order: a number of a key that is first handled after a higher number; records of a
//     shard that do not increase within an epoch, except after a failed call, whose records are
//     handled again; an epoch with two owners.
//   - Overlaps: a call of the handler that begins, or a record that is handled, after the first
//     call of a higher epoch for the same shard. One case is allowed, because a suspended process
//     cannot be interrupted: the rest of a call that was running when its process was frozen. It
//     must end within the allowance after the process has resumed.
//   - Broken checkpoints: a checkpoint that was confirmed to an owner after a later epoch had
//     begun, or a confirmed checkpoint that a later owner does not know.
//   - Unexplained duplicates: a series of duplicates must begin where an owner begins, or where it
//     continues after a failed call. It must be within the time of a fault that may cause
//     duplicates, and must repeat the work of a process that this fault affected.
//   - Silence: a record waits from its put until it is handled. The time during which a fault
//     excuses the record's shard does not count. The remaining time must not be longer than the
//     allowance.
func Judge(h History) Verdict {
	j := &judge{History: h, shards: map[string]*shard{}, kinds: map[string]*Kind{}, said: map[string]int{}}
	j.gather()
	j.owners()
	j.calls()
	j.saves()
	j.records()
	j.repeats()
	if !j.AnyWait {
		j.waits()
	}
	for _, name := range slices.Sorted(maps.Keys(j.kinds)) {
		j.v.Kinds = append(j.v.Kinds, *j.kinds[name])
	}
	return j.v
}

type judge struct {
	History
	v      Verdict
	shards map[string]*shard
	first  map[Put]*handling // first handling of each record, by any process
	kinds  map[string]*Kind
	given  map[Put]*Letter // last dead letter of each record
	said   map[string]int
}

type handling struct {
	Handling
	life   string
	stale  bool      // a higher epoch had begun
	before *handling // the previous handling of the same record
	opens  bool      // first of its epoch, or first after a failed call
}

// shard contains the events of a shard.
type shard struct {
	epochs map[uint64]*epoch
	order  []*epoch // epochs in increasing order
}

type epoch struct {
	number    uint64
	life      string
	begin     int64 // start of its first call
	overtaken int64 // when a higher epoch began; the maximum value if none did
	handlings []*handling
	calls     []Call
	saves     []Save
}

const never = int64(1) << 62

// violation records a violation. It describes only the first few of each kind.
func (j *judge) violation(sort, format string, args ...any) {
	const most = 8
	if j.said[sort]++; j.said[sort] <= most {
		j.v.Violations = append(j.v.Violations, sort+": "+fmt.Sprintf(format, args...))
	} else if j.said[sort] == most+1 {
		j.v.Violations = append(j.v.Violations, sort+": and more")
	}
}

// gather sorts the entries of the journals by shard and epoch, and the faults by kind.
func (j *judge) gather() {
	j.v.Put = len(j.Puts)
	for _, journal := range j.Journals {
		for _, h := range journal.Handlings {
			j.v.Handled++
			e := j.epoch(journal.Life, h.Shard, h.Epoch, h.Start)
			e.handlings = append(e.handlings, &handling{Handling: h, life: journal.Life})
		}
		for _, c := range journal.Calls {
			e := j.epoch(journal.Life, c.Shard, c.Epoch, c.Start)
			e.calls = append(e.calls, c)
		}
		for _, s := range journal.Saves {
			j.v.Saves++
			e := j.epoch(journal.Life, s.Shard, s.Epoch, s.Start)
			e.saves = append(e.saves, s)
		}
	}
	from := int64(0)
	for _, f := range j.Faults {
		k := j.kinds[f.Kind]
		if k == nil {
			k = &Kind{Kind: f.Kind}
			j.kinds[f.Kind] = k
		}
		if !f.Part {
			k.Times++
			from = f.From
		}
		k.Allowed = max(k.Allowed, time.Duration(f.Until-from)+j.Allowance)
	}
}

func (j *judge) epoch(life, name string, number uint64, start int64) *epoch {
	s := j.shards[name]
	if s == nil {
		s = &shard{epochs: map[uint64]*epoch{}}
		j.shards[name] = s
	}
	e := s.epochs[number]
	if e == nil {
		e = &epoch{number: number, life: life, begin: start}
		s.epochs[number] = e
	}
	if e.life != life {
		j.v.Overlaps++
		j.violation("overlap", "%s at epoch %d was with %s and with %s", name, number, e.life, life)
	}
	e.begin = min(e.begin, start)
	return e
}

// owners sorts the epochs of each shard. It determines when the next epoch began.
func (j *judge) owners() {
	for _, s := range j.shards {
		for _, n := range slices.Sorted(maps.Keys(s.epochs)) {
			s.order = append(s.order, s.epochs[n])
		}
		overtaken := never
		for _, e := range slices.Backward(s.order) {
			e.overtaken = overtaken
			overtaken = min(overtaken, e.begin)
			slices.SortStableFunc(e.calls, func(a, b Call) int { return cmp.Compare(a.Start, b.Start) })
			slices.SortStableFunc(e.handlings, func(a, b *handling) int {
				return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
			})
			for _, h := range e.handlings {
				h.stale = h.End > e.overtaken
			}
		}
	}
}

// calls checks the effects and times of the calls of each epoch, one after the other.
func (j *judge) calls() {
	for _, name := range slices.Sorted(maps.Keys(j.shards)) {
		for _, e := range j.shards[name].order {
			failed := map[int64]bool{} // by start
			for _, c := range e.calls {
				failed[c.Start] = c.Failed
				j.begun(name, e, c.Start)
			}
			var before *handling
			var callFirst *big.Int // of the previous call
			first := map[int64]*big.Int{}
			for _, h := range e.handlings {
				if first[h.Start] == nil {
					first[h.Start] = h.Sequence
				}
				switch {
				case before == nil:
					h.opens = true
				case h.Sequence.Cmp(before.Sequence) > 0:
				case failed[before.Start] && h.Start != before.Start && h.Sequence.Cmp(callFirst) >= 0:
					h.opens = true
				default:
					j.v.Disorder++
					j.violation("order", "%s at epoch %d: %s handled number %d of key %s after number %d of key %s, which comes later",
						name, e.number, e.life, h.Number, h.Key, before.Number, before.Key)
				}
				before, callFirst = h, first[h.Start]
				j.begun(name, e, h.Start)
				if h.stale && h.Start <= e.overtaken {
					j.v.Late++
					if !j.thawed(e, h) {
						j.v.Overlaps++
						j.violation("overlap", "%s: %s handled number %d of key %s at epoch %d, %v after a later epoch had begun, and was not frozen",
							name, e.life, h.Number, h.Key, e.number, time.Duration(h.End-e.overtaken))
					}
				}
			}
		}
	}
}

// begun checks a call that began at start.
func (j *judge) begun(name string, e *epoch, start int64) {
	if start > e.overtaken {
		j.v.Overlaps++
		j.violation("overlap", "%s: %s began a call at epoch %d, %v after a later epoch had begun",
			name, e.life, e.number, time.Duration(start-e.overtaken))
	}
}

// thawed reports whether a late handling is allowed. The process of the handling must have been
// suspended when the next epoch began, and the handling must have ended soon after the process
// resumed.
func (j *judge) thawed(e *epoch, h *handling) bool {
	return slices.ContainsFunc(j.Faults, func(f Fault) bool {
		return f.Froze && slices.Contains(f.Lives, h.life) && f.From < e.overtaken && f.To <= h.End && h.End <= f.To+int64(j.Allowance)
	})
}

func (j *judge) saves() {
	for _, name := range slices.Sorted(maps.Keys(j.shards)) {
		s := j.shards[name]
		for i, e := range s.order {
			for _, save := range e.saves {
				if save.Start > e.overtaken {
					j.v.Backwards++
					j.violation("checkpoint", "%s: %s was told that it had saved at epoch %d, %v after a later epoch had begun",
						name, e.life, e.number, time.Duration(save.Start-e.overtaken))
					continue
				}
				for _, later := range s.order[i+1:] {
					if len(later.handlings) > 0 && later.handlings[0].Sequence.Cmp(save.Sequence) <= 0 {
						j.v.Backwards++
						j.violation("checkpoint", "%s: epoch %d began before what epoch %d was told to have saved", name, later.number, e.number)
					}
				}
			}
		}
	}
}

// records finds the first handling of each record, and the records without a valid handling.
func (j *judge) records() {
	j.first = make(map[Put]*handling, len(j.Puts))
	known := make(map[Put]bool, len(j.Puts))
	counts := make(map[Put]bool, len(j.Puts))
	for _, p := range j.Puts {
		known[p] = true
	}
	var all []*handling
	for _, name := range slices.Sorted(maps.Keys(j.shards)) {
		for _, e := range j.shards[name].order {
			all = append(all, e.handlings...)
		}
	}
	slices.SortStableFunc(all, func(a, b *handling) int { return cmp.Compare(a.End, b.End) })
	last := make(map[Put]*handling, len(j.Puts))
	highest := map[string]*handling{} // of each key
	for _, h := range all {
		if !known[h.Put] {
			j.violation("order", "%s handled number %d of key %s, which was never put", h.life, h.Number, h.Key)
			continue
		}
		h.before = last[h.Put]
		last[h.Put] = h
		counts[h.Put] = counts[h.Put] || !h.stale
		if h.before != nil {
			continue
		}
		j.first[h.Put] = h
		if top := highest[h.Key]; top != nil && top.Number > h.Number {
			j.v.Disorder++
			j.violation("order", "number %d of key %s was first handled after number %d (in %s by %s, in %s by %s)",
				h.Number, h.Key, top.Number, h.Shard, h.life, top.Shard, top.life)
		} else {
			highest[h.Key] = h
		}
	}
	j.letters()
	for _, p := range j.Puts {
		switch {
		case counts[p], j.given[p] != nil:
		case last[p] == nil:
			j.v.Lost++
			j.violation("lost", "number %d of key %s was never handled", p.Number, p.Key)
		default:
			j.v.Lost++
			j.violation("lost", "number %d of key %s was handled by %s alone, which did not own %s any more: a checkpoint that it saved after that was accepted",
				p.Number, p.Key, last[p].life, last[p].Shard)
		}
	}
}
