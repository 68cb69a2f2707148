package main

import "time"

// times are the basis of the limits. Every limit is a promise of the README in this folder; the
// machine's allowance is added to each.
type times struct{ beat, failover time.Duration }

// takenOver limits the silence of the shards of lost workers: one or all but one, with or without
// the leader.
func (t times) takenOver() time.Duration { return t.failover + 2*t.beat }

// moved limits the silence of a shard that is handed off, or whose worker was only delayed.
func (t times) moved() time.Duration { return 2 * t.beat }

// children limits the time from the end of the parents until a child is read.
func (t times) children() time.Duration { return time.Second + 2*t.beat }

const (
	// readAgain is the longest pause between two attempts to read a shard.
	readAgain = 10 * time.Second
	// readEnds is the duration of a read over a silent connection: at most 4 s, and a second
	// attempt over a new connection.
	readEnds = 5 * time.Second
	// pingEnds is the time after which a silent connection of subscriptions without an answer to a
	// ping is abandoned.
	pingEnds = 20 * time.Second
	// probeEnds is the time after which an attempt to subscribe is abandoned while the shard is
	// polled.
	probeEnds = 10 * time.Second
	// silenceEnds is the time after which a silent subscription, without even an empty event, is
	// abandoned.
	silenceEnds = 30 * time.Second
	// takeoverAfter is the service's limit, refusedPause the longest pause between two attempts of
	// a subscription that another one blocks.
	takeoverAfter = 5 * time.Second
	refusedPause  = 1500 * time.Millisecond
)

// kinesisBack limits the time from Kinesis' recovery until reading.
func (t times) kinesisBack() time.Duration { return readAgain + t.moved() }

// kinesisDead limits the time until reading after connections to Kinesis have died silently. A
// subscription ends when its connection does not answer a ping. A shard that is polled because
// fan-out failed before may be in an attempt to subscribe, and then be read over another silent
// connection.
func (t times) kinesisDead(pushed bool) time.Duration {
	polled := readEnds + t.moved()
	if pushed {
		return max(pingEnds+t.subscribedAgain(), probeEnds+polled)
	}
	return polled
}

// fromFrozen is takenOver for a frozen worker with subscriptions. The service allows no takeover of
// a young subscription, so the next owner may be refused until then, and tries once more after
// that.
func (t times) fromFrozen(pushed bool) time.Duration {
	if pushed {
		return max(t.takenOver(), takeoverAfter+refusedPause)
	}
	return t.takenOver()
}

// subscribedAgain limits the time until reading after a subscription has ended: the service allows
// a call per second.
func (t times) subscribedAgain() time.Duration { return time.Second + t.moved() }

// silent limits the time until reading after a subscription has become silent on a healthy
// connection.
func (t times) silent() time.Duration { return silenceEnds + t.subscribedAgain() }

// starting is the time from a process's start to its first beat, without other workers.
const starting = time.Second
