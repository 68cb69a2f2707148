package failure

import "time"

// History records the failed calls at one record of a batch: the first that is not done. It belongs
// to the goroutine that hands the batch over.
type History struct {
	Head     int       // index of the record
	Attempts int       // calls that failed at it
	Alone    int       // calls among Attempts that were about this record alone
	First    time.Time // first failure
	Suspect  time.Time // first failure of the record alone
	Latest   time.Time // last failure
	Before   time.Time // failure before Latest; zero if there was none
	Err      error     // error of the last failure
	Held     Action    // reported reason why the record is not given up although it could be
}

// Reach moves the history to the record at an index, unless it is there or past it. That record has
// not failed yet.
func (h *History) Reach(done int) {
	if done > h.Head {
		*h = History{Head: done}
	}
}

// Forget drops all failures of the record.
func (h *History) Forget() { *h = History{Head: h.Head} }

// Note adds a failure of a call about the records from done on. alone says that the record at done
// is the one at fault.
func (h *History) Note(err error, done int, alone bool, now time.Time) {
	h.Reach(done)
	h.Attempts++
	h.Before, h.Latest = h.Latest, now
	if h.Err = err; h.First.IsZero() {
		h.First = now
	}
	if alone {
		if h.Alone++; h.Alone == 1 {
			h.Suspect = now
		}
	}
}
