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
	poke    chan struct{}
}

// call is one such wait.
type call struct {
	life  *life
	op    string
	about string // the shard or stream
	n     int    // of that life, op and about, from 1; given when it is admitted
	ctx   context.Context
	deaf  bool // does not hear that ctx has ended
	body  any  // for whoever decides its fate
	sent  int64
	pins  map[string]int64 // of a call that makes leases: the life's, as of then
	slot  int              // among the parked
	reply chan reply
	gone  atomic.Bool // nobody waits any more
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
	if err := context.Cause(c.ctx); err != nil && !c.deaf {
		return reply{err: err}
	}
	c.reply = make(chan reply, 1)
	g.mu.Lock()
	g.arrived = append(g.arrived, c)
	g.mu.Unlock()
	select {
	case g.poke <- struct{}{}:
	default:
	}
	if c.deaf {
		return <-c.reply
	}
	select {
	case r := <-c.reply:
		return r
	case <-c.ctx.Done():
		c.gone.Store(true)
		return reply{err: context.Cause(c.ctx)}
	}
}

// tell has the driver know of something that nobody waits for.
func (g *gate) tell(c *call) {
	g.mu.Lock()
	g.arrived = append(g.arrived, c)
	g.mu.Unlock()
	select {
	case g.poke <- struct{}{}:
	default:
	}
}

// empty reports whether nothing has arrived since the last take.
func (g *gate) empty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.arrived) == 0
}

// take returns what has arrived, in an order that does not depend on which goroutine was first.
func (g *gate) take() []*call {
	g.mu.Lock()
	defer g.mu.Unlock()
	select { // what pokes for is taken now
	case <-g.poke:
	default:
	}
	all := g.arrived
	g.arrived, g.taken = g.taken[:0], all // what take returned is used until the next take
	if len(all) > 1 {
		slices.SortStableFunc(all, func(a, b *call) int {
			if a.life.index != b.life.index {
				return a.life.index - b.life.index
			}
			if c := strings.Compare(a.op, b.op); c != 0 {
				return c
			}
			return strings.Compare(a.about, b.about)
		})
	}
	return all
}
