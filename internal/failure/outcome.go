package failure

// Outcome is how a call of the user's code ended.
type Outcome uint8

const (
	Succeeded   Outcome = iota
	AsksForNext         // the function that pulls has the batch, and asks for the next one
	WantedBack          // the handler stopped because another worker is to have the lease
	StopsRun            // the user's code ends Run
	Failed
)

// Result describes a call of the user's code that did not succeed.
type Result struct {
	Outcome Outcome
	Blame   Blame
	Done    bool // all records of the call are done, and the call was about nothing else
	Pulled  bool // the batch is with a function that pulls
	Over    bool // the term is over
}

// Next is the next step after a call of the user's code.
type Next uint8

const (
	Advance  Next = iota // all records of the call are done
	PassOn               // the function that pulls has the batch
	Leave                // the next owner gets the rest, or the function that pulls at its next call
	Stop                 // Run ends
	Abort                // the term is over
	LeaveOut             // the records that the handler left out are given up
	Deny                 // the handler failed at a record that it had noted as done
	Retry                // the policy judges the failure
)

// Decide returns what follows a call. gives says that records may be given up.
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

// Blame is the part of a handler's error that names records of the call.
type Blame struct {
	Named    bool // the handler failed at the first record that is not done
	Rejected bool // that record can never succeed
	Untried  int  // number of records from there on that were left out because of their age
	Denied   bool // the handler failed at a record that it had noted as done
}

// Placing is where a record that an error names stands in the call that returned the error.
type Placing uint8

const (
	NamedOther Placing = iota // the call was not about the record
	NamedDone                 // the handler noted during the call that the record is done
	NamedHere                 // the record is not done, and all records before it are
)

// Place returns where the record with the index named stands in a call about the records from begun
// to limit, when done records of the batch are done.
func Place(named, begun, done, limit int) Placing {
	switch {
	case named < begun || named >= limit:
		return NamedOther
	case named < done:
		return NamedDone
	}
	return NamedHere
}
