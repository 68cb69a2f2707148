package failure

// Outcome is the way in which a call of user code ended.
type Outcome uint8

const (
	Succeeded   Outcome = iota
	AsksForNext         // the function that pulls has the batch and requests the next one
	WantedBack          // the handler stopped because another worker will get the lease
	StopsRun            // user code ends Run
	Failed
)

// Result describes a call of user code that did not succeed.
type Result struct {
	Outcome Outcome
	Blame   Blame
	Done    bool // all records of the call are done, and the call had no other purpose
	Pulled  bool // a function that pulls has the batch
	Over    bool // the term is over
}

// Next is the next step after a call of user code.
type Next uint8

const (
	Advance  Next = iota // all records of the call are done
	PassOn               // the function that pulls has the batch
	Leave                // the next owner or the next pull gets the rest
	Stop                 // Run ends
	Abort                // the term is over
	LeaveOut             // give up the records that the handler left out
	Deny                 // the handler failed at a record that it had marked as done
	Retry                // the policy judges the failure
)

// Decide returns the next step after a call. gives reports whether records may be dead-lettered.
func Decide(r Result, gives bool) Next {
	switch {
	case r.Outcome == Succeeded:
		return Advance
	case r.Outcome == AsksForNext:
		return PassOn
	case r.Outcome == WantedBack:
		return Leave
	case r.Outcome == StopsRun:
		return Stop
	case r.Done:
		return Advance
	case r.Over:
		return Abort
	case r.Pulled:
		return Leave
	case r.Blame.Untried > 0 && gives:
		return LeaveOut
	case r.Blame.Denied:
		return Deny
	}
	return Retry
}

// Blame is the part of a handler's error that concerns records of the call.
type Blame struct {
	Named    bool // the handler failed at the first record that is not done
	Rejected bool // the handler can never succeed with that record
	Untried  int  // number of records from there on that were left out because of their age
	Denied   bool // the handler failed at a record that it had marked as done
}

// Placing is the relation between a record that an error names and the call that returned the
// error.
type Placing uint8

const (
	NamedOther Placing = iota // the record was not part of the call
	NamedDone                 // the handler marked the record as done during the call
	NamedHere                 // the record is not done, but all records before it are
)

// Place returns the placing of the record with index named. The call had the records from begun to
// limit. done is the number of records of the batch that are done.
func Place(named, begun, done, limit int) Placing {
	switch {
	case named < begun || named >= limit:
		return NamedOther
	case named < done:
		return NamedDone
	}
	return NamedHere
}
