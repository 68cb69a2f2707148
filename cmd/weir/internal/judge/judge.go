// Package judge checks whether a stream was read as weir promises: every record was handled, and
// the records of each key in order. Its input is the records that were put, and the journals of the
// handlers. Its output is a verdict.
package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Handling is the handling of one record by one worker.
type Handling struct {
	Shard    string
	Epoch    uint64
	Sequence string // decimal number
	Key      string
	Index    int   // index of the record among those that were put
	At       int64 // Unix nanoseconds; all workers use the clock of the same machine
}

// Verdict is the result of comparing the journals of all workers with the records that were put.
type Verdict struct {
	Put             int // records put into the stream
	Handled         int // handlings, including repeated ones
	Distinct        int // records handled at least once
	Lost            int // records never handled
	Duplicates      int // repeated handlings of records
	OrderViolations int // handlings that break a rule of Judge

	// Complaints describes the first few losses and violations, with a sentence for each.
	Complaints []string
}

const maxComplaints = 10

func (v *Verdict) complain(format string, args ...any) {
	if len(v.Complaints) < maxComplaints {
		v.Complaints = append(v.Complaints, fmt.Sprintf(format, args...))
	}
}

// Judge compares the records that were put with the journals of the workers. put contains the key
// of each record. Records of the same key are in the order in which they were put. Each journal
// must be in the order in which it was written. A handling violates the order in these cases:
//
//   - It is the first handling of its record, but a later record of the same key was handled
//     before.
//   - It skips a record in a repetition. A new owner may go back to any record that was handled
//     before. From there, the records of a key must follow in the same order, up to the last
//     handled record.
//   - A newer epoch of its shard has already appeared. The shard then had two owners at the same
//     time.
//
// The first two rules apply to a key wherever its records are handled, so they cover splits, merges
// and changes of the owner. A repetition in the right order counts as duplicates and violates
// nothing. Judge returns an error if a record was handled that was never put, because such journals
// do not permit a verdict.
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
	handled []int // indexes of the handled records, increasing
	at      int   // position in handled of the last handling
}

// handle adds the next handling. It returns a description of the violation, or "" if there is none.
func (k *keyOrder) handle(index int) string {
	newest := len(k.handled) - 1
	place, known := slices.BinarySearch(k.handled, index)
	switch {
	case known && place <= k.at+1: // goes back to the record, or continues a repetition
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

// Clean reports whether no record was lost and no order was violated.
func (v Verdict) Clean() bool { return v.Lost == 0 && v.OrderViolations == 0 }

type handling struct {
	Handling
	worker string
}

// merge merges the journals by time, and keeps the order within each journal. If two workers have
// handlings at the same time, the lower epoch comes first, because the store granted it first.
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
