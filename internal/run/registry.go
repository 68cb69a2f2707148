package run

import (
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/notify"
	"github.com/weir-go/weir/internal/shardrun"
	"github.com/weir-go/weir/internal/supervise"
	"github.com/weir-go/weir/lease"
)

// Registry contains the runs of a consumer. The zero Registry is empty. Its methods may be called
// at any time and wait for nothing.
type Registry struct {
	mu       lock.Mutex[lock.Consumer]  // guards the fields below
	runs     map[*Run]struct{}          // that have not returned, or have abandoned handlers
	queues   map[*notify.Queue]struct{} // whose counts are not in missed
	missed   notify.Counts              // of the queues of runs that have returned
	returned bool                       // a run has
}

// Loops returns the loops of all runs.
func (g *Registry) Loops() (all []*shardrun.Loop) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for r := range g.runs {
		all = r.standing.running(all)
	}
	return all
}

// Workers returns the state of each worker that runs, and whether any run has returned.
func (g *Registry) Workers() (all []supervise.Worker, returned bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for r := range g.runs {
		if w, runs := r.standing.worker(r.streams.Names); runs {
			all = append(all, w)
		}
	}
	return all, g.returned
}

// CutOff returns the trouble of a worker that cannot read any shard. some is false if there is no
// such worker.
func (g *Registry) CutOff(now time.Time) (t lease.Trouble, some bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for r := range g.runs {
		if t, some = r.standing.cutOff(now); some {
			break
		}
	}
	return t, some
}

// Recent summarizes the last minutes of a shard. It returns the zero value if they are unknown.
func (g *Registry) Recent(key lease.Key) (r health.Recent) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for of := range g.runs {
		one := of.standing.recently(key)
		if one.Minutes > 0 && (r.Minutes == 0 || one.Busy > r.Busy) {
			r = one
		}
	}
	return r
}

// StoreAnswered returns the time at which the last answered heartbeat was sent. It is zero if no
// heartbeat was answered, or if no run is in progress.
func (g *Registry) StoreAnswered() (last time.Time) {
	workers, _ := g.Workers()
	for i := range workers {
		if workers[i].Answered.After(last) {
			last = workers[i].Answered
		}
	}
	return last
}

// Missed returns the numbers of events that were dropped, were replaced by later events, or ended
// in a panic.
func (g *Registry) Missed() notify.Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.missed
	for q := range g.queues {
		all.Add(q.Counts())
	}
	return all
}

// register adds a run.
func (g *Registry) register(r *Run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.runs == nil {
		g.runs = map[*Run]struct{}{}
	}
	g.runs[r] = struct{}{}
}

// unregister notes that a run has returned. It removes the run unless abandoned handlers of the run
// still work.
func (g *Registry) unregister(r *Run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.returned = true
	if r.standing.leave() {
		delete(g.runs, r)
	}
}

// forget removes a run that has returned and whose last loop has ended.
func (g *Registry) forget(r *Run) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.runs, r)
}

// opens adds an open queue. closed removes a queue that is closed, and keeps its counts.
func (g *Registry) opens(q *notify.Queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queues == nil {
		g.queues = map[*notify.Queue]struct{}{}
	}
	g.queues[q] = struct{}{}
}

func (g *Registry) closed(q *notify.Queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.missed.Add(q.Counts())
	delete(g.queues, q)
}
