package foreign

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Starts contains the positions for shards without a stored position.
type Starts struct {
	// Initial is the initial position in the client's configuration: the oldest record, the tip, or
	// a time. Only harlow/kinesis-consumer and vmware-go-kcl have such a setting.
	Initial shard.Position
	// Tip is the time that replaces the tip.
	Tip shard.Position
}

// There plans the way from a client to weir for one stream:
//
//   - A shard with a position begins after that record, and a finished shard is finished.
//   - A shard that the client would begin at the tip begins at the time in Starts. This applies to
//     shards without a parent. The client would also skip records of children; weir reads children
//     from their beginning.
//   - With harlow/kinesis-consumer, a shard is finished if a later shard has a position. With
//     lifion-kinesis, this applies to shards without a position. The other clients read children
//     before their parents are finished, so a child says nothing about its parents.
//   - A row whose shard has left the stream is left out.
//
// It returns an error if the rows are not of this stream.
func There(c Client, st State, s change.Stream, starts Starts) (change.Plan, error) {
	graph := shard.NewGraph(s.Shards)
	have := map[string]*Row{}
	known, tips := 0, 0
	for i := range st.Rows {
		r := &st.Rows[i]
		have[r.Shard] = r
		if _, there := graph.Shard(r.Shard); there {
			known++
		}
	}
	if len(have) > 0 && known == 0 {
		return change.Plan{}, fmt.Errorf(
			"stream %s has none of the %d shards in the table, such as %s: check --stream and the "+
				"table",
			s.Name, len(have), st.Rows[0].Shard,
		)
	}
	p := change.Plan{Notes: slices.Clone(st.Notes)}
	for _, id := range graph.Ordered() {
		sh, _ := graph.Shard(id)
		at, why := begin(c, graph, have, sh, starts.Initial)
		if at == shard.Latest {
			at, tips = starts.Tip, tips+1
		}
		p.Leases = append(p.Leases, change.Wanted{Why: why, Lease: lease.Lease{
			Key:     lease.Key{Stream: s.Name, Shard: id},
			Parents: sh.Parents, Range: sh.Range, Epoch: 1, Born: s.Born, Position: at,
		}})
	}
	noteThere(&p, c, graph, have)
	if tips > 0 {
		p.Note("%s without a position: records from before %s are skipped; another place can be "+
			"given with --latest", areN(tips, "shard"), starts.Tip)
	}
	return p, nil
}

// begin returns where a shard begins, and the reason. [shard.Latest] stands for the tip.
func begin(
	c Client, graph *shard.Graph, have map[string]*Row, sh shard.Shard, initial shard.Position,
) (shard.Position, string) {
	r := have[sh.ID]
	later := descends(graph, have, sh.ID)
	switch {
	case r != nil && r.At.IsEnd():
		return shard.End, ""
	case c == Harlow && later:
		return shard.End, "a later shard has a position: it was finished"
	case r != nil && r.At == shard.Latest:
		return shard.Latest, "LATEST, as the row says"
	case r != nil && !r.At.IsZero():
		if r.At == shard.Oldest {
			return r.At, "not begun"
		}
		return r.At, ""
	}
	return unset(c, sh, initial, later)
}

// unset returns where a shard without a position begins. later is true if a later shard has a
// position.
func unset(c Client, sh shard.Shard, initial shard.Position, later bool) (shard.Position, string) {
	child := len(sh.Parents) > 0
	switch c {
	case Kinsumer:
		return shard.Oldest, "no position: nothing is skipped"
	case Lifion:
		switch {
		case !child && !sh.Closed:
			return shard.Latest, "no position"
		case later:
			return shard.End, "a later shard has a position: it was finished"
		case child:
			return shard.Oldest, "no position: lifion would skip its records"
		}
		return shard.Oldest, "no position: nothing is skipped"
	}
	switch {
	case initial != shard.Latest:
		return initial, "no position: --initial"
	case child:
		return shard.Oldest, "no position: " + c.String() + " would skip its records"
	case sh.Closed:
		return shard.End, "no position, and it is closed: LATEST is its end"
	}
	return shard.Latest, "no position"
}

// descends reports whether a descendant of a shard has a position or is finished.
func descends(graph *shard.Graph, have map[string]*Row, id string) bool {
	seen := map[string]bool{}
	for next := slices.Clone(graph.Children(id)); len(next) > 0; next = next[1:] {
		child := next[0]
		if seen[child] {
			continue
		}
		seen[child] = true
		if r := have[child]; r != nil && !r.At.IsZero() {
			return true
		}
		next = append(next, graph.Children(child)...)
	}
	return false
}

// noteThere adds notes about shards whose records are lost, not read again, or read in another
// order.
func noteThere(p *change.Plan, c Client, graph *shard.Graph, have map[string]*Row) {
	gone := 0
	for _, id := range sortedKeys(have) {
		r := have[id]
		_, there := graph.Shard(id)
		switch {
		case !there && !r.At.IsEnd():
			gone++
		case c == Harlow && there && r.At.Kind() == shard.Sequence && descends(graph, have, id):
			p.Note("%s: its position %s counts as its end, because a later shard has a position "+
				"too; move it back with \"weir group reset --shard\" if it was not finished", id, r.Raw)
		case there && r.At.Kind() == shard.Sequence &&
			slices.ContainsFunc(graph.Parents(id), func(q string) bool {
				return have[q] == nil || !have[q].At.IsEnd()
			}) && c != Harlow:
			p.Note("%s: it was begun before its parents were finished: weir finishes the parents "+
				"first", id)
		}
	}
	if gone > 0 {
		p.Note("%s left the stream, and %s ignored: if such a shard was not read to its end, its "+
			"last records are lost", haveN(gone, "shard with a position"), isOrAre(gone))
	}
}

// Rewind moves positions back to a time if the record at the position arrived after it. It is for
// clients whose positions may be ahead of the work that is done.
func Rewind(p change.Plan, seen map[lease.Key]change.Seen, to time.Time) change.Plan {
	moved := change.Plan{Leases: slices.Clone(p.Leases), Notes: p.Notes}
	for i := range moved.Leases {
		l := &moved.Leases[i]
		if s := seen[l.Lease.Key]; l.Lease.Position.Kind() == shard.Sequence && s.Arrived.After(to) {
			l.Lease.Position, l.Why = shard.At(to), "moved back, as --rewind says"
		}
	}
	return moved
}

// Again moves positions back by one Kinesis record. It is for positions inside an aggregate, which
// the client does not store.
func Again(p change.Plan) (change.Plan, error) {
	moved := change.Plan{Leases: slices.Clone(p.Leases), Notes: p.Notes}
	for i := range moved.Leases {
		l := &moved.Leases[i]
		if l.Lease.Position.Kind() != shard.Sequence {
			continue
		}
		before, err := shard.Before(l.Lease.Position.SequenceNumber())
		if err != nil {
			return p, err
		}
		l.Lease.Position, l.Why = before, "its last record is repeated, as --repeat-last says"
	}
	return moved, nil
}
