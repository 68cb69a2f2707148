package sim

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir"
)

// This file contains the forms of handlers that receive single records.

// eachRecord is a handler that calls one function for each record, and another one at the end of
// the shard.
func (l *life) eachRecord(ctx context.Context, b *weir.Batch) error {
	end := b.End
	none := *b // each call may change its batch, so it gets a copy
	none.Records = nil
	err := weir.RecordFunc(func(ctx context.Context, r weir.Record) error {
		one := none
		one.Records, one.End = []weir.Record{r}, false
		return l.handle(ctx, &one)
	}).Handle(ctx, b)
	if err != nil || !end {
		return err
	}
	return l.handle(ctx, &none)
}

// loop runs a worker that ranges over its records. The body of the loop retries after a failure.
// After half of the failover time, the body leaves the loop instead, because another worker may own
// the record by then and the body cannot know that.
func (l *life) loop(c *weir.Consumer) error {
	for r, err := range c.Records(l.ctx) {
		if err != nil {
			return err
		}
		began := time.Now()
		for attempt := 1; ; attempt++ {
			err := l.handleOne(r, attempt)
			if err == nil {
				break
			}
			late := time.Since(began) > l.w.settings.failover/2
			if late || errors.Is(err, errStop) || errors.Is(err, errDead) || l.ctx.Err() != nil {
				l.walksOut = true
				return nil
			}
		}
	}
	return nil
}

// handleOne handles one record of a loop. The body of the loop counts the attempts.
func (l *life) handleOne(r weir.Record, attempt int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errHandler
		}
	}()
	return l.handle(l.ctx, &weir.Batch{Stream: r.Stream(), Shard: r.Shard(), Records: []weir.Record{r}, Attempt: attempt})
}
