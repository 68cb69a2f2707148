package kcl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Lease is a lease of the KCL.
type Lease struct {
	Key    string   // of the item
	Stream StreamID // zero in the table of a single stream
	Shard  string

	Counter int64 // increases with each renewal and checkpoint, and when the reader changes
	// Owner is the worker that has the lease. During a handoff, Holder is the worker that still has
	// the lease, and Owner is the worker that gets it. Otherwise Holder is "".
	Owner, Holder string
	Switches      int64

	At Checkpoint
	// Pending is a checkpoint that was prepared but not committed. It is zero if there is none.
	Pending           Checkpoint
	Parents, Children []string
	Range             *shard.HashRange // nil if the item does not have it
}

// Worker returns the worker that reads the shard, or "" if no worker does.
func (l *Lease) Worker() string {
	if l.Holder != "" {
		return l.Holder
	}
	return l.Owner
}

func readLease(it Item, key string) (l Lease, err error) {
	l.Key = key
	if l.Stream, l.Shard, err = splitKey(it, key); err != nil {
		return l, err
	}
	if l.Counter, err = it.number(key, attrCounter, true); err != nil {
		return l, err
	}
	if l.Switches, err = it.number(key, attrSwitches, true); err != nil {
		return l, err
	}
	if l.Owner, err = it.text(key, attrOwner, maxOwner); err != nil {
		return l, err
	}
	if l.Holder, err = it.text(key, attrHolder, maxOwner); err != nil {
		return l, err
	}
	if l.At, err = it.checkpoint(key, attrCheckpoint, attrSub); err != nil {
		return l, err
	}
	if l.At.IsZero() {
		return l, &ItemError{key, attrCheckpoint + " is missing", repair}
	}
	if l.Pending, err = it.checkpoint(key, attrPending, attrPendingSub); err != nil {
		return l, err
	}
	if l.Parents, err = it.names(key, attrParents); err != nil {
		return l, err
	}
	if l.Children, err = it.names(key, attrChildren); err != nil {
		return l, err
	}
	l.Range, err = it.hashRange(key)
	return l, err
}

// splitKey returns the stream and the shard of a lease. In the table of several streams, the key
// contains both of them, and attributes repeat them.
func splitKey(it Item, key string) (id StreamID, shardID string, err error) {
	stream, err := it.text(key, attrStream, maxOwner)
	if err != nil {
		return id, "", err
	}
	shardID, err = it.text(key, attrShard, lease.MaxNameBytes)
	if err != nil {
		return id, "", err
	}
	last := strings.LastIndexByte(key, ':')
	if last < 0 {
		if stream != "" || shardID != "" && shardID != key {
			return id, "", &ItemError{
				key,
				fmt.Sprintf(
					"its key is that of a single stream, but it has the stream %.100q and the "+
						"shard %.100q",
					stream,
					shardID,
				),
				repair,
			}
		}
		if err := checkShard(key); err != nil {
			return id, "", &ItemError{
				key,
				"its key is neither a shard nor a stream and a shard",
				repair,
			}
		}
		return id, key, nil
	}
	if id, err = ParseStreamID(key[:last]); err != nil {
		return id, "", &ItemError{key, err.Error(), repair}
	}
	if err := checkShard(key[last+1:]); err != nil {
		return id, "", &ItemError{key, err.Error(), repair}
	}
	if stream != "" && stream != key[:last] || shardID != "" && shardID != key[last+1:] {
		return id, "", &ItemError{
			key,
			fmt.Sprintf(
				"its key and its attributes name different shards: it has the stream %.100q and "+
					"the shard %.100q",
				stream,
				shardID,
			),
			repair,
		}
	}
	return id, key[last+1:], nil
}

// StreamID identifies a stream in the table of several streams. The zero value means the only
// stream of a table.
type StreamID struct {
	Account, Name string
	Epoch         int64 // by convention when the stream was created, in Unix seconds
}

// IsZero reports whether id is the zero StreamID.
func (id StreamID) IsZero() bool { return id == StreamID{} }

// String returns the form that the KCL stores, "account:name:epoch", and "" for the zero StreamID.
func (id StreamID) String() string {
	if id.IsZero() {
		return ""
	}
	return id.Account + ":" + id.Name + ":" + strconv.FormatInt(id.Epoch, 10)
}

// Key returns the key of the lease of a shard.
func (id StreamID) Key(shardID string) string {
	if id.IsZero() {
		return shardID
	}
	return id.String() + ":" + shardID
}

// ParseStreamID parses the form that the KCL stores.
func ParseStreamID(s string) (StreamID, error) {
	parts := strings.Split(s, ":")
	digits := func(s string) bool {
		return s != "" && len(s) <= 18 && strings.Trim(s, "0123456789") == ""
	}
	if len(parts) != 3 || !digits(parts[0]) || parts[1] == "" ||
		len(parts[1]) > lease.MaxNameBytes ||
		!printable(parts[1]) ||
		!digits(parts[2]) {
		return StreamID{}, fmt.Errorf("%.200q is not the name of a stream as account:name:epoch", s)
	}
	epoch, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || epoch == 0 || strconv.FormatInt(epoch, 10) != parts[2] {
		return StreamID{}, fmt.Errorf(
			"%.200q is not the name of a stream as account:name:epoch: the epoch is not a "+
				"number above 0",
			s,
		)
	}
	return StreamID{parts[0], parts[1], epoch}, nil
}
