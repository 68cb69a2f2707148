package failure

import "time"

// History contains the failed calls at one record of a batch. That record is the first one that is
// not done. The goroutine that passes the batch to the handler owns the History.
type History struct {
	Head     int       // index of the record
	Attempts int       // number of failed calls at the record
	Alone    int       // the calls of Attempts that had only this record
	First    time.Time // time of the first failure
	Suspect  time.Time // time of the first failure of a call with only this record
	Latest   time.Time // time of the last failure
	Before   time.Time // time of the failure before Latest; zero if there was none
	Err      error     // error of the last failure
	Held     Action    // reported reason why the record is not dead-lettered although it could be
}

// Reach moves the history to the record with index done, unless it is already there or after it.
// The new record has not failed yet.
func (h *History) Reach(done int) {
	if done > h.Head {
		*h = History{Head: done}
	}
}

// Forget drops all failures of the record.
func (h *History) Forget() { *h = History{Head: h.Head} }

// Note adds a failure of a call with the records from done on. alone reports whether the record at
// done is the cause.
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
