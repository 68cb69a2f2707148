package kcl

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Starts contains the positions for leases whose checkpoint does not contain a position.
type Starts struct {
	AtTimestamp shard.Position // of leases at AT_TIMESTAMP; zero if it is not known
	Latest      shard.Position // of leases at LATEST
	// LatestGiven is true if an operator chose Latest.
	LatestGiven bool
}

// Select returns the leases of one stream of the table. If the table has several streams, name
// selects one of them: it is a name, or the KCL's form account:name:epoch. Select returns an error
// if the table has no such stream, or several with the same name.
func Select(t Table, name string) ([]Lease, error) {
	if len(t.Leases) > 0 && t.Leases[0].Stream.IsZero() {
		return t.Leases, nil
	}
	var found []Lease
	ids := map[string]bool{}
	for _, l := range t.Leases {
		if l.Stream.Name == name || l.Stream.String() == name {
			found = append(found, l)
			ids[l.Stream.String()] = true
		}
	}
	names := StreamsOf(t)
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf(
			"the table has no leases of stream %s: it has those of %s",
			name,
			strings.Join(names, ", "),
		)
	case len(ids) > 1:
		return nil, fmt.Errorf(
			"the table has several streams of the name %s: name one as --stream, among %s",
			name,
			strings.Join(names, ", "),
		)
	}
	return found, nil
}

