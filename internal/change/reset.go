package change

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Stream is the information from Kinesis about a stream.
type Stream struct {
	Name   string
	Shards []shard.Shard // all shards that can still be read
	Now    time.Time     // Kinesis' time of the listing
	Born   int64         // see [lease.Lease.Born]
}

// Wish describes where reading must resume.
type Wish struct {
	// To is [shard.Oldest], [shard.Latest] or a time. With a Shard it can also be a sequence
	// number.
	To shard.Position
	// Shard limits the reset to one shard and its descendants. "" means all shards.
	Shard string
}

// Reset returns the steps for a wish. Ancestors come before descendants, so that the order of
// records is kept.
//
//   - Oldest and a time move every shard that can still be read. Shards that were read to their end
//     are opened again. The plan then assigns no child before its parents have ended again.
//   - Latest moves the open shards to Kinesis' time of the listing. It ends the other shards,
//     because their records are not wanted.
//   - A wish for one shard also moves its descendants, because their records are newer. For Oldest
//     and a time they move to the same place. For a sequence number they move to their beginning.
//     Latest moves only the shard itself, because after Latest no record is handled again.
//   - A child moves with its parents even if it is already in the right place and has no owner. At
//     the same moment, a leader may be assigning the child, because the parents had ended. The move
//     changes the child's lease, so that this assignment fails. The child also moves if its parents
//     are already in the right place and had an owner, because an incomplete reset may have opened
//     them.
//   - A shard without a lease gets one. A lease whose shard has left the stream stays unchanged.
//
// Reset returns an error for an unknown shard, and for a time in the stream's future.
func Reset(s Stream, leases []lease.Lease, w Wish) ([]Step, error) {
	graph := shard.NewGraph(s.Shards)
	if w.Shard != "" {
		if _, there := graph.Shard(w.Shard); !there {
			return nil, fmt.Errorf("stream %s has no shard %s", s.Name, w.Shard)
		}
	}
	if at := w.To.Time(); w.To.Kind() == shard.Time && at.After(s.Now.Add(time.Second)) {
		return nil, fmt.Errorf("%s is in the future for stream %s, whose clock shows %s", w.To, s.Name, s.Now.UTC().Format(time.RFC3339))
	}
	have := map[string]*lease.Lease{}
	for i := range leases {
		if leases[i].Stream == s.Name {
			have[leases[i].Shard] = &leases[i]
		}
	}
	moved := affected(graph, w)
	opened := map[string]bool{} // shards that are open now and may have been finished before
	var steps []Step
	for _, id := range graph.Ordered() {
		if !moved[id] {
			continue
		}
		sh, _ := graph.Shard(id)
		step := Step{Key: lease.Key{Stream: s.Name, Shard: id}}
		step.To, step.Why = target(s, sh, w)
		if l := have[id]; l != nil {
			step.From = l.Position
			move(&step, l, s.Born, slices.ContainsFunc(graph.Parents(id), func(p string) bool { return opened[p] }))
		} else {
			step.Actions = []lease.Action{{Kind: lease.Create, Lease: lease.Lease{
				Key: step.Key, Parents: sh.Parents, Range: sh.Range, Epoch: 1, Position: step.To, Born: s.Born,
			}}}
		}
		opened[id] = !step.To.IsEnd() && (len(step.Actions) > 0 || have[id].Epoch > 1)
		steps = append(steps, step)
	}
	if w.Shard == "" {
		steps = append(steps, strays(graph, have)...)
	}
	return steps, nil
}

// affected returns the shards that a wish moves.
func affected(graph *shard.Graph, w Wish) map[string]bool {
	moved := map[string]bool{}
	for _, id := range graph.Ordered() {
		switch {
		case w.Shard == "", id == w.Shard:
			moved[id] = true
		case w.To != shard.Latest:
			moved[id] = slices.ContainsFunc(graph.Parents(id), func(p string) bool { return moved[p] })
		}
	}
	return moved
}

// target returns the new position of one shard, and the reason for it.
func target(s Stream, sh shard.Shard, w Wish) (to shard.Position, why string) {
	if sh.ID != w.Shard && w.Shard != "" {
		why = "descends from " + w.Shard
	}
	switch {
	case w.To == shard.Latest && sh.Closed:
		return shard.End, "it is closed: nothing new comes"
	case w.To == shard.Latest:
		return shard.At(s.Now), "now, by the service's clock"
	case w.To.Kind() == shard.Sequence && sh.ID != w.Shard:
		return shard.Oldest, why
	default:
		return w.To, why
	}
}

// move sets step to the move of a lease. It does nothing if the lease is already at the position,
// has no owner and no Deaths, and need not move with its parents. along is true if a parent was
// opened, so that the lease moves with it. A move clears the lease's Deaths, so finished records
// after the position (Deaths.Beyond) are handled again.
func move(step *Step, l *lease.Lease, born int64, along bool) {
	there := l.Position == step.To
	if there && l.Owner == "" && (l.Finished() || l.Deaths == "" && !along) && (born == 0 || l.Born == 0 || l.Born == born) {
		step.Why = "it is there already"
		return
	}
	if there && along && step.Why == "" {
		step.Why = "it waits for its parents again"
	}
	if there && step.Why == "" && l.DeathsHere().Beyond != "" {
		step.Why = "finished records after it are handled again"
	}
	if l.Finished() && !step.To.IsEnd() && step.Why == "" {
		step.Why = "it was read to its end: it is opened again"
	}
	step.Actions = []lease.Action{{Kind: lease.Move, Key: l.Key, Epoch: l.Epoch, Position: step.To, Born: born}}
}

// strays returns steps for unfinished leases whose shards have left the stream.
func strays(graph *shard.Graph, have map[string]*lease.Lease) []Step {
	var steps []Step
	for id, l := range have {
		if _, there := graph.Shard(id); !there && !l.Finished() {
			steps = append(steps, Step{Key: l.Key, From: l.Position, To: l.Position, Why: "its shard has left the stream: the lease stays"})
		}
	}
	slices.SortFunc(steps, func(a, b Step) int { return a.Key.Compare(b.Key) })
	return steps
}
