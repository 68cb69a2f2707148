package deadletter

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// State is what became of a letter.
type State string

const (
	Kept    State = "kept"    // nothing yet
	Begun   State = "begun"   // handling it again began, and nobody knows how that ended
	Done    State = "done"    // it was handled again
	Dropped State = "dropped" // a person said that it is not needed
)

// Item is a letter and what became of it.
type Item struct {
	Letter
	State State     `json:"state"`
	Since time.Time `json:"since,omitzero"` // of the state; zero while it is Kept
}

// Box is a [Destination] whose letters can be looked at and handled again. Its methods may be
// called concurrently, also while workers put letters into it.
type Box interface {
	Destination
	// Items yields all letters, those that were put first first. Whatever cannot be read is yielded
	// as an error, and the rest follows unless the box as a whole cannot be read.
	Items(ctx context.Context) iter.Seq2[Item, error]
	// Mark notes the state of letters, durably. It fails with [ErrChanged] for each letter that
	// this box has yielded or marked, and that was put again or marked through another Box since
	// then. It marks the other letters. A box that has yielded some letters may treat the rest in
	// the same way.
	Mark(ctx context.Context, to State, ids ...string) error
}

// ErrChanged is returned by [Box].Mark for letters that somebody else has changed since they were
// yielded: another who handles letters again has taken them, or they were given up again.
var ErrChanged = errors.New("weir: somebody else has changed the letter")

// Filter chooses letters. The zero Filter chooses all; of several members all have to hold.
type Filter struct {
	IDs          []string // IDs of letters, or of their records; nil selects every letter
	App          string   // the application that gave the record up
	Stream       string
	Shard        string // by its whole ID
	Key          string // partition key
	Error        string // a part of the error or of its type
	Reason       Reason
	Since, Until time.Time // when it was given up: not before Since, before Until
	States       []State   // any of them; nil is every state
}

// Matches reports whether the filter chooses a letter.
func (f *Filter) Matches(i *Item) bool {
	switch {
	case f.IDs != nil && !slices.Contains(f.IDs, i.ID) && !slices.Contains(f.IDs, i.RecordID()),
		f.App != "" && f.App != i.App,
		f.Stream != "" && f.Stream != i.Stream,
		f.Shard != "" && f.Shard != i.Shard,
		f.Key != "" && f.Key != i.PartitionKey,
		f.Error != "" && !strings.Contains(i.Error, f.Error) && !strings.Contains(i.ErrorType, f.Error),
		f.Reason != "" && f.Reason != i.Reason,
		!f.Since.IsZero() && i.GivenUp.Before(f.Since),
		!f.Until.IsZero() && !i.GivenUp.Before(f.Until),
		f.States != nil && !slices.Contains(f.States, i.State):
		return false
	}
	return true
}

// Outcome is what [Retry] did.
type Outcome struct {
	Done   int // letters that were handled
	Failed int // that failed, and are Kept as before
	Taken  int // that somebody else has taken meanwhile; they were left alone
}

// Retry hands letters to handle, one after the other, in the order in which they were put. Each is
// marked Begun before, and Done after, or Kept again if handle failed. One whose outcome nobody
// learned, because the process ended in between, stays Begun: a person has to say what becomes of
// it. Retry goes on after a failure of handle, and returns the first of them; it ends with a
// failure of the box, and with ctx. When several call it at once, each with a Box of its own, one
// of them takes each letter.
func Retry(ctx context.Context, b Box, items []Item, handle func(context.Context, Item) error) (o Outcome, err error) {
	var first error
	for _, i := range items {
		if ctx.Err() != nil {
			return o, errors.Join(context.Cause(ctx), first)
		}
		if err := b.Mark(ctx, Begun, i.ID); errors.Is(err, ErrChanged) {
			o.Taken++
			continue
		} else if err != nil {
			return o, errors.Join(fmt.Errorf("weir: marking letter %s as begun: %w", i.ID, err), first)
		}
		to := Done
		if err := handle(ctx, i); err != nil {
			if ctx.Err() != nil { // how far it got nobody knows
				return o, errors.Join(context.Cause(ctx), first)
			}
			to = Kept
			o.Failed++
			if first == nil {
				first = fmt.Errorf("weir: letter %s: %w", i.ID, err)
			}
		} else {
			o.Done++
		}
		// What was done is marked also if ctx has just ended. A record that was given up again
		// meanwhile stays so.
		if err := b.Mark(context.WithoutCancel(ctx), to, i.ID); err != nil && !errors.Is(err, ErrChanged) {
			return o, errors.Join(fmt.Errorf("weir: marking letter %s as %s: %w", i.ID, to, err), first)
		}
	}
	return o, first
}
