package main

import "time"

// times are what the bounds are made of. Every bound is what README.md, here, promises; the
// machine's allowance comes on top of each.
type times struct{ beat, failover time.Duration }

// takenOver is how long the shards of workers that are gone may be silent, whether one or all but
// one, and whether the leader is among them.
func (t times) takenOver() time.Duration { return t.failover + 2*t.beat }

// moved is how long a shard may be silent that moves in order, or whose worker was merely held up.
func (t times) moved() time.Duration { return 2 * t.beat }

// children is how long a child may take from the end of its parents.
func (t times) children() time.Duration { return time.Second + 2*t.beat }

const (
	// readAgain is the longest pause between two tries to read a shard.
	readAgain = 10 * time.Second
	// readEnds is how long a read takes whose connection is silent: 4 s at most, and a second try
	// over a new connection.
	readEnds = 5 * time.Second
	// pingEnds is when a connection of subscriptions is given up that brings nothing, and no answer
	// to a ping.
	pingEnds = 20 * time.Second
	// probeEnds is when a try to subscribe is given up while the shard is polled.
	probeEnds = 10 * time.Second
	// silenceEnds is when a subscription is given up that brings nothing, not even an empty event.
	silenceEnds = 30 * time.Second
	// takeoverAfter is the service's, refusedPause the longest pause between two tries of a
	// subscription that another one is in the way of.
	takeoverAfter = 5 * time.Second
	refusedPause  = 1500 * time.Millisecond
)

// kinesisBack is how long reading may take from when Kinesis is well again.
func (t times) kinesisBack() time.Duration { return readAgain + t.moved() }

// kinesisDead is how long reading may take when connections to Kinesis have died without a word. A
// subscription ends when its connection does not answer a ping. A shard that is polled because
// fan-out failed before may be at a try to subscribe, and then be read over a connection that is
// silent too.
func (t times) kinesisDead(pushed bool) time.Duration {
	polled := readEnds + t.moved()
	if pushed {
		return max(pingEnds+t.subscribedAgain(), probeEnds+polled)
	}
	return polled
}

// fromFrozen is takenOver when the worker that is gone stands still with its subscriptions. The
// service lets nobody take over a younger one, so the next owner may be refused until then, and
// tries once more after that.
func (t times) fromFrozen(pushed bool) time.Duration {
	if pushed {
		return max(t.takenOver(), takeoverAfter+refusedPause)
	}
	return t.takenOver()
}

// subscribedAgain is how long reading may take when a subscription has ended: a call a second is
// allowed.
func (t times) subscribedAgain() time.Duration { return time.Second + t.moved() }

// silent is how long reading may take when nothing comes by a subscription any more although its
// connection is well.
func (t times) silent() time.Duration { return silenceEnds + t.subscribedAgain() }

// starting is what a process takes from its start to its first beat, when nobody else is there.
const starting = time.Second
