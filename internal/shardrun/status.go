package shardrun

import (
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
)

// status is the state of handling a shard. The loop and the goroutines that call the user's code
// write it, and any goroutine may read it.
type status struct {
	mu      lock.Mutex[lock.Shard] // guards the fields below, and Loop.source and Loop.session
	state   health.Reason          // of handling; NoReason if there is nothing to handle
	since   mono.Time
	rate    supervise.Rate // of what is handled
	failure *callFailure   // nil while the last call of the user's code was no failure
	notes
}

// callFailure describes a failure of the user's code.
type callFailure struct {
	err     error
	attempt int
	since   mono.Time // the first failure in a row
	at      lease.Failing
}

// notes are facts about a shard that the supervisor needs at its next look.
type notes struct {
	ended     mono.Time     // when the term's context was seen to have ended
	left      chan struct{} // not nil once the handler was left behind, closed when it returns
	stalls    int16         // terms of the shard in a row, before this one, that stalled
	forAll    bool          // the last read failed, as it would on every worker
	well      bool          // the term has brought something, or there was nothing to bring
	toldSlow  bool          // a slow handler was reported
	toldFails bool          // failing reads were reported
	stays     bool          // PositionExpired was reported for the position that is refused
}

// note changes the notes.
func (s *status) note(f func(*notes)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.notes)
}

// enter sets the state of handling and its error. NoReason means that there is nothing
// to handle, so reports show the state of reading.
func (s *status) enter(state health.Reason, attempt int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.since, s.toldSlow = state, mono.Now(), false
	if err == nil {
		s.failure = nil
	} else {
		s.fails(attempt, err)
	}
}

// failsAgain notes a failure without a change of the state.
func (s *status) failsAgain(attempt int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails(attempt, err)
}

// fails notes a failure. It is called with the lock held.
func (s *status) fails(attempt int, err error) {
	if s.failure == nil {
		s.failure = &callFailure{since: mono.Now()}
	}
	s.failure.err, s.failure.attempt = err, attempt
}

// failsHere notes the record at which the handler fails. The caller must already have entered the
// state that follows the failure.
func (s *status) failsHere(at lease.Failing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		s.failure.at = at
	}
}

// lastFailure returns how many calls of the user's code have failed in a row, and the error of the
// last one. It returns 0 and nil if the last call did not fail.
func (s *status) lastFailure() (attempts int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		return 0, nil
	}
	return s.failure.attempt, s.failure.err
}

// noteHandled notes that the shard has made progress: it handled some bytes, or there was nothing
// to handle.
func (s *status) noteHandled(bytes int, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.well = true
	if bytes > 0 {
		s.rate.Add(bytes, now)
	}
}
