package fanout

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/polling"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/wire/codec"
)

// eventMemory is the memory of a subscription's events: what the handler has left of the queue, and
// the share of the budget.
type eventMemory struct{ *subscription }

// Take waits for n bytes.
func (m eventMemory) Take(ctx context.Context, n int) error {
	if err := m.await(ctx, n); err != nil {
		return err
	}
	if m.share.TryTake(n, n) == 0 {
		m.now(source.AwaitingMemory)
		ctx, cancel := context.WithTimeoutCause(ctx, memoryPatience, errCrowded)
		defer cancel()
		if err := m.share.Take(ctx, n); err != nil {
			return err
		}
	}
	m.now(source.Subscribed)
	m.taking += n
	return nil
}

// TryTake takes between least and most bytes, or none.
func (m eventMemory) TryTake(least, most int) int { return m.share.TryTake(least, most) }

// TakeExcess takes what is there already.
func (m eventMemory) TakeExcess(n int) { m.share.TakeExcess(n) }

// Give gives back.
func (m eventMemory) Give(n int) { m.share.Give(n) }

// errCrowded is why a subscription is given up whose events are larger than the memory that other
// shards leave. Polling can ask for less.
var errCrowded = errors.New("other shards' records leave no memory for an event")

// memoryPatience is how long memory is waited for before something else is tried.
const memoryPatience = 2 * memory.OverKept

// pageMemory is the memory of the pages of a shard that is polled meanwhile. What a single record
// needs is waited for, though not for as long as a call may take; where more was asked for, less is
// asked for instead.
type pageMemory struct {
	share *memory.Share
	ctx   context.Context
	poll  *polling.Poll
}

// TryTake takes between least and most bytes, or none.
func (m *pageMemory) TryTake(least, most int) int {
	if n := m.share.TryTake(least, most); n > 0 || m.poll.Limit > 1 {
		return n
	}
	ctx, cancel := context.WithTimeout(m.ctx, memoryPatience)
	defer cancel()
	if m.share.Take(ctx, least) != nil {
		return 0
	}
	return least
}

// TakeExcess takes what is there already.
func (m *pageMemory) TakeExcess(n int) { m.share.TakeExcess(n) }

// Give gives back.
func (m *pageMemory) Give(n int) { m.share.Give(n) }

// askForLess has the fallback poll fewer records at a time when there is no memory for an answer,
// until fan-out is back.
func (f *Reader) askForLess() {
	f.limit = f.Poll.Limit
	f.Poll.Listener = &askForLessListener{f.Poll.Listener, f}
}

// askForLessListener is what askForLess has hear of failures.
type askForLessListener struct {
	source.Listener // may be nil
	f               *Reader
}

func (m *askForLessListener) Failed(err error, throttled bool, next time.Duration) {
	if short := (*codec.NoMemoryError)(nil); errors.As(err, &short) && m.f.Poll.Limit > 1 {
		m.f.Poll.Limit = max(m.f.Poll.Limit/4, 1)
		m.f.doing(source.AwaitingMemory)
		return
	}
	if m.f.polling { // else it is about subscriptions, which are judged
		m.f.failing(err)
		m.f.doing(source.BackingOff)
	}
	if m.Listener != nil {
		m.Listener.Failed(err, throttled, next)
	}
}

func (m *askForLessListener) Expired(e source.Expiry) {
	if m.Listener != nil {
		m.Listener.Expired(e)
	}
}
