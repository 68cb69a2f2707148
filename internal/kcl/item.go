package kcl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Type is the type of an attribute.
type Type uint8

// The types of attributes that leases have. Other means any further type.
const (
	Other Type = iota
	Text
	Number
	Texts // a set of strings
)

// String returns DynamoDB's name of the type.
func (t Type) String() string {
	return [...]string{Other: "another type", Text: "S", Number: "N", Texts: "SS"}[t]
}

// Value is an attribute.
type Value struct {
	Type  Type
	Text  string   // of Text and Number
	Texts []string // of Texts
}

// Item maps the names of an item's attributes to their values.
type Item map[string]Value

// The names of the attributes that this package uses.
const (
	attrKey        = "leaseKey"
	attrKind       = "entityType"
	attrCounter    = "leaseCounter"
	attrOwner      = "leaseOwner"
	attrHolder     = "checkpointOwner"
	attrSwitches   = "ownerSwitchesSinceCheckpoint"
	attrCheckpoint = "checkpoint"
	attrSub        = "checkpointSubSequenceNumber"
	attrPending    = "pendingCheckpoint"
	attrPendingSub = "pendingCheckpointSubSequenceNumber"
	attrParents    = "parentShardId"
	attrChildren   = "childShardIds"
	attrStart      = "startingHashKey"
	attrEnd        = "endingHashKey"
	attrStream     = "streamName"
	attrShard      = "shardId"
	attrUpdated    = "lut"
	attrVersion    = "recordVersionNumber"
	attrLeader     = "ownerName"
)

// Attributes lists the attributes that [Read] uses. A reader of the table requests only these,
// which limits the size of an item.
var Attributes = []string{
	attrKey, attrKind, attrCounter, attrOwner, attrHolder, attrSwitches, attrCheckpoint, attrSub, attrPending,
	attrPendingSub, attrParents, attrChildren, attrStart, attrEnd, attrStream, attrShard, attrUpdated, attrVersion, attrLeader,
}

// MaxItems is the maximum number of items in a table.
const MaxItems = 200_000

// Limits on one lease.
const (
	maxNames  = 100       // parents or children
	maxOwner  = 2048      // bytes of a worker's ID, DynamoDB's limit for a key
	maxNumber = 1<<62 - 1 // leaves room for a counter to increase
)

// Table is the content of a lease table.
type Table struct {
	Leases []Lease // sorted by key
	// Pulses are the items that are not leases, but whose changes prove that a worker runs: the
	// metrics of each worker, and the lock of the leader.
	Pulses []Pulse
	// Skipped contains the sorted keys of all other items. The KCL uses them for its coordination.
	Skipped []string
}

// Pulse is an item that a running worker changes.
type Pulse struct {
	Key, Worker string
	Value       string
	Updated     int64 // Unix seconds by the worker's clock, 0 if the item has no time
}

// ItemError reports an item that differs from the items that the KCL writes.
type ItemError struct{ Key, Problem, Remedy string }

func (e *ItemError) Error() string {
	return fmt.Sprintf("item %.300q of the table: %s; %s", e.Key, e.Problem, e.Remedy)
}

const (
	repair  = "correct the attribute, or delete the item if no application needs it, and run the command again"
	another = "check the name of the table"
)

// Read reads the items of a lease table. It returns an [*ItemError] for an item that differs from
// the items that the KCL writes. It returns an error for a table that has more than [MaxItems]
// items, or that mixes single-stream and multi-stream leases.
func Read(items []Item) (Table, error) {
	if len(items) > MaxItems {
		return Table{}, fmt.Errorf(
			"the table has more than %d items, which is not expected of a lease table: check "+
				"its name",
			MaxItems,
		)
	}
	var t Table
	for _, it := range items {
		if err := t.add(it); err != nil {
			return Table{}, err
		}
	}
	slices.SortFunc(t.Leases, func(a, b Lease) int { return strings.Compare(a.Key, b.Key) })
	slices.SortFunc(t.Pulses, func(a, b Pulse) int { return strings.Compare(a.Key, b.Key) })
	slices.Sort(t.Skipped)
	for i := range t.Leases {
		if a, b := &t.Leases[0], &t.Leases[i]; a.Stream.IsZero() != b.Stream.IsZero() {
			return Table{}, fmt.Errorf(
				"the table has leases of a single stream and of several, such as %q and %q: "+
					"delete those that no application uses",
				a.Key,
				b.Key,
			)
		} else if i > 0 && t.Leases[i-1].Key == b.Key {
			return Table{}, &ItemError{b.Key, "it is there twice", another}
		}
	}
	return t, nil
}

