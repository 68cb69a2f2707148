package fanout

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/wire/codec"
)

// eventMemory provides the memory of a subscription's events. Two limits apply: the room in the
// queue of events that wait for the handler, and the shard's share of the memory budget.
type eventMemory struct{ *subscription }

// Take waits for n bytes.
func (m eventMemory) Take(ctx context.Context, n int) error {
	if err := m.await(ctx, n); err != nil {
		return err
	}
	if m.share.TryTake(n, n) == 0 {
		m.now(health.AwaitingMemory)
		ctx, cancel := context.WithTimeoutCause(ctx, memoryPatience, errCrowded)
		defer cancel()
		if err := m.share.Take(ctx, n); err != nil {
			return err
		}
	}
	m.now(health.Subscribed)
	m.taking += n
	return nil
}

// TryTake takes between least and most bytes, or no bytes.
func (m eventMemory) TryTake(least, most int) int { return m.share.TryTake(least, most) }

// TakeExcess accounts for n bytes that are already in memory.
func (m eventMemory) TakeExcess(n int) { m.share.TakeExcess(n) }

// Give returns n bytes.
func (m eventMemory) Give(n int) { m.share.Give(n) }

// errCrowded ends a subscription whose next event needs more memory than other shards leave. The
// shard is then polled, because a poll can request fewer records.
var errCrowded = errors.New("no memory is free for an event, because other shards use it")

// memoryPatience is how long a subscription waits for the memory of an event before it ends with
// errCrowded.
const memoryPatience = 2 * memory.OverKept

// pageMemory provides the memory of pages while a shard is polled. It first uses the bytes that
// were reserved before the read, and then free bytes.
type pageMemory struct {
	share   *memory.Share
	granted int // bytes that were reserved before the read
}

// TryTake takes between least and most bytes, or no bytes. If too few bytes are free and the share
// has the reserve of the budget, TryTake takes most bytes, even beyond the budget.
func (m *pageMemory) TryTake(least, most int) int {
	n := min(m.granted, most)
	m.granted -= n
	if n == most {
		return n
	}
	if more := m.share.TryTake(max(least-n, 1), most-n); more > 0 && n+more >= least {
		return n + more
	} else if more > 0 {
		m.share.Give(more)
	}
	if m.share.Exceed(most - n) {
		return most
	}
	m.share.Give(n)
	return 0
}

// TakeExcess accounts for n bytes that are already in memory.
func (m *pageMemory) TakeExcess(n int) { m.share.TakeExcess(n) }

// Give returns n bytes.
func (m *pageMemory) Give(n int) { m.share.Give(n) }

// done returns the bytes that were reserved before the read and not used.
func (m *pageMemory) done() {
	m.share.Give(m.granted)
	m.granted = 0
	m.share.Done()
}

// waitInLine waits for the memory of one record if the last poll lacked it. It holds no connection
// during the wait.
func (f *Reader) waitInLine(ctx context.Context, m *pageMemory) error {
	n := f.Poll.Needs()
	if n == 0 {
		return nil
	}
	f.doing(health.AwaitingMemory)
	got, err := f.Share.AwaitRead(ctx, n)
	m.granted = got.Bytes
	return err
}

// muteListener is the listener while polling. It ignores a lack of memory, because that is not a
// failure.
type muteListener struct {
	source.Listener // may be nil
	f               *Reader
}

func (m *muteListener) Failed(err error, throttled bool, next time.Duration) {
	if short := (*codec.NoMemoryError)(nil); errors.As(err, &short) {
		m.f.doing(health.AwaitingMemory)
		return
	}
	if m.f.polling { // otherwise the failure concerns subscriptions, and judge reports it
		m.f.failing(err)
		m.f.doing(health.ReadFailed)
	}
	if m.Listener != nil {
		m.Listener.Failed(err, throttled, next)
	}
}

func (m *muteListener) Expired(e source.Expiry) {
	if m.Listener != nil {
		m.Listener.Expired(e)
	}
}
