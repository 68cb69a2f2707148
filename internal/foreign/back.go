package foreign

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Write is the change of one row of a client.
type Write struct {
	Row  Row // as it was read; without a value if there is none
	From string
	// To is the position to store: after a record, [shard.End], [shard.Oldest] for the first number
	// of the shard, or zero for a row without a position.
	To shard.Position
	// Raw is the value to store, and "" if To is zero.
	Raw     string
	Parents []string
	Why     string // for people, "" if the value is simply weir's position
	// New is true if the client has no such row. Stays is true if nothing has to be written.
	New, Stays bool
}

// Return is the plan that moves one stream back to a client.
type Return struct {
	Writes []Write // ancestors before descendants
	Notes  []string
}

// BackOptions are the choices of an operator for the way back.
type BackOptions struct {
	// Group is true if the client is harlow/kinesis-consumer with a consumer group.
	Group bool
	// First maps shards to their first sequence numbers. Only lifion-kinesis needs them.
	First map[string]string
	// Replace also moves rows back that are ahead of weir.
	Replace bool
}

// Back plans the way from weir to a client for one stream:
//
//   - A position after a record becomes its sequence number, and a finished lease the client's mark
//     of the end.
//   - A shard at the oldest record or at a time gets no position. The client begins such a shard at
//     the initial position in its configuration. A note says which one to set. lifion-kinesis would
//     begin at the tip: it gets the first sequence number of a child, as at the end of a parent.
//   - A row with newer progress is an error, unless Replace is set.
//
// It also returns an error for a position that the client cannot store.
func Back(c Client, leases []lease.Lease, s change.Stream, st State, o BackOptions) (Return, error) {
	graph := shard.NewGraph(s.Shards)
	ours, theirs := map[string]*lease.Lease{}, map[string]*Row{}
	for i := range leases {
		ours[leases[i].Shard] = &leases[i]
	}
	for i := range st.Rows {
		theirs[st.Rows[i].Shard] = &st.Rows[i]
	}
	var r Return
	var newer []Write
	var again []string // finished shards whose row has an earlier position
	initial := shard.Position{}
	for _, id := range graph.Ordered() {
		sh, _ := graph.Shard(id)
		w := Write{Row: Row{Shard: id}, Parents: sh.Parents}
		at := position(ours, graph, id)
		if ours[id] != nil {
			w.From = at.String()
		}
		if err := w.set(c, s.Name, sh, at, o); err != nil {
			return Return{}, err
		}
		if w.To.IsZero() && !at.IsEnd() {
			initial = earlier(initial, at)
		}
		endless := w.To.IsZero() && at.IsEnd() // the client has no mark for the end
		if endless && !laterIn(ours, graph, id) {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: %s has no mark for the end of a shard, and "+
				"reads this shard again if its initial position is TRIM_HORIZON", id, c))
		}
		if there := theirs[id]; there != nil {
			w.Row = *there
			w.Stays = endless || same(there, w)
			if endless && there.At.Kind() == shard.Sequence && laterIn(ours, graph, id) {
				again = append(again, id)
			}
			if isAhead(there.At, at) && !w.Stays {
				newer = append(newer, w)
			}
		} else {
			w.New, w.Stays = true, w.To.IsZero()
		}
		r.Writes = append(r.Writes, w)
	}
	if len(newer) > 0 && !o.Replace {
		return Return{}, fmt.Errorf(
			"%s is ahead in %d of these shards already, at %s of %s instead of %s: give --replace "+
				"to move it back, which repeats records",
			c, len(newer), newer[0].Row.At, newer[0].Row.Shard, newer[0].From,
		)
	}
	if len(again) > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%s finished, and the rows stay as they are: versions "+
			"up to 0.5.0 read the records after these rows again (%s)",
			areN(len(again), "shard"), strings.Join(again, ", ")))
	}
	r.note(c, initial, leases, graph)
	return r, nil
}

// position returns the position of a shard in weir. A shard without a lease was finished if a
// descendant has a lease.
func position(ours map[string]*lease.Lease, graph *shard.Graph, id string) shard.Position {
	if l := ours[id]; l != nil {
		return l.Position
	}
	if laterIn(ours, graph, id) {
		return shard.End
	}
	return shard.Oldest
}

func laterIn(ours map[string]*lease.Lease, graph *shard.Graph, id string) bool {
	rows := map[string]*Row{}
	for shardID := range ours {
		rows[shardID] = &Row{At: shard.Oldest}
	}
	return descends(graph, rows, id)
}

