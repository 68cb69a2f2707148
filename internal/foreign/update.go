package foreign

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/shard"
)

// Update is a conditional write of one item in DynamoDB.
type Update struct {
	Key    Item
	Set    []Assign
	Remove []Path
	// If must hold for the stored item. A nil value means that the attribute is absent. Without
	// conditions, the item must not exist.
	If []Assign
}

// Path names an attribute, also inside maps.
type Path []string

// Assign is an attribute with its value.
type Assign struct {
	Path  Path
	Value any
}

// was adds the condition that a row is unchanged.
func (u *Update) was(w Write, above ...string) {
	for _, name := range sortedKeys(w.Row.Was) {
		u.If = append(u.If, Assign{append(Path(above), name), w.Row.Was[name]})
	}
}

func (u *Update) set(value any, path ...string) { u.Set = append(u.Set, Assign{path, value}) }

func (u *Update) remove(path ...string) { u.Remove = append(u.Remove, path) }

// HarlowUpdate returns the write of a position in DynamoDB. It returns false if the table needs no
// write, which is so for the end of a shard.
func HarlowUpdate(w Write, space string) (Update, bool) {
	u := Update{Key: Item{harlowSpace: space, harlowShard: w.Row.Shard}}
	if w.Stays || w.To.IsEnd() {
		return u, false
	}
	u.was(w)
	if w.To.IsZero() {
		u.remove(harlowNumber)
	} else {
		u.set(w.Raw, harlowNumber)
	}
	return u, true
}

// HarlowLeaseUpdate returns the write of a lease in the table of a consumer group.
func HarlowLeaseUpdate(w Write, group string, adjacent bool) Update {
	u := Update{Key: Item{harlowSpace: group, harlowShard: harlowLease + w.Row.Shard}}
	u.set(w.To.IsEnd(), harlowDone)
	u.set("", harlowOwner)
	u.set(Number("0"), harlowExpires)
	parents := append(append([]string(nil), w.Parents...), "", "")
	u.set(parents[0], "parent_shard_id")
	if adjacent {
		u.set(parents[1], "adjacent_parent_shard_id")
	}
	return u
}

// VMwareUpdate returns the write of a row of vmware-go-kcl.
func VMwareUpdate(w Write) Update {
	u := Update{Key: Item{vmwareShard: w.Row.Shard}}
	u.was(w)
	if w.To.IsZero() {
		u.remove(vmwareNumber)
	} else {
		u.set(w.Raw, vmwareNumber)
	}
	if w.New && len(w.Parents) > 0 {
		u.set(w.Parents[0], vmwareParent)
	}
	u.remove(vmwareOwner)
	u.remove(vmwareClaim)
	return u
}

// KinsumerUpdate returns the write of a row of kinsumer.
func KinsumerUpdate(w Write, now time.Time) Update {
	u := Update{Key: Item{kinsumerShard: w.Row.Shard}}
	u.was(w)
	nanos, text := Number(strconv.FormatInt(now.UnixNano(), 10)), now.UTC().Format(time.RFC1123Z)
	switch {
	case w.To.IsEnd():
		u.set(nanos, kinsumerDone)
		u.set(text, kinsumerDoneRFC)
	case w.To.IsZero():
		u.set(Null{}, kinsumerNumber)
	default:
		u.set(w.Raw, kinsumerNumber)
	}
	if !w.To.IsEnd() {
		u.set(Null{}, kinsumerDone)
		u.set(Null{}, kinsumerDoneRFC)
	}
	u.set(nanos, kinsumerUpdated)
	u.set(text, kinsumerRFC)
	u.remove(kinsumerOwner)
	u.remove(kinsumerName)
	return u
}

// LifionItem returns the item of a group without shards. born is the creation time of the stream in
// Unix milliseconds.
func LifionItem(group, stream string, born int64) Item {
	return Item{
		lifionGroup: group, lifionStream: stream,
		lifionBorn:    time.UnixMilli(born).UTC().Format(lifionTime),
		lifionVersion: token(group, stream),
		lifionMembers: map[string]any{}, lifionFanOut: map[string]any{}, lifionShards: map[string]any{},
	}
}

// LifionKey returns the key of a group's item.
func LifionKey(group, stream string) Item { return Item{lifionGroup: group, lifionStream: stream} }

// LifionUpdate returns the write of a shard in the item of a group.
func LifionUpdate(w Write, group, stream string) Update {
	u := Update{Key: LifionKey(group, stream)}
	if w.New {
		u.If = []Assign{{Path{lifionShards, w.Row.Shard}, nil}}
	} else {
		u.was(w, lifionShards, w.Row.Shard)
	}
	version, _ := w.Row.Was[lifionVersion].(string)
	state := map[string]any{
		lifionNumber: any(w.Raw), lifionDone: w.To == shard.End, lifionParent: Null{},
		"leaseExpiration": Null{}, lifionOwner: Null{}, lifionVersion: token(version, w.Row.Shard, w.Raw),
	}
	if w.To.IsEnd() {
		state[lifionNumber] = Null{}
	}
	if len(w.Parents) > 0 {
		state[lifionParent] = w.Parents[0]
	}
	u.set(state, lifionShards, w.Row.Shard)
	return u
}

// token returns a version in the form of lifion's short UUIDs. Each write of a shard has another
// one.
func token(of ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(of, "\x00")))
	return hex.EncodeToString(sum[:11])
}
