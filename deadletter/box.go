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

// State is the state of a dead letter.
type State string

const (
	Kept    State = "kept"    // not handled again
	Begun   State = "begun"   // handling it again has begun, and the result is unknown
	Done    State = "done"    // it was handled again
	Dropped State = "dropped" // an operator decided that it is not needed
)

// Item is a dead letter with its state.
type Item struct {
	Letter
	State State     `json:"state"`
	Since time.Time `json:"since,omitzero"` // when the state began; zero for Kept
}

// Box is a [Destination] whose dead letters can be listed and handled again. Its methods may be
// called concurrently, also while workers put dead letters into the box.
type Box interface {
	Destination
	// Items yields all dead letters. The box determines their order. Items yields an error for an
	// unreadable dead letter and continues with the next one, unless the whole box cannot be read.
	Items(ctx context.Context) iter.Seq2[Item, error]
	// Mark stores the state of dead letters durably. It returns [ErrChanged] if a dead letter that
	// this box has yielded or marked was put again since then, or was marked through another Box.
	// It still marks the other dead letters in ids. A box that has yielded at least one dead letter
	// may treat all of its dead letters as yielded.
	Mark(ctx context.Context, to State, ids ...string) error
}

// ErrChanged is returned by [Box].Mark for dead letters that have changed since they were yielded.
// Either another process has marked them, or they were put again.
var ErrChanged = errors.New("weir: another process has changed the dead letter")

// Selection selects dead letters. The zero Selection selects all of them. If several fields are
// set, all of them must match.
type Selection struct {
	IDs          []string // IDs of dead letters or of their records; nil selects all
	App          string   // the application that wrote the dead letter
	Stream       string
	Shard        string // the whole shard ID
	Key          string // partition key
	Error        string // a part of the error or of its type
	Reason       Reason
	Since, Until time.Time // when the record was dead-lettered: at or after Since, before Until
	States       []State   // one of these; nil selects every state
}

// Matches reports whether f selects a dead letter. It is safe for concurrent use.
func (f *Selection) Matches(i *Item) bool {
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
	Done   int // dead letters that were handled
	Failed int // dead letters whose handling failed; they are Kept as before
	Taken  int // dead letters that another process has taken; they were not handled
}

// Retry passes dead letters to handle, one after the other, in the order of items. It marks each
// dead letter as Begun before the call. After the call it marks the dead letter as Done, or as Kept
// if handle failed. If the process ends during the call, or if the call fails after the end of ctx,
// the dead letter stays Begun, because its result is unknown. An operator must then decide about
// it.
//
// Retry continues after an error of handle, and returns the first such error. It stops after an
// error of the box, and when ctx ends. Several processes may call it at the same time, each with
// its own Box. Each dead letter is then handled by one process.
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
			return o, errors.Join(fmt.Errorf("weir: marking dead letter %s as begun: %w", i.ID, err), first)
		}
		to := Done
		if err := handle(ctx, i); err != nil {
			if ctx.Err() != nil { // the result is unknown
				return o, errors.Join(context.Cause(ctx), first)
			}
			to = Kept
			o.Failed++
			if first == nil {
				first = fmt.Errorf("weir: dead letter %s: %w", i.ID, err)
			}
		} else {
			o.Done++
		}
		// Mark a finished dead letter even if ctx has just ended. If the record was dead-lettered
		// again meanwhile, the dead letter stays Kept.
		if err := b.Mark(context.WithoutCancel(ctx), to, i.ID); err != nil && !errors.Is(err, ErrChanged) {
			return o, errors.Join(fmt.Errorf("weir: marking dead letter %s as %s: %w", i.ID, to, err), first)
		}
	}
	return o, first
}
