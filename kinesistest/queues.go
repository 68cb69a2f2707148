package kinesistest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weir-go/weir/kinesistest/internal/codec"
	"github.com/weir-go/weir/kinesistest/internal/engine"
)

// QueueConfig selects how queues behave where the documentation of the service is silent. Every
// zero field has a default. docs/kinesistest.md explains the choices.
type QueueConfig struct {
	// AcceptExpired keeps a receipt handle valid after its visibility timeout, until the record is
	// received again. By default a handle is valid only while its visibility timeout runs.
	AcceptExpired bool

	// AcceptSuperseded keeps all receipt handles of a record valid until the record is acknowledged
	// or becomes a dead letter. It includes AcceptExpired.
	AcceptSuperseded bool

	// AcceptRepeated makes the acknowledgement of an acknowledged record succeed. By default the
	// entry fails with ResourceNotFoundException.
	AcceptRepeated bool

	// DeadOnReceive makes a record a dead letter when a receive would exceed MaxReceiveCount. By
	// default it becomes a dead letter when the visibility timeout of its last receive ends, or is
	// set to 0.
	DeadOnReceive bool

	// KeepDeadLetterCount makes a receive of a dead letter leave its ReceiveCount as it is. By
	// default the receive increases it.
	KeepDeadLetterCount bool

	// CountDeadLetters counts received dead letters as in flight. By default only records of the
	// normal path count.
	CountDeadLetters bool

	// MaxInFlight is the maximum number of records of one queue in flight. The default is 120,000.
	MaxInFlight int

	// ThrottleInFlight makes a receive fail with ThrottlingException while MaxInFlight records are
	// in flight. By default it waits like a receive of an empty queue.
	ThrottleInFlight bool

	// MaxHold is the maximum time for which visibility updates can hide a record, counted from its
	// receive. A longer update fails with InvalidArgumentException. The default is no maximum.
	MaxHold time.Duration

	// MaxAnswerBytes is the maximum size of the data in the answer to a receive. One record is
	// always returned, whatever its size. The default is no maximum.
	MaxAnswerBytes int64

	// FillBatch makes a receive wait until Limit records are visible, or its wait ends. By default
	// it returns as soon as one record is visible.
	FillBatch bool

	// LatestAtCreation makes a queue with starting position LATEST begin with the records that
	// arrive after the CreateQueue call. By default it begins with the records that arrive after
	// the queue has become ACTIVE. There is no difference without a StateDelay.
	LatestAtCreation bool

	// EmptyUnlessActive makes a receive of a queue that is CREATING or DELETING wait like a receive
	// of an empty queue. By default it fails with ResourceNotFoundException.
	EmptyUnlessActive bool

	// Ordered delivers new records in the order of their arrival, after records that were delivered
	// before. By default a receive selects at random among up to 64 new records of all shards, and
	// between new and old ones, so that a consumer cannot rely on an order. The choices are the
	// same in each run.
	Ordered bool

	// ForgetAcknowledgements makes every nth successful acknowledgement of a queue have no effect:
	// the record is delivered again after its visibility timeout. The service documents that this
	// happens on rare occasions. The default is 0, which means never.
	ForgetAcknowledgements int
}

func (cfg *QueueConfig) setDefaults() {
	if cfg.MaxInFlight == 0 {
		cfg.MaxInFlight = 120_000
	}
}

func (cfg *QueueConfig) check() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"MaxInFlight", int64(cfg.MaxInFlight)}, {"MaxHold", int64(cfg.MaxHold)},
		{"MaxAnswerBytes", cfg.MaxAnswerBytes}, {"ForgetAcknowledgements", int64(cfg.ForgetAcknowledgements)},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("Config.Queues.%s %d: it cannot be negative", f.name, f.value))
		}
	}
	return errors.Join(errs...)
}

// do carries out a call. A receive from a queue lasts until a record is visible or its wait ends.
// If its client has gone, it must not take records from other receives.
func (s *Server) do(x *exchange, req engine.Request, inject engine.Inject, out *codec.Encoder) error {
	receive, ok := req.(*engine.ReceiveQueueRecords)
	var gone <-chan struct{}
	if ok {
		if gone = s.receives.of(x.r); left(x.r.Context(), gone) {
			panic(http.ErrAbortHandler)
		}
	}
	err := s.engine.Do(time.Now(), x.action, req, inject, out)
	if !ok || err != nil || receive.Waiter == nil {
		return err
	}
	ctx, cancel := context.WithCancel(x.r.Context())
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	timer := time.NewTimer(receive.Waiter.After)
	defer timer.Stop()
	for err == nil && receive.Waiter != nil {
		timer.Reset(receive.Waiter.After)
		select {
		case <-receive.Waiter.Woken():
		case <-timer.C:
		case <-ctx.Done():
		case <-gone:
		}
		if left(ctx, gone) {
			s.engine.StopWaiting(receive.Waiter)
			panic(http.ErrAbortHandler)
		}
		err = s.engine.Do(time.Now(), x.action, req, inject, out)
	}
	return err
}
