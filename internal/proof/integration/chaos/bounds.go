package main

import "time"

// times contains the times from which the limits are computed. Every limit is a promise of the
// README in this folder. The allowance for the machine is added to each limit.
type times struct{ beat, failover time.Duration }

// takenOver is the maximum silence of the shards of lost workers. It is the same for the loss of
// one worker and for the loss of all workers but one, with or without the leader.
func (t times) takenOver() time.Duration { return t.failover + 2*t.beat }

// moved is the maximum silence of a shard that is handed off, or whose worker was only delayed.
func (t times) moved() time.Duration { return 2 * t.beat }

// children is the maximum time from the end of the parents until a child is read.
func (t times) children() time.Duration { return time.Second + 2*t.beat }

const (
	// readAgain is the longest pause between two attempts to read a shard.
	readAgain = 10 * time.Second
	// readEnds is the maximum duration of a read over a silent connection: 4 s for the first
	// attempt, and a second attempt over a new connection.
	readEnds = 5 * time.Second
	// pingEnds is the time after which a silent connection of subscriptions is abandoned, because
	// it has not answered a ping.
	pingEnds = 20 * time.Second
	// probeEnds is the time after which an attempt to subscribe is abandoned. The shard is polled
	// during the attempt.
	probeEnds = 10 * time.Second
	// silenceEnds is the time after which weir abandons a subscription if the subscription has sent
	// nothing, not even an empty event.
	silenceEnds = 30 * time.Second
	// takeoverAfter is the age from which the service lets a new subscription replace an existing
	// one. refusedPause is the longest pause between two attempts to subscribe while another
	// subscription blocks.
	takeoverAfter = 5 * time.Second
	refusedPause  = 1500 * time.Millisecond
)

// kinesisBack is the maximum time from the recovery of Kinesis until records are read.
func (t times) kinesisBack() time.Duration { return readAgain + t.moved() }

// kinesisDead is the maximum time until records are read after connections to Kinesis have died
// silently. A subscription ends when its connection does not answer a ping. If fan-out failed
// before, the shard is polled instead. Then two calls may hang one after the other on silent
// connections: an attempt to subscribe, and a read.
func (t times) kinesisDead(pushed bool) time.Duration {
	polled := readEnds + t.moved()
	if pushed {
		return max(pingEnds+t.subscribedAgain(), probeEnds+polled)
	}
	return polled
}

// fromFrozen is the maximum silence of the shards of a frozen worker. It is takenOver if the worker
// polls. If the worker has subscriptions, the service refuses the next owner until a subscription
// is takeoverAfter old. The next owner may have to wait for one more pause before it tries again.
func (t times) fromFrozen(pushed bool) time.Duration {
	if pushed {
		return max(t.takenOver(), takeoverAfter+refusedPause)
	}
	return t.takenOver()
}

// subscribedAgain is the maximum time until records are read after a subscription has ended. The
// service allows one call per second.
func (t times) subscribedAgain() time.Duration { return time.Second + t.moved() }

// silent is the maximum time until records are read after a subscription has become silent on a
// healthy connection.
func (t times) silent() time.Duration { return silenceEnds + t.subscribedAgain() }

// starting is the time from the start of a process to its first heartbeat, if there are no other
// workers.
const starting = time.Second