// set sets the value to store for a position.
func (w *Write) set(
	c Client, stream string, sh shard.Shard, at shard.Position, o BackOptions,
) error {
	switch at.Kind() {
	case shard.Sequence:
		if at.Done() != shard.Whole {
			return fmt.Errorf(
				"lease %s/%s is at %s, inside or before a record, which %s cannot store: let a "+
					"worker of weir handle the whole record, or move the lease with \"weir group "+
					"reset --shard\"",
				stream, sh.ID, at, c,
			)
		}
		w.To, w.Raw = at, at.SequenceNumber()
	case shard.Finished:
		if c == Harlow && !o.Group {
			w.Why = "the end has no mark in this format"
			return nil
		}
		w.To, w.Raw = shard.End, [...]string{
			Harlow: harlowDone, VMware: vmwareEnd, Kinsumer: kinsumerDone, Lifion: lifionDone,
		}[c]
	default:
		w.Why = "no position: the initial position of the configuration"
		if c == Kinsumer {
			w.Why = "no position: it begins at its oldest record"
		}
		if c != Lifion {
			return nil
		}
		if at != shard.Oldest || len(sh.Parents) == 0 || o.First[sh.ID] == "" {
			return fmt.Errorf(
				"lease %s/%s is at %s, and lifion-kinesis begins such a shard at the tip: let a "+
					"worker of weir handle its first record",
				stream, sh.ID, at,
			)
		}
		w.To, w.Raw, w.Why = shard.Oldest, o.First[sh.ID], "the first number of the shard"
	}
	return nil
}

// same reports whether a row has the value already and no owner.
func same(there *Row, w Write) bool {
	for _, name := range []string{vmwareOwner, kinsumerOwner, lifionOwner} {
		if owner := there.Was[name]; owner != nil && owner != "" && owner != any(Null{}) {
			return false
		}
	}
	return there.At == w.To
}

// isAhead reports whether the client has made more progress than weir. A row without a position has
// no progress.
func isAhead(theirs, ours shard.Position) bool {
	return (theirs.Kind() == shard.Sequence || theirs.IsEnd()) && theirs.Compare(ours) > 0
}

// earlier returns the earlier of two initial positions: the oldest record comes before every time.
func earlier(a, b shard.Position) shard.Position {
	switch {
	case a.IsZero():
		return b
	case a == shard.Oldest || b == shard.Oldest:
		return shard.Oldest
	case b.Compare(a) < 0:
		return b
	}
	return a
}

// note adds notes about the initial position and about records that are lost.
func (r *Return) note(c Client, initial shard.Position, leases []lease.Lease, graph *shard.Graph) {
	if !initial.IsZero() {
		setting := map[Client][2]string{
			Harlow: {"WithShardIteratorType(TRIM_HORIZON)", "WithShardIteratorType(AT_TIMESTAMP) and WithTimestamp"},
			VMware: {"InitialPositionInStream TRIM_HORIZON", "InitialPositionInStreamExtended AT_TIMESTAMP"},
		}[c]
		switch {
		case c == Kinsumer && initial.Kind() == shard.Time:
			r.Notes = append(r.Notes, "kinsumer begins shards without a position at their oldest "+
				"record: records from before "+initial.String()+" are handled again")
		case initial == shard.Oldest && setting[0] != "":
			r.Notes = append(r.Notes, "start "+c.String()+" with "+setting[0]+": shards without a "+
				"position begin there")
		case setting[1] != "":
			r.Notes = append(r.Notes, "start "+c.String()+" with "+setting[1]+" at "+
				initial.String()+": shards without a position begin there")
		}
	}
	for _, l := range leases {
		if _, there := graph.Shard(l.Shard); !there && !l.Finished() {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: the shard has left the stream before it was "+
				"read to its end (it was at %s): its last records are lost", l.Shard, l.Position))
		}
	}
}

// Unwritten returns the differences between a state and a plan, as sentences. A row with later
// progress is not a difference, because a worker may already have made progress.
func Unwritten(writes []Write, st State) []string {
	have := map[string]*Row{}
	for i := range st.Rows {
		have[st.Rows[i].Shard] = &st.Rows[i]
	}
	var found []string
	for _, w := range writes {
		r := have[w.Row.Shard]
		switch {
		case w.To.IsZero() && (r == nil || r.At.IsZero()), w.Stays:
		case r == nil:
			found = append(found, w.Row.Shard+" has no row")
		case !w.To.IsZero() && r.At.Compare(w.To) < 0:
			found = append(found, fmt.Sprintf("%s is at %s, before %s", w.Row.Shard, r.At, w.To))
		}
	}
	return found
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func areN(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %s are", n, plural(what))
}

func haveN(n int, what string) string {
	if n == 1 {
		return "1 " + what + " has"
	}
	return fmt.Sprintf("%d %s have", n, plural(what))
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// plural puts the first word of a phrase into the plural.
func plural(what string) string {
	first, rest, more := strings.Cut(what, " ")
	if !more {
		return first + "s"
	}
	return first + "s " + rest
}
