package group

import (
	"context"

	"github.com/weir-go/weir/lease"
)

// note is what a reader has the store keep of deaths.
type note struct {
	text string
	done chan error // gets one; nil when nobody waits
}

// Deaths is what is known of owners that died where the term began, or what the reader noted since.
func (t *Term) Deaths() lease.Deaths {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seldom().deaths
}

// Note has the store keep d with the lease, and returns when that is durable, together with what
// was noted of progress before. It fails with [ErrLeaseLost] if the lease is lost before that, or
// with ctx's error. It is for the reader only.
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

// NoteSoon is Note with the next beat, and does not wait for it. What Note waits for is not
// replaced by it. It may be called concurrently.
func (t *Term) NoteSoon(d lease.Deaths) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setNote(d, nil)
}

// NoteParked is NoteSoon while the reader is parked; else it does nothing.
func (t *Term) NoteParked(d lease.Deaths) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reader.Load() == readerParked {
		t.setNote(d, nil)
	}
}

// setNote returns done, or nil when the lease is lost. It is called with the lock held.
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

// noting is what the next beat says of deaths. It is called with the lock held.
func (t *Term) noting() string {
	if n := t.seldom().note; n != nil && !t.finished {
		return n.text
	}
	return ""
}

// noted takes in that a beat carried a note of deaths, or that the lease is not held any more. It
// is called with the lock held.
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
