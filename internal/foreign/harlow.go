package foreign

import (
	"strings"
	"time"

	"github.com/weir-go/weir/shard"
)

// The keys and attributes of harlow/kinesis-consumer. The tables in SQL have the same columns.
const (
	harlowSpace   = "namespace"
	harlowShard   = "shard_id"
	harlowNumber  = "sequence_number"
	harlowLease   = "LEASE#"
	harlowWorker  = "WORKER#"
	harlowDone    = "completed"
	harlowOwner   = "lease_owner"
	harlowExpires = "lease_expires_at"
)

// HarlowFlush is the default interval at which harlow's stores write positions.
const HarlowFlush = time.Minute

// HarlowLease is the default lease duration of harlow's consumer groups.
const HarlowLease = 20 * time.Second

// HarlowSpace returns the namespace of an application's positions.
func HarlowSpace(app, stream string) string { return app + "-" + stream }

// HarlowGroup returns the namespace of a consumer group's leases.
func HarlowGroup(app, stream string) string { return app + "#" + stream }

// HarlowKey returns the key of a position in Redis.
func HarlowKey(app, stream, shardID string) string {
	return app + ":checkpoint:" + stream + ":" + shardID
}

// HarlowPositions reads the items of the position table in DynamoDB. Items of other namespaces are
// ignored.
func HarlowPositions(items []Item, space string) (map[string]string, error) {
	numbers := map[string]string{}
	for _, it := range items {
		id, err := it.text("", harlowShard)
		if err != nil {
			return nil, err
		}
		if of, err := it.text(id, harlowSpace); err != nil || of != space {
			continue
		}
		if numbers[id], err = it.text(id, harlowNumber); err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

// ReadHarlow returns the state of an application. numbers maps shards to sequence numbers. group
// contains the items of the consumer group, and is empty without a group. every is the longest time
// between two writes of a running worker.
func ReadHarlow(numbers map[string]string, group []Item, every time.Duration) (State, error) {
	var s State
	rows := map[string]Row{}
	for id, number := range numbers {
		if err := checkShard(id); err != nil {
			return s, err
		}
		at, err := after(id, number)
		if err != nil {
			return s, err
		}
		rows[id] = Row{Shard: id, At: at, Raw: number, Was: Item{harlowNumber: number}}
		if len(group) == 0 {
			s.sign(Sign{Key: id, Worker: "a worker without a group", Value: number, Every: every})
		}
	}
	for _, it := range group {
		key, err := it.text("", harlowShard)
		if err != nil {
			return s, err
		}
		if worker, is := strings.CutPrefix(key, harlowWorker); is {
			err = s.harlowWorker(it, key, worker, every)
		} else if id, is := strings.CutPrefix(key, harlowLease); is {
			err = s.harlowLease(it, key, id, rows, every)
		}
		if err != nil {
			return s, err
		}
	}
	for _, r := range rows {
		s.add(r)
	}
	s.sort()
	return s, nil
}

func (s *State) harlowWorker(it Item, key, worker string, every time.Duration) error {
	expires, err := it.number(key, "worker_expires_at")
	if err != nil {
		return err
	}
	value := string(numberOf(it["worker_expires_at"]))
	s.sign(Sign{key, worker, value, time.UnixMilli(expires), every})
	return nil
}

func (s *State) harlowLease(it Item, key, id string, rows map[string]Row, every time.Duration) error {
	if err := checkShard(id); err != nil {
		return err
	}
	owner, err := it.text(key, harlowOwner)
	if err != nil {
		return err
	}
	expires, err := it.number(key, harlowExpires)
	if err != nil {
		return err
	}
	done, err := it.flag(key, harlowDone)
	if err != nil {
		return err
	}
	if owner != "" {
		s.sign(Sign{key, owner, string(numberOf(it[harlowExpires])), time.UnixMilli(expires), every})
	}
	row, there := rows[id]
	if !there {
		row = Row{Shard: id, Was: Item{harlowNumber: nil}}
	}
	if done {
		row.At, row.Raw = shard.End, "completed"
	}
	rows[id] = row
	return nil
}

// numberOf returns the text of a DynamoDB number, or "".
func numberOf(v any) Number {
	n, _ := v.(Number)
	return n
}
