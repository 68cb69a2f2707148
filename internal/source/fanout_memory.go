package source

import (
	"context"
)

// eventMemory is the memory of a subscription's events: what the handler has left of the queue, and the share of the budget.
type eventMemory struct{ *subscription }

// Take waits for n bytes.
func (m eventMemory) Take(ctx context.Context, n int) error {
	if err := m.await(ctx, n); err != nil {
		return err
	}
	if m.share.TryTake(n, n) == 0 {
		m.now(AwaitingMemory)
		if err := m.share.Take(ctx, n); err != nil {
			return err
		}
	}
	m.now(Subscribed)
	m.taking += n
	return nil
}

// TryTake takes between least and most bytes, or none.
func (m eventMemory) TryTake(least, most int) int { return m.share.TryTake(least, most) }

// Owe takes what is there already.
func (m eventMemory) Owe(n int) { m.share.Owe(n) }

// Give gives back.
func (m eventMemory) Give(n int) { m.share.Give(n) }

// pageMemory is the memory of the pages of a shard that is polled meanwhile. What is not free is waited for, though not for as long as a
// call may take.
type pageMemory struct {
	share *Share
	ctx   context.Context
}

const memoryPatience = callTimeout / 2

// TryTake takes between least and most bytes, or none.
func (m *pageMemory) TryTake(least, most int) int {
	if n := m.share.TryTake(least, most); n > 0 {
		return n
	}
	ctx, cancel := context.WithTimeout(m.ctx, memoryPatience)
	defer cancel()
	if m.share.Take(ctx, least) != nil {
		return 0
	}
	return least
}

// Owe takes what is there already.
func (m *pageMemory) Owe(n int) { m.share.Owe(n) }

// Give gives back.
func (m *pageMemory) Give(n int) { m.share.Give(n) }
