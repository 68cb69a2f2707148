package fanout

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir/internal/memory"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/internal/wire/codec"
)

// eventMemory is the memory of a subscription's events: the room that the handler has left in the
// queue, and the share of the budget.
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

// TakeExcess counts n bytes that are in memory already.
func (m eventMemory) TakeExcess(n int) { m.share.TakeExcess(n) }

// Give gives n bytes back.
func (m eventMemory) Give(n int) { m.share.Give(n) }

// errCrowded ends a subscription whose events are larger than the memory that other shards leave.
// Polling can request less.
var errCrowded = errors.New("other shards' records leave no memory for an event")

// memoryPatience is how long a reader waits for memory before it tries something else.
const memoryPatience = 2 * memory.OverKept

// pageMemory supplies the memory of pages while a shard is polled: first the bytes that were taken
// before the read, then free bytes.
type pageMemory struct {
	share   *memory.Share
	granted int // bytes that were taken before the read
}

// TryTake takes between least and most bytes, or none. With the reserve it takes most.
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

// TakeExcess counts n bytes that are in memory already.
func (m *pageMemory) TakeExcess(n int) { m.share.TakeExcess(n) }

// Give gives n bytes back.
func (m *pageMemory) Give(n int) { m.share.Give(n) }

// done gives back the bytes that were taken before the read and not used.
func (m *pageMemory) done() {
	m.share.Give(m.granted)
	m.granted = 0
	m.share.Done()
}

// waitInLine waits for the memory of one record, without a connection, if the last read by polling
// lacked it.
func (f *Reader) waitInLine(ctx context.Context, m *pageMemory) error {
	n := f.Poll.Needs()
	if n == 0 {
		return nil
	}
	f.doing(source.AwaitingMemory)
	got, err := f.Share.AwaitRead(ctx, n)
	m.granted = got.Bytes
	return err
}

// muteListener is the listener while polling. It ignores a lack of memory, which is not a failure.
type muteListener struct {
	source.Listener // may be nil
	f               *Reader
}

func (m *muteListener) Failed(err error, throttled bool, next time.Duration) {
	if short := (*codec.NoMemoryError)(nil); errors.As(err, &short) {
		m.f.doing(source.AwaitingMemory)
		return
	}
	if m.f.polling { // otherwise it is about subscriptions, which judge reports
		m.f.failing(err)
		m.f.doing(source.BackingOff)
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
