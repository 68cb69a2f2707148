// Package judge decides from the journals of handlers whether a stream was read as weir promises:
// every record, and the records of each key in order. It is pure: the records that were put and the
// journals go in, the verdict comes out.
package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Handling is one record in the hands of one worker's handler.
type Handling struct {
	Shard    string
	Epoch    uint64
	Sequence string // decimal
	Key      string
	Index    int   // which of the records that were put
	At       int64 // Unix nanoseconds on the one clock of the machine
}

// Verdict compares the journals of all workers with the records that were put.
type Verdict struct {
	Put             int // records that the stream took
	Handled         int // handlings, repetitions included
	Distinct        int // records that were handled at least once
	Lost            int // records that never were
	Duplicates      int // repeated handlings of a record
	OrderViolations int // handlings that break one of the rules of Judge

	// Complaints are the first few losses and violations, a sentence each.
	Complaints []string
}

const maxComplaints = 10

func (v *Verdict) complain(format string, args ...any) {
	if len(v.Complaints) < maxComplaints {
		v.Complaints = append(v.Complaints, fmt.Sprintf(format, args...))
	}
}

// Judge compares the keys of the records that were put, by index in the order of each key, with the
// workers' journals, each in the order it was written. A handling breaks the order when
//
//   - it is the first of its record, although a later record of the same key was handled before it;
//   - it leaves out a record in a repetition: a new owner may go back to any record
//     that was handled before, but from there the records of a key must follow in the same order,
//     up to where it had been;
//   - a newer epoch of its shard was there already: two owners at a time.
//
// The first two rules look at a key wherever it was handled, so they reach across splits, merges
// and changes of owner. A repetition in order is counted as duplicates and breaks nothing. A
// handling of something that was never put is an error, since no verdict can be based on such
// journals.
func Judge(put []string, journals map[string][]Handling) (Verdict, error) {
	v := Verdict{Put: len(put)}
	keys := map[string]*keyOrder{}
	epochs := map[string]uint64{} // shard → highest epoch
	seen := make([]bool, len(put))

	for _, h := range merge(journals) {
		if h.Index < 0 || h.Index >= len(put) || put[h.Index] != h.Key {
			return v, fmt.Errorf("worker %s handled record %d with key %q, which was never put", h.worker, h.Index, h.Key)
		}
		v.Handled++
		if seen[h.Index] {
			v.Duplicates++
		} else {
			seen[h.Index] = true
			v.Distinct++
		}
		key := keys[h.Key]
		if key == nil {
			key = &keyOrder{}
			keys[h.Key] = key
		}
		wrong := key.handle(h.Index)
		if h.Epoch < epochs[h.Shard] {
			wrong = fmt.Sprintf("epoch %d of the shard was there already", epochs[h.Shard])
		}
		epochs[h.Shard] = max(epochs[h.Shard], h.Epoch)
		if wrong != "" {
			v.OrderViolations++
			v.complain("worker %s broke the order with record %d of key %s in %s at epoch %d: %s",
				h.worker, h.Index, h.Key, h.Shard, h.Epoch, wrong)
		}
	}
	for i, was := range seen {
		if !was {
			v.Lost++
			v.complain("record %d of key %s was never handled", i, put[i])
		}
	}
	return v, nil
}

// keyOrder follows the handlings of one key.
type keyOrder struct {
	handled []int // the records that were handled, by index, rising
	at      int   // which of handled was handled last
}

// handle takes the next handling and says what is wrong with it, "" for nothing.
func (k *keyOrder) handle(index int) string {
	newest := len(k.handled) - 1
	place, known := slices.BinarySearch(k.handled, index)
	switch {
	case known && place <= k.at+1: // going back to it, or on with a repetition
		k.at = place
		return ""
	case known:
		skipped := k.handled[k.at+1]
		k.at = place
		return fmt.Sprintf("the repetition left out record %d", skipped)
	case place <= newest:
		late := k.handled[newest]
		k.handled = slices.Insert(k.handled, place, index)
		k.at = newest + 1
		return fmt.Sprintf("record %d was handled before it", late)
	case k.at < newest:
		skipped := k.handled[k.at+1]
		k.handled = append(k.handled, index)
		k.at = newest + 1
		return fmt.Sprintf("the repetition left out record %d", skipped)
	default:
		k.handled = append(k.handled, index)
		k.at = newest + 1
		return ""
	}
}

// Clean reports whether nothing was lost and no order broken.
func (v Verdict) Clean() bool { return v.Lost == 0 && v.OrderViolations == 0 }

type handling struct {
	Handling
	worker string
}

// merge puts the journals into one order: by time, but never against the order inside a journal.
// Equal times of different workers go by epoch, which is the order that the store gave them.
func merge(journals map[string][]Handling) []handling {
	var all []handling
	for _, worker := range slices.Sorted(maps.Keys(journals)) {
		var before int64
		for i, h := range journals[worker] {
			if i > 0 {
				h.At = max(h.At, before+1)
			}
			before = h.At
			all = append(all, handling{h, worker})
		}
	}
	slices.SortStableFunc(all, func(a, b handling) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Epoch, b.Epoch))
	})
	return all
}
