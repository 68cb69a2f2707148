package kcl

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"github.com/weir-go/weir/shard"
)

// Checkpoint is a checkpoint of the KCL. The zero value means that there is no checkpoint.
type Checkpoint struct {
	Value string // a sentinel or a sequence number
	Sub   int64  // the index of the last user record that is done, 0 for sentinels
}

// The values of checkpoints that are not sequence numbers. The KCL calls them sentinels.
const (
	AtTimestamp = "AT_TIMESTAMP"
	TrimHorizon = "TRIM_HORIZON"
	Latest      = "LATEST"
	ShardEnd    = "SHARD_END"
)

// WholeSub is the sub-sequence number that means all user records of an aggregate. No aggregate has
// that many records. The number fits into an int of Java.
const WholeSub = math.MaxInt32

// IsZero reports whether c is the zero Checkpoint.
func (c Checkpoint) IsZero() bool { return c == Checkpoint{} }

// IsNumber reports whether c is a sequence number.
func (c Checkpoint) IsNumber() bool { return c.rank() == 4 }

func (c Checkpoint) rank() int {
	switch c.Value {
	case "":
		return 0
	case AtTimestamp:
		return 1
	case TrimHorizon:
		return 2
	case Latest:
		return 3
	case ShardEnd:
		return 5
	}
	return 4
}

// Compare orders checkpoints as the KCL does: AT_TIMESTAMP, TRIM_HORIZON, LATEST, sequence numbers,
// SHARD_END.
func (c Checkpoint) Compare(o Checkpoint) int {
	if r := cmp.Compare(c.rank(), o.rank()); r != 0 || c.rank() != 4 {
		return r
	}
	return cmp.Or(shard.CompareSequence(c.Value, o.Value), cmp.Compare(c.Sub, o.Sub))
}

// String returns the value, and the sub-sequence number if it is not 0.
func (c Checkpoint) String() string {
	if c.Sub == 0 {
		return c.Value
	}
	return c.Value + "/" + strconv.FormatInt(c.Sub, 10)
}

// checkpoint reads a checkpoint from two attributes.
func (it Item) checkpoint(key, value, sub string) (c Checkpoint, err error) {
	// A value with too many digits for a sequence number is accepted here. shard.After then returns
	// an error for it.
	if c.Value, err = it.text(key, value, 1000); err != nil || c.Value == "" {
		return c, err
	}
	if c.Sub, err = it.number(key, sub, false); err != nil {
		return c, err
	}
	if !c.IsNumber() {
		c.Sub = 0
		return c, nil
	}
	if _, err := shard.After(c.Value); err != nil {
		return c, &ItemError{
			key,
			fmt.Sprintf(
				"%s %.140q is neither %s, %s, %s, %s nor a sequence number",
				value,
				c.Value,
				AtTimestamp,
				TrimHorizon,
				Latest,
				ShardEnd,
			),
			repair,
		}
	}
	return c, nil
}

// Position returns the position from which weir continues. For the sentinels AT_TIMESTAMP and
// LATEST, ok is false, because they need further information.
func (c Checkpoint) Position() (p shard.Position, ok bool) {
	switch {
	case c.Value == TrimHorizon:
		return shard.Oldest, true
	case c.Value == ShardEnd:
		return shard.End, true
	case !c.IsNumber() || c.Sub < 0:
		return shard.Position{}, false
	}
	done := uint32(shard.Whole)
	if c.Sub < WholeSub {
		done = uint32(c.Sub) + 1
	}
	p, err := shard.Part(c.Value, done)
	return p, err == nil
}

// Of returns the checkpoint for a position. For a time, and for a position before a record, ok is
// false, because the KCL cannot store them.
func Of(p shard.Position) (c Checkpoint, ok bool) {
	switch p.Kind() {
	case shard.First:
		return Checkpoint{Value: TrimHorizon}, true
	case shard.Tip:
		return Checkpoint{Value: Latest}, true
	case shard.Finished:
		return Checkpoint{Value: ShardEnd}, true
	case shard.Sequence:
		if p.Done() == 0 {
			return Checkpoint{}, false
		}
		return Checkpoint{p.SequenceNumber(), min(int64(p.Done())-1, WholeSub)}, true
	}
	return Checkpoint{}, false
}
