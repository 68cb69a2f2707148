package kcl

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Write is the change of one lease in the KCL's table.
type Write struct {
	Lease Lease      // as it is to be; its Counter is the one that was read
	Was   Checkpoint // zero if the table has no lease
	From  string     // weir's position, "" if weir has no lease
	Why   string     // for people, "" if the checkpoint is simply weir's position
	// New is true if the table has no such lease. Stays is true if nothing has to be written.
	New, Stays bool
}

// Return is the plan that moves one stream back to the KCL.
type Return struct {
	Writes []Write // ancestors before descendants
	Notes  []string
}

// Back plans the way from weir to the KCL for one stream. leases are the leases in weir's store.
// have contains the leases of the stream in the KCL's table.
//
//   - A lease of a shard in the stream becomes a lease of the KCL. So does a finished lease whose
//     shard has left, because the KCL needs both parents of a merge.
//   - A lease whose position is a time is written as TRIM_HORIZON if at is the oldest record.
//     Otherwise it is written as AT_TIMESTAMP, and the KCL uses the time in its configuration. The
//     argument at must then be that time, and not later than the time of any of these leases.
//   - A shard without a lease is written as SHARD_END if a descendant has a lease, because the
//     shard was finished. Otherwise it gets no lease if a parent is not finished: the KCL creates
//     the lease at the end of the parent. Otherwise it is written as TRIM_HORIZON.
//   - A lease in the table that no worker ever had is overwritten. A lease with newer progress is
//     an error, unless replace is set: then it is moved back. A sequence number or the end is
//     progress.
//
// It also returns an error for a position that the KCL cannot store, and for the table of another
// stream.
func Back(
	leases []lease.Lease,
	s change.Stream,
	id StreamID,
	have []Lease,
	at shard.Position,
	replace bool,
) (Return, error) {
	graph := shard.NewGraph(s.Shards)
	ours := map[string]*lease.Lease{}
	for i := range leases {
		ours[leases[i].Shard] = &leases[i]
	}
	theirs := map[string]*Lease{}
	for i := range have {
		l := &have[i]
		theirs[l.Shard] = l
		if sh, there := graph.Shard(l.Shard); there && l.Range != nil && *l.Range != sh.Range {
			return Return{}, fmt.Errorf(
				"the table is not about stream %s: lease %s has the hash range %s, and the "+
					"shard has %s; use another --table",
				s.Name,
				l.Key,
				l.Range,
				sh.Range,
			)
		}
	}
	var r Return
	if err := checkTimes(leases, graph, at); err != nil {
		return r, err
	}
	var newer []Write
	for _, shardID := range slices.Concat(left(ours, graph), graph.Ordered()) {
		w := Write{Lease: Lease{Key: id.Key(shardID), Stream: id, Shard: shardID}}
		var wanted bool
		var err error
		if w.Lease.At, w.From, w.Why, wanted, err = wantedBack(ours, graph, shardID, at); err != nil {
			return Return{}, err
		}
		if !wanted {
			continue
		}
		describe(&w.Lease, ours[shardID], graph)
		if !w.onto(theirs[shardID]) && !replace {
			newer = append(newer, w)
		}
		if w.Lease.Range == nil && !w.Stays && w.Lease.At.Value != ShardEnd {
			r.Notes = append(
				r.Notes,
				fmt.Sprintf(
					"%s: it has a single hash key, and the KCL refuses such a range: the lease "+
						"has no hash range",
					shardID,
				),
			)
		}
		r.Writes = append(r.Writes, w)
	}
	if len(newer) > 0 {
		return Return{}, fmt.Errorf(
			"the table is ahead in %d of these shards already, at %s of %s instead of %s: give "+
				"--replace to move it back, which repeats records, or use another --table",
			len(newer),
			newer[0].Was,
			newer[0].Lease.Key,
			newer[0].Lease.At,
		)
	}
	for _, l := range leases {
		if _, there := graph.Shard(l.Shard); !there && !l.Finished() {
			r.Notes = append(
				r.Notes,
				fmt.Sprintf(
					"%s: the shard has left the stream before it was read to its end (it was at "+
						"%s): its last records are lost",
					l.Shard,
					l.Position,
				),
			)
		}
	}
	return r, nil
}

