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

// State is the state of a letter.
type State string

const (
	Kept    State = "kept"    // not handled again
	Begun   State = "begun"   // handling it again began, and the result is unknown
	Done    State = "done"    // it was handled again
	Dropped State = "dropped" // an operator decided that it is not needed
)

// Item is a letter with its state.
type Item struct {
	Letter
	State State     `json:"state"`
	Since time.Time `json:"since,omitzero"` // time of the state; zero while it is Kept
}

// Box is a [Destination] whose letters can be listed and handled again. Its methods may be called
// concurrently, even while workers put letters into it.
type Box interface {
	Destination
	// Items yields all letters in the order in which they were put. An unreadable letter is yielded
	// as an error, and the rest follows unless the whole box cannot be read.
	Items(ctx context.Context) iter.Seq2[Item, error]
	// Mark stores the state of letters, durably. It returns [ErrChanged] for each letter that this
	// box has yielded or marked, and that was put again or marked through another Box since then.
	// It marks the other letters. A box that has yielded some letters may treat the rest in the
	// same way.
	Mark(ctx context.Context, to State, ids ...string) error
}

// ErrChanged is returned by [Box].Mark for letters that were changed since they were yielded:
// another process has taken them, or they were put again.
var ErrChanged = errors.New("weir: another process has changed the letter")

// Filter selects letters. The zero Filter selects all. If several fields are set, all must match.
type Filter struct {
	IDs          []string // IDs of letters, or of their records; nil selects every letter
	App          string   // the application that gave the record up
	Stream       string
	Shard        string // the whole shard ID
	Key          string // partition key
	Error        string // a part of the error or of its type
	Reason       Reason
	Since, Until time.Time // when the record was given up: not before Since, before Until
	States       []State   // any of these; nil is every state
}

// Matches reports whether the filter selects a letter.
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

// Outcome is the result of [Retry].
type Outcome struct {
	Done   int // letters that were handled
	Failed int // letters that failed, and are Kept as before
	Taken  int // letters that another process had taken; they were left alone
}

// Retry passes letters to handle, one after the other, in the order in which they were put. Each is
// marked Begun before, and then Done, or Kept again if handle failed. If the process ends in
// between, the letter stays Begun, because its result is unknown: an operator must decide about it.
// Retry continues after an error of handle, and returns the first error. It ends with an error of
// the box, and when ctx ends. If several processes call it at once, each with its own Box, each
// letter is taken by one process.
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
			if ctx.Err() != nil { // the result is unknown
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
		// A finished letter is marked even if ctx has just ended. A record that was given up again
		// meanwhile stays Kept.
		if err := b.Mark(context.WithoutCancel(ctx), to, i.ID); err != nil && !errors.Is(err, ErrChanged) {
			return o, errors.Join(fmt.Errorf("weir: marking letter %s as %s: %w", i.ID, to, err), first)
		}
	}
	return o, first
}