// StreamsOf returns the sorted streams of a table in the KCL's form. For the table of a single
// stream it returns nil.
func StreamsOf(t Table) []string {
	var names []string
	for _, l := range t.Leases {
		if !l.Stream.IsZero() {
			names = append(names, l.Stream.String())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// There plans the way from the KCL to weir for one stream:
//
//   - A shard with a lease begins at the checkpoint. A prepared checkpoint that was not committed
//     does not count.
//   - A shard without a lease that has a descendant with a lease gets a finished lease. The KCL
//     deletes leases of shards that it has finished, and makes none for shards from before its
//     start.
//   - Any other shard without a lease begins at its oldest record, so that nothing is skipped.
//   - A lease whose shard has left the stream is left out. If it was not finished, a note says so.
//
// It returns an error if the leases are not of this stream, or if starts lacks a position that they
// need.
func There(leases []Lease, s change.Stream, starts Starts) (change.Plan, error) {
	graph := shard.NewGraph(s.Shards)
	if err := checkThere(leases, s.Name, graph, starts); err != nil {
		return change.Plan{}, err
	}
	have := map[string]*Lease{}
	for i := range leases {
		have[leases[i].Shard] = &leases[i]
	}
	var p change.Plan
	for _, id := range graph.Ordered() {
		sh, _ := graph.Shard(id)
		want := change.Wanted{Lease: lease.Lease{
			Key:     lease.Key{Stream: s.Name, Shard: id},
			Parents: sh.Parents, Range: sh.Range, Epoch: 1, Born: s.Born,
		}}
		var err error
		if l := have[id]; l == nil {
			want.Lease.Position, want.Why = withoutLease(graph, have, id)
		} else if want.Lease.Position, want.Why, err = begin(l, starts); err != nil {
			return change.Plan{}, err
		}
		p.Leases = append(p.Leases, want)
	}
	noteThere(&p, graph, have, starts)
	return p, nil
}

// checkThere returns an error if the leases do not belong to this stream, or if the time for a
// lease at AT_TIMESTAMP is unknown.
func checkThere(leases []Lease, name string, graph *shard.Graph, starts Starts) error {
	known := 0
	var timeless []string
	for i := range leases {
		l := &leases[i]
		sh, there := graph.Shard(l.Shard)
		if !there {
			continue
		}
		known++
		if l.Range != nil && *l.Range != sh.Range {
			return fmt.Errorf("lease %s is not of stream %s: its hash range is %s, and that of "+
				"the shard is %s; check --stream, and whether the stream was created again",
				l.Key, name, l.Range, sh.Range)
		}
		if l.At.Value == AtTimestamp && starts.AtTimestamp.IsZero() {
			timeless = append(timeless, l.Shard)
		}
	}
	if len(leases) > 0 && known == 0 {
		return fmt.Errorf("stream %s has none of the %d shards in the table, such as %s: check "+
			"--stream and --table", name, len(leases), leases[0].Shard)
	}
	if len(timeless) > 0 {
		return fmt.Errorf("%s of stream %s at AT_TIMESTAMP, and the table does not contain the "+
			"time: give it with --at, from the initial position in the KCL's configuration, or "+
			"--at oldest", areAt(timeless), name)
	}
	return nil
}

// noteThere adds notes about records that are lost or skipped, about dropped checkpoints, and about
// shards that weir reads in another order.
func noteThere(p *change.Plan, graph *shard.Graph, have map[string]*Lease, starts Starts) {
	latest := 0
	for _, id := range slices.Sorted(maps.Keys(have)) {
		l := have[id]
		_, there := graph.Shard(id)
		if !there && l.At.Value != ShardEnd {
			p.Note("%s: the shard has left the stream before it was read to its end (it was at "+
				"%s): its last records are lost", id, l.At)
		}
		if there && l.At.Value == Latest {
			latest++
		}
		if there && !l.Pending.IsZero() {
			p.Note("%s: the prepared checkpoint %s was not committed and is dropped, with its "+
				"state", id, l.Pending)
		}
		unfinished := func(q string) bool { return have[q] != nil && have[q].At.Value != ShardEnd }
		if l.At.Value != TrimHorizon && slices.ContainsFunc(graph.Parents(id), unfinished) {
			p.Note("%s: it was begun before its parents were finished: weir finishes the parents "+
				"first", id)
		}
	}
	if latest > 0 && !starts.LatestGiven {
		p.Note("%s at LATEST, where the KCL has checkpointed nothing: records from before %s are "+
			"skipped; if the KCL stopped earlier, give that time with --latest",
			areN(latest, "lease"), starts.Latest)
	}
}

func areN(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %ss are", n, what)
}

func areAt(ids []string) string {
	if len(ids) == 1 {
		return "lease " + ids[0] + " is"
	}
	return fmt.Sprintf("%d leases, such as %s, are", len(ids), ids[0])
}

// begin returns the position at which the shard of a lease begins.
func begin(l *Lease, starts Starts) (shard.Position, string, error) {
	if p, ok := l.At.Position(); ok {
		return p, "", nil
	}
	switch l.At.Value {
	case AtTimestamp:
		return starts.AtTimestamp, "AT_TIMESTAMP, as --at says", nil
	case Latest:
		if starts.Latest.IsZero() {
			return shard.Position{}, "", errors.New("no position for leases at LATEST")
		}
		return starts.Latest, "LATEST: no record was checkpointed", nil
	}
	return shard.Position{}, "", &ItemError{
		l.Key,
		fmt.Sprintf("its checkpoint %.140q has no position", l.At.String()),
		repair,
	}
}

// withoutLease returns the position at which a shard begins if the table has no lease of the shard.
func withoutLease(graph *shard.Graph, have map[string]*Lease, id string) (shard.Position, string) {
	seen := map[string]bool{}
	next := slices.Clone(graph.Children(id))
	for len(next) > 0 {
		child := next[0]
		next = next[1:]
		if seen[child] {
			continue
		}
		seen[child] = true
		if have[child] != nil {
			return shard.End, "no lease there, but a later shard has one: it was finished"
		}
		next = append(next, graph.Children(child)...)
	}
	for _, q := range graph.Parents(id) {
		if have[q] != nil {
			return shard.Oldest, "no lease there yet: it begins after " + short(q)
		}
	}
	return shard.Oldest, "no lease there: nothing is skipped"
}

// short returns the ID of a shard without the prefix that all IDs share.
func short(id string) string {
	number, found := strings.CutPrefix(id, "shardId-")
	if !found {
		return id
	}
	return cmp.Or(strings.TrimLeft(number, "0"), "0")
}
