package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weir-go/weir/internal/proof/sim/model"
)

// gate is where weir's goroutines park when they wait for something outside of weir.
type gate struct {
	mu      sync.Mutex
	arrived []*call
	taken   []*call
	free    []chan struct{} // channels of calls that have been answered, for reuse
	beats   []*beatCall     // heartbeats to reuse
	poke    chan struct{}
}

// call is one wait at the gate.
type call struct {
	life  *life
	op    string
	about string // shard or stream that the call is about
	n     int    // counts calls with the same life, op and about, from 1; set at admission
	ctx   context.Context
	deaf  bool // the call ignores the end of ctx; for a heartbeat, the driver watches ctx; see [world.listens]
	body  any  // data for the code that decides the fate of the call
	sent  int64
	pins  map[string]int64 // for a call that creates leases: the pins of the life at that time
	slot  int              // index among the parked calls
	reply reply            // set once
	done  chan struct{}    // signals that reply is set
	over  bool             // the call has been answered; only the driver uses this field
	gone  atomic.Bool      // no goroutine waits for the answer any more
}

// isUsers reports whether the call runs user code for records of a shard.
func (c *call) isUsers() bool {
	switch c.op {
	case "handle", "letters", "emit", "stray", "rows", "begin", "commit", "frozen":
		return true
	}
	return false
}

type reply struct {
	value any
	err   error
}

var errDead = errors.New("sim: the worker has crashed")

// wait parks the goroutine until the driver answers the call or ctx ends.
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

// newBeat returns an object for a heartbeat, the most frequent kind of call.
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

// arrives passes a call to the driver. waits reports whether a goroutine waits for the answer.
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

// tell tells the driver about an event for which no goroutine waits.
func (g *gate) tell(c *call) { g.arrives(c, false) }

// empty reports whether nothing has arrived since the last take.
func (g *gate) empty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.arrived) == 0
}

// first returns a text that distinguishes simultaneous calls of one worker or producer about the
// same shard or stream. It returns "" for kinds of calls that need no such text.
func (c *call) first() string {
	switch body := c.body.(type) {
	case applyCall:
		if len(body.actions) > 0 {
			return body.actions[0].String()
		}
	case *handling: // handlers of several keys
		if len(body.batch.Records) > 0 {
			return body.batch.Records[0].ID()
		}
	case lettersCall:
		return body.letters[0].ID
	case *rowsCall:
		if body.try != nil {
			return body.key.String() + " " + body.try.first
		}
		return body.key.String()
	case frozenCall:
		return body.first
	case *model.Call: // of PutRecords
		if len(body.Puts) > 0 {
			return string(body.Puts[0].Data)
		}
	}
	return ""
}

// take returns the arrived calls. Their order does not depend on which goroutine was first.
func (g *gate) take() []*call {
	g.mu.Lock()
	defer g.mu.Unlock()
	select { // remove a pending wake-up
	case <-g.poke:
	default:
	}
	all := g.arrived
	g.arrived, g.taken = g.taken[:0], all // the result is valid until the next take
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
