package lambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// MaxState limits the state of a window, in bytes of JSON. A window with a larger state ends early.
const MaxState = 1 << 20

// noState is the state in the first call of a window.
const noState = "{}"

// windowAllowance delays the end of a window without a later record. The window ends when its shard
// was seen to be empty that long after the window's end, by the clock of this machine.
const windowAllowance = 5 * time.Second

// span is the time of a window.
type span struct{ start, end time.Time }

// spanOf returns the window that contains a time. Windows are multiples of size since 1970.
func spanOf(at time.Time, size time.Duration) span {
	past := time.Duration(at.UnixNano()) % size
	if past < 0 {
		past += size
	}
	start := at.Add(-past).Round(0).UTC()
	return span{start, start.Add(size)}
}

// sameWindow returns how many of n records, from the first on, belong to the window of the first
// record, and that window. latest is the arrival time of the latest earlier record, or zero. A
// record that arrived before latest belongs to the same window as that one. sameWindow also returns
// the new latest time.
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

// passed reports whether a window has ended, given the time at which the shard was seen to be
// empty, or zero.
func (s span) passed(tip time.Time) bool {
	return !tip.IsZero() && !tip.Before(s.end.Add(windowAllowance))
}

// about is the description of a window in an event, after its records.
type about struct {
	span
	state        []byte
	shard, arn   string
	final, early bool
}

// tail returns the end of an event. Fields and their order are Lambda's.
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

var errNoState = errors.New("lambda: the function's answer has no state, which one about a window needs")

// stateOf returns a copy of the state in an answer about a window.
func stateOf(answer []byte) ([]byte, error) {
	if len(bytes.TrimSpace(answer)) == 0 {
		return nil, errNoState
	}
	// A map, because names that differ only in case are different names.
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
