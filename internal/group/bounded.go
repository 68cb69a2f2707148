package group

import (
	"context"
	"sync"
	"time"
)

// bounded is what [context.WithTimeout] returns, but that its timer is made only for who asks for Done. There is one for each beat, and a store
// that answers at once, or sets a deadline on its connection, asks for nothing.
type bounded struct {
	parent context.Context
	at     time.Time

	mu     sync.Mutex
	inner  context.Context // nil until somebody asks for Done
	cancel context.CancelFunc
	over   bool
}

// bound returns a context that ends with the parent, or after d. It has to be ended.
func bound(parent context.Context, d time.Duration) *bounded {
	return &bounded{parent: parent, at: time.Now().Add(d)}
}

// end ends the context, and frees what it has.
func (b *bounded) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.inner != nil {
		b.cancel()
	}
}

func (b *bounded) Deadline() (time.Time, bool) {
	if sooner, ok := b.parent.Deadline(); ok && sooner.Before(b.at) {
		return sooner, true
	}
	return b.at, true
}

func (b *bounded) Done() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inner == nil {
		b.inner, b.cancel = context.WithDeadline(b.parent, b.at)
		if b.over {
			b.cancel()
		}
	}
	return b.inner.Done()
}

func (b *bounded) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.inner != nil:
		return b.inner.Err()
	case b.parent.Err() != nil:
		return b.parent.Err()
	case b.over:
		return context.Canceled
	case !time.Now().Before(b.at):
		return context.DeadlineExceeded
	}
	return nil
}

// Value asks what Done comes from, so that contexts made from this one hear of its end without a goroutine each.
func (b *bounded) Value(key any) any {
	b.mu.Lock()
	inner := b.inner
	b.mu.Unlock()
	if inner != nil {
		return inner.Value(key)
	}
	return b.parent.Value(key)
}
