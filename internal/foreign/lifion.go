package foreign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/shard"
)

// The attributes of lifion-kinesis.
const (
	lifionGroup   = "consumerGroup"
	lifionStream  = "streamName"
	lifionBorn    = "streamCreatedOn"
	lifionVersion = "version"
	lifionShards  = "shards"
	lifionMembers = "consumers"
	lifionFanOut  = "enhancedConsumers"
	lifionNumber  = "checkpoint"
	lifionDone    = "depleted"
	lifionParent  = "parent"
	lifionOwner   = "leaseOwner"
	lifionTime    = "2006-01-02T15:04:05.000Z"
)

// LifionTable is the default table of lifion-kinesis.
const LifionTable = "lifion-kinesis-state"

// LifionHeartbeat is the interval of the heartbeats of lifion-kinesis.
const LifionHeartbeat = 20 * time.Second

// ReadLifion returns the state of a group on a stream from its item, which is nil if there is none.
// first maps shards to their first sequence numbers: lifion stores that number for a shard that is
// not begun. It returns an error if the item is about an older stream of the same name.
func ReadLifion(
	it Item, stream change.Stream, first map[string]string, every time.Duration,
) (State, error) {
	var s State
	if it == nil {
		return s, nil
	}
	row := stream.Name
	born, err := it.clock(row, lifionBorn)
	if err != nil {
		return s, err
	}
	if !born.IsZero() && stream.Born != 0 && born.Unix() != stream.Born/1000 {
		return s, fmt.Errorf(
			"the item is about a stream %s that was created at %s, and the stream of today was "+
				"created at %s: its numbers are not valid any more; start weir without them",
			stream.Name, born.UTC().Format(time.RFC3339),
			time.UnixMilli(stream.Born).UTC().Format(time.RFC3339),
		)
	}
	members, err := it.child(row, lifionMembers)
	if err != nil {
		return s, err
	}
	for _, id := range slices.Sorted(maps.Keys(members)) {
		m, err := members.child(row, id)
		if err != nil {
			return s, err
		}
		beat, err := m.clock(id, "heartbeat")
		if err != nil {
			return s, err
		}
		host, err := m.text(id, "host")
		if err != nil {
			return s, err
		}
		s.sign(Sign{
			"consumer " + id, cmp.Or(host, id), beat.Format(time.RFC3339Nano), beat, every,
		})
		if alone, err := m.flag(id, "isStandalone"); err != nil {
			return s, err
		} else if alone {
			s.Notes = append(s.Notes, fmt.Sprintf("consumer %s reads all shards by itself "+
				"(useAutoShardAssignment is off): its own positions are not moved", id))
		}
	}
	shards, err := it.child(row, lifionShards)
	if err != nil {
		return s, err
	}
	for id := range shards {
		if err := s.lifionRow(shards, id, first[id]); err != nil {
			return s, err
		}
	}
	s.sort()
	return s, nil
}

func (s *State) lifionRow(shards Item, id, first string) error {
	if err := checkShard(id); err != nil {
		return err
	}
	it, err := shards.child(id, id)
	if err != nil {
		return err
	}
	number, err := it.text(id, lifionNumber)
	if err != nil {
		return err
	}
	done, err := it.flag(id, lifionDone)
	if err != nil {
		return err
	}
	row := Row{Shard: id, Raw: number, Was: it.was(lifionVersion, lifionOwner)}
	switch {
	case done:
		row.At, row.Raw = shard.End, "depleted"
	case number != "" && number == first:
		row.At = shard.Oldest
	default:
		if row.At, err = after(id, number); err != nil {
			return err
		}
	}
	s.add(row)
	return nil
}
