package sqlsink

import "github.com/weir-go/weir/deadletter"

// Letters returns a destination for [weir.FailurePolicy].Destination. It stores dead letters in the
// destination to, and then moves the position past their records. Without Letters, the next owner
// of a shard handles a dead-lettered record again if no later record of the shard is done.
//
// A record whose effects are stored gets no dead letter, unless its reason is [deadletter.Killed].
// Put then returns a [*deadletter.LeftOutError], so that weir counts the record as handled. weir
// cannot know that it has effects if the answer of a COMMIT was lost, or if a function fails with
// several records of which some took effect before.
func (s *Sink) Letters(to deadletter.Destination) deadletter.Destination { return s.core.Letters(to) }
