package sim

import (
	"slices"
	"strings"
	"testing"
)

// Shrink repeats a simulation that broke a promise, with fewer and fewer faults, in at most runs
// runs. It returns the result with the fewest faults that breaks the same kind of promise, with its
// complete history. It returns r if no repetition breaks it.
func Shrink(t *testing.T, r Result, p Profile, o Options, runs int) Result {
	try := func(faults []string) (Result, bool) {
		runs--
		o.Allowed, o.Whole = map[string]bool{}, true
		for _, f := range faults {
			o.Allowed[f] = true
		}
		got := Run(t, r.Seed, p, o)
		return got, got.Wrong != "" && kind(got.Wrong) == kind(r.Wrong)
	}
	best, ok := try(r.Struck)
	if !ok {
		return r
	}
	// This is delta debugging: it omits ever smaller parts of the faults. Not all allowed faults
	// happen, because a history ends where a promise breaks.
	for parts := 2; runs > 0 && len(best.Struck) > 0; {
		faults := best.Struck
		size := (len(faults) + parts - 1) / parts
		smaller := false
		for from := 0; from < len(faults) && runs > 0; from += size {
			left := slices.Concat(faults[:from], faults[min(from+size, len(faults)):])
			if got, ok := try(left); ok && len(got.Struck) < len(best.Struck) {
				best, smaller = got, true
				break
			}
		}
		switch {
		case smaller:
			parts = max(parts-1, 2)
		case size <= 1:
			return best
		default:
			parts = min(parts*2, len(faults))
		}
	}
	return best
}

// kind returns the first words of a violation, without numbers. Equal words mean the same kind of
// violation.
func kind(wrong string) string {
	words := strings.FieldsFunc(wrong, func(r rune) bool { return r < 'a' || r > 'z' })
	words = slices.DeleteFunc(words, func(w string) bool { return len(w) < 4 })
	return strings.Join(words[:min(len(words), 4)], " ")
}

// Story returns the last part of a history that concerns the violation. It leaves out other shards
// and successful reads.
func (r Result) Story(most int) []string {
	var told []string
	for _, line := range r.History {
		shard := strings.Index(line, "shardId-")
		switch {
		case shard >= 0 && strings.Contains(r.Wrong, "shardId-") && !strings.Contains(r.Wrong, line[shard:min(shard+20, len(line))]):
		case strings.Contains(line, " GetRecords"), strings.Contains(line, " view has effect"):
		case strings.Contains(line, " view"), strings.Contains(line, " GetShardIterator"):
			if strings.Contains(line, ": ") || strings.HasSuffix(line, "answered") {
				continue
			}
			if fields := strings.Fields(line); len(fields) <= 4 {
				continue
			}
			told = append(told, line)
		default:
			told = append(told, line)
		}
	}
	return told[max(0, len(told)-most):]
}
