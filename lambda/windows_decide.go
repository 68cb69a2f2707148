package lambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// MaxState is the maximum size of a window's state, in bytes of JSON. If the state of a window is
// larger, the window ends early.
const MaxState = 1 << 20

// noState is the state in the first event of a window.
const noState = "{}"

// windowAllowance delays the end of a window that no later record ends. Such a window ends when the
// shard is seen to be empty this long after the window's time range, by the clock of this machine.
const windowAllowance = 5 * time.Second

// span is the time range of a window.
type span struct{ start, end time.Time }

// spanOf returns the window that contains a time. Windows start at multiples of size since 1970.
func spanOf(at time.Time, size time.Duration) span {
	past := time.Duration(at.UnixNano()) % size
	if past < 0 {
		past += size
	}
	start := at.Add(-past).Round(0).UTC()
	return span{start, start.Add(size)}
}

// sameWindow returns how many records at the start of a batch belong to one window, and that
// window. n is the number of records in the batch. latest is the latest arrival time of the earlier
// records, or zero. Records may be out of order: a record that arrived before latest belongs to the
// window of latest. last is the new value of latest.
func sameWindow(n int, arrived func(i int) time.Time, latest time.Time, size time.Duration) (same int, of span, last time.Time) {
	for same < n {
		at := arrived(same)
		if at.Before(latest) {
			at = latest
		}
		here := spanOf(at, size)
		if same == 0 {
			of = here
		} else if here != of {
			break
		}
		same, latest = same+1, at
	}
	return same, of, latest
}

// passed reports whether a window has ended. tip is the time at which the shard was seen to be
// empty, or zero.
func (s span) passed(tip time.Time) bool {
	return !tip.IsZero() && !tip.Before(s.end.Add(windowAllowance))
}

// about contains what an event says about its window.
type about struct {
	span
	state        []byte
	shard, arn   string
	final, early bool
}

// tail returns the part of an event that follows the records. Fields have Lambda's order.
func (a about) tail() string {
	dst := append([]byte(nil), `],"window":{"start":`...)
	dst = appendString(dst, a.start.Format(time.RFC3339))
	dst = append(dst, `,"end":`...)
	dst = appendString(dst, a.end.Format(time.RFC3339))
	dst = append(append(dst, `},"state":`...), a.state...)
	dst = append(dst, `,"shardId":`...)
	dst = appendString(dst, a.shard)
	dst = append(dst, `,"eventSourceARN":`...)
	dst = appendString(dst, a.arn)
	dst = strconv.AppendBool(append(dst, `,"isFinalInvokeForWindow":`...), a.final)
	dst = strconv.AppendBool(append(dst, `,"isWindowTerminatedEarly":`...), a.early)
	return string(append(dst, '}'))
}

var errNoState = errors.New("lambda: the function's answer has no state, but the answer to an event of a window needs a state")

// stateOf returns a copy of the state in an answer to an event of a window.
func stateOf(answer []byte) ([]byte, error) {
	if len(bytes.TrimSpace(answer)) == 0 {
		return nil, errNoState
	}
	// Use a map. A struct would ignore case, but names that differ in case are different.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(answer, &members); err != nil {
		return nil, fmt.Errorf("lambda: the function's answer is not a JSON object: %.100q", answer)
	}
	state := members["state"]
	if len(state) == 0 || isNull(state) {
		return nil, errNoState
	}
	return bytes.Clone(state), nil
}
