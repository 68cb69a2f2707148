package engine

import (
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
)

// NewCreateOnDemand returns a request to create an on-demand stream.
func NewCreateOnDemand(name string) *CreateStream {
	return &CreateStream{Name: codec.Some(name), mode: codec.Some(onDemand), modeSet: true}
}

// NewCreateQueue returns a request to create a queue. A zero visibility or receives selects the
// default. A negative number of receives means that the queue has no dead letters.
func (e *Engine) NewCreateQueue(of, name string, fromOldest bool, visibility time.Duration, receives int) *CreateQueue {
	config := streamConfiguration{streamRef: streamRef{arn: codec.Some(e.StreamARN(of))}, kind: codec.Some(latest)}
	if fromOldest {
		config.kind = codec.Some(trimHorizon)
	}
	r := &CreateQueue{name: codec.Some(name), streamsSet: true, streams: []streamConfiguration{config}}
	if visibility != 0 {
		r.attributes.visibility = codec.Some(int64(visibility / time.Second))
	}
	switch a := &r.attributes; {
	case receives < 0:
		a.deadSet, a.target = true, codec.Some(noDead)
	case receives > 0:
		a.deadSet, a.target, a.maxReceives = true, codec.Some(builtIn), codec.Some(int64(receives))
	}
	return r
}

// NewDeleteQueue returns a request to delete a queue.
func NewDeleteQueue(arn string) *DeleteQueue {
	return &DeleteQueue{queueRef{codec.Some(arn)}}
}

// namedQueue returns the current state of the queue with this name. The caller holds e.mu.
func (e *Engine) namedQueue(now time.Time, name string) (*queue, error) {
	for _, q := range e.queues {
		if q.name == name && e.settleQueue(q, now) {
			return q, nil
		}
	}
	return nil, notFound("Queue %s under account %s not found.", name, e.cfg.Account)
}

// QueueARN returns the ARN of the queue with this name.
func (e *Engine) QueueARN(now time.Time, name string) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q, err := e.namedQueue(now, name)
	if err != nil {
		return "", err
	}
	return q.arn, nil
}

// FinishQueue ends the status CREATING, UPDATING or DELETING of a queue immediately. It does
// nothing if the queue does not exist.
func (e *Engine) FinishQueue(now time.Time, name string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if q, err := e.namedQueue(now, name); err == nil && q.status != active {
		if q.status == creating {
			q.startLatest()
		}
		q.until = now
		e.settleQueue(q, now)
	}
	return nil
}

// QueueState counts the records of a queue. kinesistest.QueueState describes the fields.
type QueueState struct {
	Undelivered, Visible, InFlight, VisibleDeadLetters, InFlightDeadLetters, Acknowledged, Waiting int
}

// QueueState returns the number of records in each state.
func (e *Engine) QueueState(now time.Time, name string) (QueueState, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	q, err := e.namedQueue(now, name)
	if err != nil {
		return QueueState{}, err
	}
	l := q.ledger
	l.sweep(q.exists)
	return QueueState{
		Undelivered: q.undelivered(),
		Visible:     len(l.visible[normalPath]), InFlight: len(l.hidden[normalPath]),
		VisibleDeadLetters: len(l.visible[deadPath]), InFlightDeadLetters: len(l.hidden[deadPath]),
		Acknowledged: int(q.taken), Waiting: q.waiters(),
	}, nil
}
