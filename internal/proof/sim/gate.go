package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// gate is where weir's goroutines park whenever they wait for something outside of weir.
type gate struct {
	mu      sync.Mutex
	arrived []*call
	taken   []*call
	free    []chan struct{} // of calls that have been answered
	beats   []*beatCall     // for reuse
	poke    chan struct{}
}

// call is one such wait.
type call struct {
	life  *life
	op    string
	about string // the shard or stream
	n     int    // of that life, op and about, from 1; set at admission
	ctx   context.Context
	deaf  bool // ignores the end of ctx; for a heartbeat the driver watches it, see [world.listens]
	body  any  // for the code that decides its fate
	sent  int64
	pins  map[string]int64 // of a call that creates leases: the life's, at that time
	slot  int              // among the parked
	reply reply            // once
	done  chan struct{}    // says so
	over  bool             // it has been answered; only the driver uses it
	gone  atomic.Bool      // no goroutine waits any more
}

// isUsers reports whether it is user code about a shard's records.
func (c *call) isUsers() bool {
	return c.op == "handle" || c.op == "letters" || c.op == "emit" || c.op == "stray"
}

type reply struct {
	value any
	err   error
}

var errDead = errors.New("sim: the worker has crashed")

// wait parks until the driver answers or ctx ends.
func (g *gate) wait(c *call) reply {
	if c.life.dead.Load() {
		return reply{err: errDead}
	}
	if !c.deaf {
		if err := context.Cause(c.ctx); err != nil {
			return reply{err: err}
		}
	}
	g.arrives(c, true)
	if c.deaf {
		<-c.done
	} else {
		select {
		case <-c.done:
		case <-c.ctx.Done():
			c.gone.Store(true)
			return reply{err: context.Cause(c.ctx)}
		}
	}
	g.mu.Lock()
	g.free = append(g.free, c.done)
	g.mu.Unlock()
	return c.reply
}

// newBeat returns an object for the most frequent kind of call.
func (g *gate) newBeat() *beatCall {
	g.mu.Lock()
	defer g.mu.Unlock()
	last := len(g.beats) - 1
	if last < 0 {
		return new(beatCall)
	}
	b := g.beats[last]
	g.beats = g.beats[:last]
	return b
}

func (g *gate) freeBeat(b *beatCall) {
	*b = beatCall{}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.beats = append(g.beats, b)
}

// arrives passes a call to the driver.
func (g *gate) arrives(c *call, waits bool) {
	g.mu.Lock()
	if last := len(g.free) - 1; !waits {
	} else if last >= 0 {
		c.done, g.free = g.free[last], g.free[:last]
	} else {
		c.done = make(chan struct{}, 1)
	}
	g.arrived = append(g.arrived, c)
	g.mu.Unlock()
	select {
	case g.poke <- struct{}{}:
	default:
	}
}

// answer answers a call. Only the first answer counts.
func (c *call) answer(r reply) {
	if !c.over {
		c.over, c.reply = true, r
		c.done <- struct{}{}
	}
}

// tell tells the driver about an event without a waiting goroutine.
func (g *gate) tell(c *call) { g.arrives(c, false) }

// empty reports whether nothing has arrived since the last take.
func (g *gate) empty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.arrived) == 0
}

// first distinguishes simultaneous calls of one worker: those that change leases, and those of
// handlers of several keys of a shard.
func (c *call) first() string {
	switch body := c.body.(type) {
	case applyCall:
		if len(body.actions) > 0 {
			return body.actions[0].String()
		}
	case *handling: // of several keys
		if len(body.batch.Records) > 0 {
			return body.batch.Records[0].ID()
		}
	case lettersCall:
		return body.letters[0].ID
	}
	return ""
}

// take returns the arrived calls, in an order independent of which goroutine was first.
func (g *gate) take() []*call {
	g.mu.Lock()
	defer g.mu.Unlock()
	select { // removes a pending poke
	case <-g.poke:
	default:
	}
	all := g.arrived
	g.arrived, g.taken = g.taken[:0], all // the result of take is valid until the next take
	if len(all) > 1 {
		slices.SortStableFunc(all, func(a, b *call) int {
			if a.life.index != b.life.index {
				return a.life.index - b.life.index
			}
			if c := strings.Compare(a.op, b.op); c != 0 {
				return c
			}
			if c := strings.Compare(a.about, b.about); c != 0 {
				return c
			}
			return strings.Compare(a.first(), b.first())
		})
	}
	return all
}
