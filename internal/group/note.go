package group

import (
	"context"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// note is a record of deaths that a reader wants to store with its lease.
type note struct {
	text string
	done chan error // receives one result; nil if no caller waits
}

// Deaths returns the last note, or the stored deaths if there is no note. The stored deaths are
// those of previous owners at the position where this term began.
func (t *Term) Deaths() lease.Deaths {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seldom().deaths
}

// Note stores d with the lease. It returns when d and all progress from before the call are
// durable. It returns [ErrLeaseLost] if the lease is lost first, and the cause of ctx or of Context
// if that ends first. Only the reader may call it.
func (t *Term) Note(ctx context.Context, d lease.Deaths) error {
	t.mu.Lock()
	done := t.setNote(d, make(chan error, 1))
	t.mu.Unlock()
	if done == nil {
		return ErrLeaseLost
	}
	t.poke()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.Context().Done():
		return context.Cause(t.Context())
	}
}

// NoteSoon stores d with the next heartbeat and does not wait. It does nothing while a call of Note
// waits. It may be called concurrently.
func (t *Term) NoteSoon(d lease.Deaths) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setNote(d, nil)
}

// NoteParked is like NoteSoon if the reader is parked. Otherwise it does nothing.
func (t *Term) NoteParked(d lease.Deaths) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reader.Load() == readerParked {
		t.setNote(d, nil)
	}
}

// setNote makes d the next note and returns its argument done. It changes nothing and returns nil
// if the term is over, or if done is nil and a call of Note waits. The caller holds the lock.
func (t *Term) setNote(d lease.Deaths, done chan error) chan error {
	if t.lost || t.left || t.finished {
		return nil
	}
	r := t.rarely()
	if done == nil && r.note != nil && r.note.done != nil {
		return nil
	}
	r.deaths, r.note = d, &note{d.String(), done}
	return done
}

// noting returns the deaths that the next heartbeat must store. The caller holds the lock.
func (t *Term) noting() string {
	if n := t.seldom().note; n != nil && !t.finished {
		return n.text
	}
	return ""
}

// noted evaluates the answer to a heartbeat that carried a note. over reports that the lease is
// lost or released. The caller holds the lock.
func (t *Term) noted(text string, held, over bool) {
	n := t.seldom().note
	switch {
	case n == nil:
	case held && text == n.text:
		t.rare.note = nil
		if n.done != nil {
			n.done <- nil
		}
	case over:
		t.rare.note = nil
		if n.done != nil {
			n.done <- ErrLeaseLost
		}
	}
}

// Numbers returns the text for [lease.Lease.Numbers] at a position. The heartbeat loop calls it, so
// it must not block. It must not call methods of the term.
type Numbers interface {
	Numbers(at shard.Position) string
}

// Numbers returns the argument of the last SetNumbers, or nil.
func (t *Term) Numbers() Numbers {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seldom().numbers
}

// StoredNumbers returns the numbers that the lease had when the term began. It returns "" after
// SetNumbers.
func (t *Term) StoredNumbers() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seldom().stored
}

// SetNumbers makes heartbeats store the numbers that n returns, together with each position.
func (t *Term) SetNumbers(n Numbers) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.rarely()
	r.numbers, r.stored = n, ""
}
