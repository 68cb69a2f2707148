package group

import (
	"context"

	"github.com/weir-go/weir/lease"
)

// note is a record of deaths that a reader wants to store.
type note struct {
	text string
	done chan error // receives one result; nil if no caller waits
}

// Deaths returns the known deaths of owners at the position where the term began, or what the
// reader has noted since.
func (t *Term) Deaths() lease.Deaths {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seldom().deaths
}

// Note stores d with the lease. It returns when that is durable, together with the progress that
// was noted before. It returns [ErrLeaseLost] if the lease is lost before that, or ctx's error.
// Only the reader may call it.
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

// NoteSoon stores d with the next heartbeat and does not wait. It does not replace a note that Note
// is waiting for. It may be called concurrently.
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

// setNote returns done, or nil if the lease is lost. The caller holds the lock.
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

// noting returns the deaths for the next heartbeat. The caller holds the lock.
func (t *Term) noting() string {
	if n := t.seldom().note; n != nil && !t.finished {
		return n.text
	}
	return ""
}

// noted handles the answer to a heartbeat that carried a note, or the loss of the lease. The caller
// holds the lock.
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
