package consume

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/lease"
)

const (
	// waitTold is how long a wait must last before it is logged. Most waits are over after a few
	// heartbeats.
	waitTold = 10 * time.Second
	// waitAgain is the pause before a wait is logged again. It doubles each time, up to waitMost.
	waitAgain, waitMost = time.Minute, 30 * time.Minute
)

// waiting decides when to log why the worker waits. The zero value is ready to use.
type waiting struct {
	why   string    // the present reason; "" if the worker does not wait
	since time.Time // when the wait began, for any reason
	said  string    // the reason that was logged last
	next  time.Time // when to log the same reason again
	pause time.Duration
}

// see takes the reason at a moment, and reports whether to log it. atOnce means that only an
// operator can end the wait.
func (w *waiting) see(why string, atOnce bool, now time.Time) (say bool) {
	w.why = why
	if why == "" {
		*w = waiting{}
		return false
	}
	if w.since.IsZero() {
		w.since = now
	}
	lasts := now.Sub(w.since) >= waitTold && !now.Before(w.next)
	if !lasts && (!atOnce || why == w.said) {
		return false
	}
	w.pause = min(max(2*w.pause, waitAgain), waitMost)
	w.said, w.next = why, now.Add(w.pause)
	return true
}

// hindrance returns why none of the shards with records to handle makes progress, from their
// errors. It returns "" if one of them has no error.
func hindrance(shards []weir.ShardStatus, own map[term]bool) string {
	var first *weir.ShardStatus
	n := 0
	for i := range shards {
		s := &shards[i]
		handled, known := own[term{lease.Key{Stream: s.Stream, Shard: s.Shard}, s.Epoch}]
		switch {
		case !known || handled:
			continue
		case s.Err == nil:
			return ""
		}
		if n++; first == nil || s.Stream+"/"+s.Shard < first.Stream+"/"+first.Shard {
			first = s
		}
	}
	if n == 0 {
		return ""
	}
	text := fmt.Sprintf("shard %s/%s cannot go on: %s", first.Stream, first.Shard, explain.Error(first.Err))
	if n > 1 {
		text = fmt.Sprintf("%s cannot go on, first %s/%s: %s", cli.Count(n, "shard"), first.Stream, first.Shard, explain.Error(first.Err))
	}
	return text
}

// owing returns why shards without a reader wait. why is the reason of the first of them.
func owing(keys []lease.Key, why string, v lease.View, alive func(*lease.Worker) bool) (text string, tell bool) {
	text = fmt.Sprintf("shard %s %s", keys[0], why)
	if len(keys) > 1 {
		text = fmt.Sprintf("%s, and %s", text, cli.Count(len(keys)-1, "more shard"))
	}
	if why != noOwner || !full(v, alive) {
		return text, false
	}
	return text + ": every worker has as many shards as its --max-leases allows (raise it, or start more workers)", true
}

// full reports whether all live workers are at their limit of leases.
func full(v lease.View, alive func(*lease.Worker) bool) bool {
	held := map[string]int{}
	for i := range v.Leases {
		held[v.Leases[i].Owner]++
	}
	living := 0
	room := slices.ContainsFunc(v.Workers, func(w lease.Worker) bool {
		if w.Ended || !alive(&w) {
			return false
		}
		living++
		return !w.Leaving && !w.Drain && (w.MaxLeases == 0 || held[w.Session] < w.MaxLeases)
	})
	return living > 0 && !room
}
