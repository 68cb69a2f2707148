package lambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// MaxState is how large the state of a window may be, in bytes of JSON. A window whose state is
// larger ends early.
const MaxState = 1 << 20

// noState is what the first call of a window gets.
const noState = "{}"

// windowAllowance is how long after a window's end, by this machine's clock, its shard must have
// been seen to have nothing more for the window to end although no later record has come.
const windowAllowance = 5 * time.Second

// span is the time of a window.
type span struct{ start, end time.Time }

// spanOf is the span of windows of a size, which are multiples of that since 1970, in which a time
// lies.
func spanOf(at time.Time, size time.Duration) span {
	past := time.Duration(at.UnixNano()) % size
	if past < 0 {
		past += size
	}
	start := at.Add(-past).Round(0).UTC()
	return span{start, start.Add(size)}
}

// sameWindow is how many of n records, from the first on, belong to the window of the first, which
// it returns. latest is when the latest record before them arrived, zero when there was none: a
// record that arrived before it counts with it. It returns that of these records, too.
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

// passed reports whether a window is over when the shard was seen to have nothing more at a time,
// which is zero when it was not.
func (s span) passed(tip time.Time) bool {
	return !tip.IsZero() && !tip.Before(s.end.Add(windowAllowance))
}

// about is what an event says of its window, behind its records.
type about struct {
	span
	state        []byte
	shard, arn   string
	final, early bool
}

// tail ends an event. Members and their order are Lambda's.
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

// stateOf is the state in an answer about a window. It is a copy.
func stateOf(answer []byte) ([]byte, error) {
	if len(bytes.TrimSpace(answer)) == 0 {
		return nil, errNoState
	}
	// A map, because names that differ in case only are other names.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(answer, &members); err != nil {
		return nil, fmt.Errorf("lambda: the function's answer is no JSON object: %.100q", answer)
	}
	state := members["state"]
	if len(state) == 0 || isNull(state) {
		return nil, errNoState
	}
	return bytes.Clone(state), nil
}
