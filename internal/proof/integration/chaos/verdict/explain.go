package verdict

import (
	"maps"
	"slices"
	"time"
)

// repeats finds the series of duplicates, and the fault that explains each.
func (j *judge) repeats() {
	for _, name := range slices.Sorted(maps.Keys(j.shards)) {
		for _, e := range j.shards[name].order {
			for i := 0; i < len(e.handlings); {
				if e.handlings[i].before == nil {
					i++
					continue
				}
				end := i + 1
				for end < len(e.handlings) && e.handlings[end].before != nil {
					end++
				}
				j.stretch(e, e.handlings[i:end])
				i = end
			}
		}
	}
}

// stretch explains consecutive duplicates.
func (j *judge) stretch(e *epoch, repeated []*handling) {
	j.v.Repeated += len(repeated)
	head := repeated[0]
	// An owner that resumes late may interfere with the next owner. The duplicates of both owners
	// may then begin in the middle of an owner's work.
	behind := head.opens || head.stale || head.before.stale
	culprit := head.before.life
	if head.stale {
		culprit = e.life
	}
	if behind {
		for _, f := range j.Faults {
			if f.Repeats && f.From <= head.End && head.Start <= f.Until+int64(j.Allowance) && f.struck(culprit) {
				j.kinds[f.Kind].Repeated += len(repeated)
				return
			}
		}
	}
	why := "no fault struck " + culprit + ", whose doing it is"
	if !behind {
		why = "this is not where an owner begins"
	}
	j.v.Unexplained += len(repeated)
	j.violation("repeat", "%s at epoch %d: %s handled %d records again from number %d of key %s on, and %s",
		head.Shard, e.number, e.life, len(repeated), head.Number, head.Key, why)
}

func (f *Fault) struck(life string) bool { return f.Lives == nil || slices.Contains(f.Lives, life) }

// waits measures how long each record waited, and how long it was allowed to wait.
func (j *judge) waits() {
	struck := make([]map[string]bool, len(j.Faults)) // shards that a fault can silence; nil means all
	for i, f := range j.Faults {
		struck[i] = j.shardsOf(f)
	}
	for _, p := range j.Puts {
		h := j.first[p]
		if h == nil {
			continue // the record is lost, which is worse
		}
		wait := time.Duration(h.End - p.At)
		excused, touched := time.Duration(0), false
		reached := p.At // end of the time that has been checked; faults are in order
		for i, f := range j.Faults {
			if from, until := max(f.From, reached), min(f.Until, h.End); until > from && (struck[i] == nil || struck[i][h.Shard]) {
				excused += time.Duration(until - from)
				reached = until
				touched = true
				k := j.kinds[f.Kind]
				k.Wait = max(k.Wait, wait)
			}
		}
		if !touched {
			j.v.Calm = max(j.v.Calm, wait)
		}
		if wait-excused > j.Allowance {
			j.v.Silences++
			j.violation("silence", "number %d of key %s waited for %v in %s until %s handled it, and faults excuse %v of that",
				p.Number, p.Key, wait.Round(time.Millisecond), h.Shard, h.life, excused.Round(time.Millisecond))
		}
	}
}

// shardsOf returns the shards that a fault can silence. These are the shards that it names, the
// shards whose owner it affected, and the shards without a handled record so far.
func (j *judge) shardsOf(f Fault) map[string]bool {
	if f.Lives == nil && f.Shards == nil {
		return nil
	}
	found := map[string]bool{}
	for _, name := range f.Shards {
		found[name] = true
	}
	if f.Lives == nil {
		return found
	}
	for name, s := range j.shards {
		var owner *handling
		for _, e := range s.order {
			for _, h := range e.handlings {
				if h.End <= f.From && (owner == nil || h.End > owner.End) {
					owner = h
				}
			}
		}
		found[name] = found[name] || owner == nil || f.struck(owner.life)
	}
	return found
}
