package dashboard

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/lease"
)

// A form contains the state that its page showed. A write is refused if that state has changed. For
// a pause, the state is the list of paused streams. For a drain, the state is whether the session
// of the worker is drained; each start of a worker has a new session. For a reset, the state is the
// epoch and the target of each lease to move.

// pausesSeen encodes the list of paused streams for a form.
func pausesSeen(paused []string) string {
	var all []string
	for _, s := range paused {
		all = append(all, url.QueryEscape(s)+";")
	}
	return strings.Join(all, "")
}

// pausesChanged describes how the paused streams differ from the state in a form. It returns "" if
// nothing has changed.
func pausesChanged(seen string, paused []string) string {
	if seen == pausesSeen(paused) {
		return ""
	}
	if len(paused) == 0 {
		return "This has changed since it was shown: nothing is paused now."
	}
	var all []string
	for _, s := range paused {
		all = append(all, pausable(s))
	}
	return "This has changed since it was shown. Paused now: " + inWords(all) + "."
}

// pausable returns the subject of a sentence about a stream. If stream is "", the subject is the
// whole application.
func pausable(stream string) string {
	if stream == "" {
		return "The whole application"
	}
	return "Stream " + stream
}

// drainSeen encodes the state of a worker for a form.
func drainSeen(w *lease.Worker) string {
	if w.Drain {
		return "drained"
	}
	return "takes"
}

// drainChanged describes how a worker differs from the state in a form. It returns "" if nothing
// has changed.
func drainChanged(seen string, w *lease.Worker) string {
	switch {
	case seen == drainSeen(w):
		return ""
	case w.Drain:
		return "This has changed since it was shown: " + nameOf(w) + " is being drained now."
	}
	return "This has changed since it was shown: " + nameOf(w) + " takes leases now."
}

func nameOf(w *lease.Worker) string { return cmp.Or(w.Name, w.Session) }

// moved is a lease that a reset moves, as a form contains it.
type moved struct {
	epoch uint64 // 0 if the shard has no lease
	to    string
}

// stepsSeen encodes the leases that a reset moves, with their epochs and targets, for a form.
func stepsSeen(steps []change.Step) string {
	var b strings.Builder
	for _, s := range steps {
		if len(s.Actions) > 0 {
			m := movedBy(s)
			fmt.Fprintf(&b, "%d %s %s %s\n", m.epoch, m.to, url.QueryEscape(s.Stream), url.QueryEscape(s.Shard))
		}
	}
	return b.String()
}

func movedBy(s change.Step) moved {
	m := moved{to: s.To.String()}
	if first := s.Actions[0]; first.Kind != lease.Create {
		m.epoch = first.Epoch
	}
	return m
}

// parseSteps decodes the result of [stepsSeen].
func parseSteps(seen string) (map[lease.Key]moved, error) {
	all := map[lease.Key]moved{}
	for line := range strings.Lines(seen) {
		parts := strings.Split(strings.TrimRight(line, "\r\n"), " ") // browsers send \r\n
		if len(parts) != 4 {
			return nil, fmt.Errorf("%.80q is not a lease with its epoch", line)
		}
		epoch, err := strconv.ParseUint(parts[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%.80q is not an epoch", parts[0])
		}
		stream, err := url.QueryUnescape(parts[2])
		if err != nil {
			return nil, fmt.Errorf("%.80q is not a stream", parts[2])
		}
		id, err := url.QueryUnescape(parts[3])
		if err != nil {
			return nil, fmt.Errorf("%.80q is not a shard", parts[3])
		}
		all[lease.Key{Stream: stream, Shard: id}] = moved{epoch, parts[1]}
	}
	return all, nil
}

// stepsChanged describes how the leases differ from the state in a form, with one sentence per
// difference. It returns no sentences if nothing has changed.
func stepsChanged(seen map[lease.Key]moved, steps []change.Step, leases []lease.Lease) []string {
	now := map[lease.Key]moved{}
	for _, s := range steps {
		if len(s.Actions) > 0 {
			now[s.Key] = movedBy(s)
		}
	}
	held := map[lease.Key]*lease.Lease{}
	for i := range leases {
		held[leases[i].Key] = &leases[i]
	}
	var keys []lease.Key
	for key := range seen {
		keys = append(keys, key)
	}
	for key := range now {
		if _, shown := seen[key]; !shown {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, lease.Key.Compare)
	var said []string
	for _, key := range keys {
		was, shown := seen[key]
		is, moves := now[key]
		what := fmt.Sprintf("Shard %s of %s ", shortID(key.Shard), key.Stream)
		switch l := held[key]; {
		case shown && moves && was == is:
		case l != nil && shown && l.Epoch != was.epoch:
			said = append(said, what+fmt.Sprintf("was shown at epoch %d and is at epoch %d now, %s.", was.epoch, l.Epoch, holder(l)))
		case !shown:
			said = append(said, what+"would also be moved, and was not shown.")
		case !moves:
			said = append(said, what+"would no longer be moved.")
		default:
			said = append(said, what+fmt.Sprintf("would be moved to %s, and %s was shown.", is.to, was.to))
		}
	}
	return said
}

func holder(l *lease.Lease) string {
	if l.Owner == "" {
		return "without an owner"
	}
	return "owned by session " + l.Owner
}

// inWords joins names to a list for a sentence, and shortens a long list.
func inWords(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