// left returns the sorted shards outside the stream for which the KCL gets finished leases. These
// are the shards of finished leases. They also include a parent of a merge without a lease, if the
// other parent is in the stream and has an unfinished lease. At the end of that other parent, the
// KCL waits until both parents have a lease, or neither has one.
func left(ours map[string]*lease.Lease, graph *shard.Graph) (ids []string) {
	for id, l := range ours {
		if _, there := graph.Shard(id); !there && l.Finished() {
			ids = append(ids, id)
		}
	}
	for _, child := range graph.Ordered() {
		sh, _ := graph.Shard(child)
		unfinished := func(id string) bool {
			_, there := graph.Shard(id)
			return there && ours[id] != nil && !ours[id].Finished()
		}
		for _, id := range sh.Parents {
			if _, there := graph.Shard(id); !there && ours[id] == nil &&
				slices.ContainsFunc(sh.Parents, unfinished) {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// checkTimes returns an error if the position of a lease is a time, and the argument at is neither
// the oldest record nor a time up to that position.
func checkTimes(leases []lease.Lease, graph *shard.Graph, at shard.Position) error {
	var first *lease.Lease
	n := 0
	for i := range leases {
		l := &leases[i]
		if _, there := graph.Shard(l.Shard); !there || l.Position.Kind() != shard.Time {
			continue
		}
		if n++; first == nil || l.Position.Compare(first.Position) < 0 {
			first = l
		}
	}
	if n == 0 || at == shard.Oldest || at.Kind() == shard.Time && at.Compare(first.Position) <= 0 {
		return nil
	}
	return fmt.Errorf(
		"the positions of %d leases of stream %s are times, and the KCL's table cannot store times; the "+
			"earliest is %s, in shard %s: give --at %s and start the KCL with the initial position "+
			"AT_TIMESTAMP at that time, or give --at oldest",
		n,
		first.Stream,
		first.Position,
		first.Shard,
		first.Position,
	)
}

// wantedBack returns the checkpoint of a shard. wanted is false if the KCL gets no lease for the
// shard.
func wantedBack(
	ours map[string]*lease.Lease,
	graph *shard.Graph,
	id string,
	at shard.Position,
) (c Checkpoint, from, why string, wanted bool, err error) {
	l := ours[id]
	if _, there := graph.Shard(id); l == nil && !there {
		return Checkpoint{
			Value: ShardEnd,
		}, "", "its shard has left the stream, and the merge needs it", true, nil
	}
	if l == nil {
		c, why, wanted = absentBack(ours, graph, id)
		return c, "", why, wanted, nil
	}
	from = l.Position.String()
	if l.Position.Kind() == shard.Time {
		if at == shard.Oldest {
			return Checkpoint{
				Value: TrimHorizon,
			}, from, "a time: all records are read again, as --at says", true, nil
		}
		return Checkpoint{
			Value: AtTimestamp,
		}, from, "set the KCL's initial position to " + at.String(), true, nil
	}
	c, ok := Of(l.Position)
	if !ok {
		return c, from, "", false, fmt.Errorf(
			"lease %s is at %s, before a record, which the KCL cannot store: move it with "+
				"\"weir group reset --shard\" to a time or to oldest",
			l.Key,
			l.Position,
		)
	}
	return c, from, "", true, nil
}

// absentBack returns the checkpoint of a shard in the stream for which weir has no lease, and the
// reason for it. The last result is false if the KCL gets no lease for the shard.
func absentBack(
	ours map[string]*lease.Lease,
	graph *shard.Graph,
	id string,
) (Checkpoint, string, bool) {
	have := make(map[string]*Lease, len(ours))
	for shardID := range ours {
		have[shardID] = &Lease{}
	}
	if p, why := withoutLease(graph, have, id); p.IsEnd() {
		return Checkpoint{Value: ShardEnd}, why, true
	}
	for _, q := range graph.Parents(id) {
		if l := ours[q]; l == nil || !l.Finished() {
			return Checkpoint{}, "", false // the KCL makes it at the end of the parent
		}
	}
	return Checkpoint{Value: TrimHorizon}, "no lease there: nothing is skipped", true
}

// describe sets the parents, the children and the hash range of a lease.
func describe(l *Lease, of *lease.Lease, graph *shard.Graph) {
	r := shard.HashRange{}
	if sh, there := graph.Shard(l.Shard); there {
		l.Parents, r = sh.Parents, sh.Range
	} else if of != nil {
		l.Parents, r = of.Parents, of.Range
	}
	if r.Start != r.End { // the KCL refuses other ranges
		l.Range = &r
	}
	if l.At.Value == ShardEnd {
		l.Children = graph.Children(l.Shard)
		if l.Children == nil { // the parent of a merge may have left the stream
			l.Children = childrenOf(l.Shard, graph)
		}
	}
}

// childrenOf returns the shards that name the shard id as a parent. That shard may have left the
// stream.
func childrenOf(id string, graph *shard.Graph) (children []string) {
	for _, child := range graph.Ordered() {
		if sh, _ := graph.Shard(child); slices.Contains(sh.Parents, id) {
			children = append(children, child)
		}
	}
	return children
}

// onto compares a write with the lease in the table, which may be nil. It returns false if that
// lease has newer progress.
func (w *Write) onto(there *Lease) bool {
	if there == nil {
		w.New = true
		return true
	}
	w.Was, w.Lease.Counter, w.Lease.Owner, w.Lease.Holder = there.At, there.Counter, there.Owner, there.Holder
	switch c := there.At.Compare(w.Lease.At); {
	case c == 0 && there.Worker() == "" && there.Pending.IsZero():
		w.Stays, w.Why = true, "it is there already"
		return true
	case there.Counter == 0 && there.Worker() == "":
		w.Why = cmp.Or(w.Why, "no worker ever had it")
		return true
	default:
		// A sentinel is no progress: no record was checkpointed.
		return c <= 0 || !there.At.IsNumber() && there.At.Value != ShardEnd
	}
}

// Item returns the item for a lease that the table does not have yet. The item equals an item that
// a worker of the KCL creates, and has no owner. It has no entityType, because older versions do
// not write that attribute. All versions read an item without entityType as a lease.
func (w *Write) Item() Item {
	l := &w.Lease
	it := Item{
		attrKey:      {Type: Text, Text: l.Key},
		attrCounter:  whole(0),
		attrSwitches: whole(0),
	}
	if !l.Stream.IsZero() {
		it[attrStream] = Value{Type: Text, Text: l.Stream.String()}
		it[attrShard] = Value{Type: Text, Text: l.Shard}
	}
	if len(l.Parents) > 0 {
		it[attrParents] = Value{Type: Texts, Texts: l.Parents}
	}
	for name, v := range w.Sets() {
		it[name] = v
	}
	return it
}

// Sets returns the attributes to set in a lease that the table has already, besides the counter.
// [Removes] lists the attributes to remove.
func (w *Write) Sets() Item {
	l := &w.Lease
	it := Item{
		attrCheckpoint: {Type: Text, Text: l.At.Value},
		attrSub:        whole(l.At.Sub),
		attrSwitches:   whole(0),
	}
	if l.Range != nil {
		it[attrStart] = Value{Type: Text, Text: l.Range.Start.String()}
		it[attrEnd] = Value{Type: Text, Text: l.Range.End.String()}
	}
	if len(l.Children) > 0 {
		it[attrChildren] = Value{Type: Texts, Texts: l.Children}
	}
	return it
}

// Removes lists the attributes to remove from a lease that the table has already. They are a
// prepared checkpoint and the lease's owner. Without an owner, a worker takes the lease at once.
var Removes = []string{attrOwner, attrHolder, attrPending, attrPendingSub, "pendingCheckpointState"}

// The names of the attributes that conditions of writes use.
const (
	KeyAttribute     = attrKey
	CounterAttribute = attrCounter
)

func whole(n int64) Value { return Value{Type: Number, Text: strconv.FormatInt(n, 10)} }

// Unwritten returns the differences between a table and a plan, as sentences. A lease with later
// progress is not a difference, because a worker may already have made progress.
func Unwritten(writes []Write, t Table) []string {
	have := map[string]*Lease{}
	for i := range t.Leases {
		have[t.Leases[i].Key] = &t.Leases[i]
	}
	var found []string
	for _, w := range writes {
		switch l := have[w.Lease.Key]; {
		case l == nil:
			found = append(found, fmt.Sprintf("%s has no lease", w.Lease.Key))
		case l.At.Compare(w.Lease.At) < 0:
			found = append(
				found,
				fmt.Sprintf("%s is at %s, before %s", w.Lease.Key, l.At, w.Lease.At),
			)
		}
	}
	return found
}
