package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/errtext"
)

// Named is the evaluation of a shard with the shard's name.
type Named struct {
	// Stream is the name of the stream, and Name the ID of the shard.
	Stream, Name string
	Shard
}

// Application is the evaluation of an application.
type Application struct {
	// State is that of the worst unfinished shard, [OK] if all are finished, and [NotKnown] if
	// there are none.
	State State
	// Sentence describes the result: the state, the worst shard with its reason, and the numbers of
	// other shards in each state but OK and Idle.
	Sentence string
	// Worst is the worst shard, nil without unfinished shards.
	Worst *Named
	// Lag is the largest known lag, or [Unknown].
	Lag time.Duration
	// Count is the number of unfinished shards in each state, by [State].
	Count [len(states)]int
}

// Sum evaluates an application by its shards that are not finished. Worse states come first, then
// larger lags, then names, so Worst does not depend on the order of the arguments. Sum neither
// changes nor keeps the slice.
func Sum(shards []Named) Application {
	a, all := Application{Lag: Unknown}, make([]Named, 0, len(shards))
	for _, s := range shards {
		if !s.Finished {
			all = append(all, s)
		}
	}
	switch {
	case len(shards) == 0:
		a.State, a.Sentence = NotKnown, "unknown: it has no shards yet"
		return a
	case len(all) == 0:
		a.State, a.Sentence, a.Lag = OK, "ok: all shards were read to their end", 0
		return a
	}
	worst := slices.MinFunc(all, Compare)
	a.Worst, a.State = &worst, worst.State
	for _, s := range all {
		a.Count[min(s.State, RetentionNear)]++
		a.Lag = max(a.Lag, s.Lag())
	}
	a.Sentence = a.sentence(len(all))
	return a
}

// Unanswered returns the evaluation of an application whose store has not answered since a time.
// known is false if the store has never answered. All shards count as NotKnown, even those that
// were OK before.
func (a Application) Unanswered(since time.Time, known bool) Application {
	text := "unknown: the store has not answered since " + since.UTC().Format("15:04:05") + " UTC"
	if known {
		text += "; before, it was " + a.Sentence
	}
	b := Application{State: NotKnown, Sentence: text, Lag: Unknown}
	for _, n := range a.Count {
		b.Count[NotKnown] += n
	}
	return b
}

// Unanswered returns the evaluation of a shard whose store does not answer. Its state is
// [NotKnown], and its reason [StoreSilent].
func (v Shard) Unanswered() Shard {
	return Shard{
		State: NotKnown, Finished: v.Finished,
		Reason: StoreSilent, Detail: "(before, it was " + v.State.String() + ")",
		ReadLag: Unknown, HandledLag: Unknown, SavedLag: Unknown, Left: Unknown, Caught: Unknown,
	}
}

// Compare orders the worse shard first: by state, then lag, then name.
func Compare(a, b Named) int {
	return cmp.Or(cmp.Compare(b.State, a.State), cmp.Compare(b.Lag(), a.Lag()), strings.Compare(a.Stream, b.Stream), strings.Compare(a.Name, b.Name))
}

func (a *Application) sentence(shards int) string {
	w := a.Worst
	switch {
	case a.State == OK && shards == 1:
		return "ok: its shard is up to date"
	case a.State == OK:
		return fmt.Sprintf("ok: all %d shards are up to date", shards)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s of %s", a.State, w.Name, w.Stream)
	if text := w.Text(); text != "" {
		b.WriteString(", " + text)
	}
	var more []string
	for i := len(states) - 1; i >= int(Idle); i-- {
		if State(i) == Idle && a.State != Idle { //nolint:gosec // there are ten
			continue
		}
		n := a.Count[i]
		if State(i) == a.State { //nolint:gosec // there are ten
			n--
		}
		if n > 0 {
			more = append(more, fmt.Sprintf("%d %s", n, states[i].words))
		}
	}
	if len(more) > 0 {
		b.WriteString("; of the others " + strings.Join(more, ", "))
	}
	return b.String()
}

// clean reduces an external text to one line that shows people what failed.
func clean(text string) string { return errtext.Cut(errtext.Short(text), mostErr) }

// mostErr is the maximum number of bytes of an error in a sentence.
const mostErr = 200
