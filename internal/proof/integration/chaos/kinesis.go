package main

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weir-go/weir/kinesistest"
)

// Ways in which calls can fail.
const (
	throttled = "throttled"
	failing   = "internal failures"
	lost      = "lost answers"
	torn      = "torn answers"
)

// Ways in which healthy subscriptions can end.
const (
	cutShort  = "cut in the middle of an event"
	exception = "an exception"
	endEarly  = "an end without a word"
	silence   = "silence"
)

// ends contains the modes of a fault of subscriptions. The number of a shard determines its mode,
// so each mode affects some of the shards.
var ends = []string{cutShort, exception, endEarly, silence}

func endOf(shard string) (how string, known bool) {
	_, digits, _ := strings.Cut(shard, "-")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 {
		return "", false
	}
	return ends[n%len(ends)], true
}

// unwell contains the current faults of calls to Kinesis. Calls and the stage use it concurrently.
type unwell struct {
	mu     sync.Mutex
	how    string // "" if calls do not fail
	some   float64
	strike map[string]chan struct{} // by mode; closed to end the subscriptions of this mode

	subscribed int // calls of SubscribeToShard over HTTP/2
	outdated   int // calls of SubscribeToShard over another protocol
}

func newUnwell() *unwell {
	u := &unwell{strike: map[string]chan struct{}{}}
	for _, how := range ends {
		u.strike[how] = make(chan struct{})
	}
	return u
}

// fail makes a fraction (some) of the calls fail from now on, in the way how. If how is "", no call
// fails.
func (u *unwell) fail(how string, some float64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.how, u.some = how, some
}

// end ends the subscriptions whose mode is how.
func (u *unwell) end(how string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	close(u.strike[how])
	u.strike[how] = make(chan struct{})
}

// counted returns the number of SubscribeToShard calls, over HTTP/2 and over other protocols.
func (u *unwell) counted() (subscribed, outdated int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.subscribed, u.outdated
}

// call decides the fault of a call.
func (u *unwell) call(c *kinesistest.Call) kinesistest.Fault {
	u.mu.Lock()
	defer u.mu.Unlock()
	subscribes := c.Action == "SubscribeToShard"
	switch {
	case subscribes && c.Proto == "HTTP/2.0":
		u.subscribed++
	case subscribes:
		u.outdated++
	}
	if (u.how == failing || u.how != "" && (subscribes || c.Action == "GetRecords")) && rand.Float64() < u.some {
		return failure(u.how, subscribes)
	}
	how, known := endOf(c.Shard)
	if !subscribes || !known {
		return kinesistest.Fault{}
	}
	f := kinesistest.SubscriptionFault{Trigger: u.strike[how]}
	switch how {
	case cutShort:
		f.CutEvent = true
	case exception:
		f.Exception = &kinesistest.Error{Code: "InternalFailureException"}
	case endEarly:
		f.End = true
	case silence:
		f.HalfOpen = true
	}
	return kinesistest.Fault{Subscription: f}
}

func failure(how string, subscribes bool) kinesistest.Fault {
	switch how {
	case throttled:
		code := "ProvisionedThroughputExceededException"
		if subscribes {
			code = "LimitExceededException"
		}
		return kinesistest.Fault{Err: &kinesistest.Error{Code: code}}
	case failing:
		return kinesistest.Fault{Err: &kinesistest.Error{Code: "InternalFailure"}}
	case lost:
		return kinesistest.Fault{LoseAnswer: true}
	}
	return kinesistest.Fault{CutAfter: 1 + rand.IntN(200)}
}

// subscribedTo returns the shards whose subscriptions have the given mode.
func (s *stage) subscribedTo(how string) (shards []string) {
	for _, sub := range s.server.Subscriptions(stream) {
		if end, _ := endOf(sub.Shard); end == how {
			shards = append(shards, sub.Shard)
		}
	}
	slices.Sort(shards)
	return shards
}
