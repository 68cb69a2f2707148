package kinesistest

import (
	"time"

	"github.com/weir-go/weir/kinesistest/internal/engine"
)

// Queue describes a queue for [Server.CreateQueue].
type Queue struct {
	// Stream is the name of an on-demand stream, and Name the name of the queue. Both are required.
	Stream, Name string
	// FromOldest selects the starting position TRIM_HORIZON. The default is LATEST.
	FromOldest bool
	// Visibility is the visibility timeout in whole seconds. The default is 30 seconds.
	Visibility time.Duration
	// MaxReceiveCount is the number of receives after which a record becomes a dead letter. The
	// default is 6, and -1 means that the queue has no dead letters.
	MaxReceiveCount int
}

// QueueState counts the records of a queue.
type QueueState struct {
	Undelivered         int // never received
	Visible             int // received before, and can be received again
	InFlight            int // received, and hidden until their visibility timeout
	VisibleDeadLetters  int // dead letters that can be received
	InFlightDeadLetters int // dead letters that were received, and are hidden
	Acknowledged        int // successful acknowledgements since the queue was created, also of dead letters
	Waiting             int // receives that wait for a record
}

// CreateOnDemandStream creates a stream in on-demand mode, with four shards. Queues need such a
// stream.
func (s *Server) CreateOnDemandStream(name string) {
	s.help()
	s.must(s.engine.Run(time.Now(), engine.NewCreateOnDemand(name)))
	s.must(s.engine.Finish(time.Now(), name))
}

// CreateQueue creates a queue and returns its ARN.
func (s *Server) CreateQueue(q Queue) (arn string) {
	s.help()
	create := s.engine.NewCreateQueue(q.Stream, q.Name, q.FromOldest, q.Visibility, q.MaxReceiveCount)
	s.must(s.engine.Run(time.Now(), create))
	s.must(s.engine.FinishQueue(time.Now(), q.Name))
	return create.ARN
}

// DeleteQueue deletes a queue.
func (s *Server) DeleteQueue(name string) {
	s.help()
	arn, err := s.engine.QueueARN(time.Now(), name)
	s.must(err)
	s.must(s.engine.Run(time.Now(), engine.NewDeleteQueue(arn)))
	s.must(s.engine.FinishQueue(time.Now(), name))
}

// QueueARN returns the ARN of a queue.
func (s *Server) QueueARN(name string) string {
	s.help()
	arn, err := s.engine.QueueARN(time.Now(), name)
	s.must(err)
	return arn
}

// QueueState returns the number of records in each state. It counts only records that the stream
// retains.
func (s *Server) QueueState(name string) QueueState {
	s.help()
	state, err := s.engine.QueueState(time.Now(), name)
	s.must(err)
	return QueueState(state)
}
