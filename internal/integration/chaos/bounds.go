package main

import "time"

// times are what the bounds are made of. Every bound is what docs/operations.md promises; the machine's allowance comes on top of each.
type times struct{ beat, failover time.Duration }

// takenOver is how long the shards of a worker that is gone may be silent, whether it led or not.
func (t times) takenOver() time.Duration { return t.failover + 2*t.beat }

// takenOverAtOnce is takenOver when the leader is among several that are gone: the next one begins to watch the others when it leads.
func (t times) takenOverAtOnce() time.Duration { return 2*t.failover + 2*t.beat }

// moved is how long a shard may be silent that moves in order, or whose worker was merely held up.
func (t times) moved() time.Duration { return 2 * t.beat }

// children is how long a child may take from the end of its parents.
func (t times) children() time.Duration { return time.Second + 2*t.beat }

const (
	// readAgain is the longest pause between two tries to read a shard.
	readAgain = 10 * time.Second
	// callEnds is when a call that is not answered is given up.
	callEnds = 20 * time.Second
)

// kinesisBack is how long reading may take from when Kinesis is well again.
func (t times) kinesisBack() time.Duration { return readAgain + t.moved() }

// kinesisDead is how long reading may take when connections to Kinesis have died without a word.
func (t times) kinesisDead() time.Duration { return callEnds + t.moved() }

// starting is what a process takes from its start to its first beat, when nobody else is there.
const starting = time.Second