func (t *Table) add(it Item) error {
	key, err := it.text("", attrKey, maxOwner)
	if err != nil {
		return err
	}
	if key == "" {
		return &ItemError{
			"",
			"it has no attribute " + attrKey + ", so the table is not a lease table of the KCL",
			another,
		}
	}
	kind, err := it.text(key, attrKind, lease.MaxNameBytes)
	if err != nil {
		return err
	}
	switch kind {
	case "", "LEASE":
		l, err := readLease(it, key)
		if err == nil {
			t.Leases = append(t.Leases, l)
		}
		return err
	case "WORKER_METRIC_STATS":
		updated, err := it.number(key, attrUpdated, false)
		t.Pulses = append(t.Pulses, Pulse{key, key, strconv.FormatInt(updated, 10), updated})
		return err
	case "LEADER":
		leader, err := it.text(key, attrLeader, maxOwner)
		if err != nil {
			return err
		}
		version, err := it.text(key, attrVersion, lease.MaxNameBytes)
		t.Pulses = append(t.Pulses, Pulse{key, leader, version, 0})
		return err
	}
	t.Skipped = append(t.Skipped, key)
	return nil
}

// text returns an attribute that is a string of printable characters, or "" if it is absent.
func (it Item) text(key, name string, most int) (string, error) {
	v, there := it[name]
	switch {
	case !there:
		return "", nil
	case v.Type != Text:
		return "", &ItemError{
			key,
			fmt.Sprintf("%s has the type %s instead of S", name, v.Type),
			repair,
		}
	case v.Text == "" || len(v.Text) > most:
		return "", &ItemError{
			key,
			fmt.Sprintf("%s has %d bytes: want 1 to %d", name, len(v.Text), most),
			repair,
		}
	case !printable(v.Text):
		return "", &ItemError{
			key,
			fmt.Sprintf("%s is %.100q, with characters that cannot be printed", name, v.Text),
			repair,
		}
	}
	return v.Text, nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// number returns an attribute that is a whole number of at least 0. If the attribute is absent,
// number returns 0, or an error if required is set.
func (it Item) number(key, name string, required bool) (int64, error) {
	v, there := it[name]
	switch {
	case !there && required:
		return 0, &ItemError{
			key,
			name + " is missing, without which the KCL cannot read a lease either",
			repair,
		}
	case !there:
		return 0, nil
	case v.Type != Number:
		return 0, &ItemError{
			key,
			fmt.Sprintf("%s has the type %s instead of N", name, v.Type),
			repair,
		}
	}
	n, err := strconv.ParseInt(v.Text, 10, 64)
	if err != nil || n < 0 || n > maxNumber {
		return 0, &ItemError{
			key,
			fmt.Sprintf("%s is %.60q: want a whole number from 0 to 2^62", name, v.Text),
			repair,
		}
	}
	return n, nil
}

// names returns a sorted set of shard IDs.
func (it Item) names(key, name string) ([]string, error) {
	v, there := it[name]
	switch {
	case !there:
		return nil, nil
	case v.Type != Texts:
		return nil, &ItemError{
			key,
			fmt.Sprintf("%s has the type %s instead of SS", name, v.Type),
			repair,
		}
	case len(v.Texts) > maxNames:
		return nil, &ItemError{
			key,
			fmt.Sprintf("%s has %d shards: want at most %d", name, len(v.Texts), maxNames),
			repair,
		}
	}
	for _, id := range v.Texts {
		if err := checkShard(id); err != nil {
			return nil, &ItemError{key, fmt.Sprintf("%s: %v", name, err), repair}
		}
	}
	sorted := slices.Clone(v.Texts)
	slices.Sort(sorted)
	return slices.Compact(sorted), nil
}

func checkShard(id string) error {
	if id == "" || len(id) > lease.MaxNameBytes || !printable(id) ||
		strings.ContainsAny(id, ":/ ") {
		return fmt.Errorf("%.100q is not the ID of a shard", id)
	}
	return nil
}

// hashRange returns the range of a lease's shard, or nil if the item does not have it.
func (it Item) hashRange(key string) (*shard.HashRange, error) {
	start, err := it.text(key, attrStart, 60)
	if err != nil {
		return nil, err
	}
	end, err := it.text(key, attrEnd, 60)
	if err != nil || start == "" && end == "" {
		return nil, err
	}
	r, err := shard.ParseHashRange(start, end)
	if err != nil {
		return nil, &ItemError{
			key,
			"its hash range cannot be read: " + strings.TrimPrefix(err.Error(), "shard: "),
			repair,
		}
	}
	return &r, nil
}
