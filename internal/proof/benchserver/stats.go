package benchserver

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// counters collects the [Stats].
type counters struct {
	mu       sync.Mutex
	log      bool
	began    time.Time
	calls    map[string]int
	steps    []int // number of calls in each 10 ms
	shards   []int // number of GetRecords calls for each shard
	reads    []Read
	together int
	most     int
	open     map[net.Conn]bool
	accepted int
}

const (
	step  = 10 * time.Millisecond
	burst = 10 // in steps
)

func newCounters(cfg Config) *counters {
	c := &counters{log: cfg.Log, shards: make([]int, cfg.Shards), open: map[net.Conn]bool{}}
	c.reset()
	return c
}

// reset resets the counters.
func (c *counters) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began, c.calls, c.steps, c.reads, c.most, c.accepted = time.Now(), map[string]int{}, nil, nil, c.together, 0
	clear(c.shards)
}

func (c *counters) called(action string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[action]++
	i := int(time.Since(c.began) / step)
	for len(c.steps) <= i {
		c.steps = append(c.steps, 0)
	}
	c.steps[i]++
}

// read counts a read of a shard. The read is in progress until done is called.
func (c *counters) read(shard, from int) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shards[shard]++
	if c.log {
		c.reads = append(c.reads, Read{time.Since(c.began), shard, from})
	}
	c.together++
	c.most = max(c.most, c.together)
	return func() {
		c.mu.Lock()
		c.together--
		c.mu.Unlock()
	}
}

func (c *counters) connection(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open[conn] = true
		c.accepted++
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

// now returns the current statistics.
func (c *counters) now() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Stats{
		Calls: map[string]int{}, Length: time.Since(c.began), Burst: mostWithin(c.steps, burst), Fewest: c.shards[0], Together: c.most,
		Connections: len(c.open), Accepted: c.accepted, Reads: append([]Read(nil), c.reads...),
	}
	for action, n := range c.calls {
		s.Calls[action] = n
	}
	for _, n := range c.shards {
		s.Fewest, s.Most = min(s.Fewest, n), max(s.Most, n)
	}
	return s
}

// mostWithin returns the largest sum of neighbouring counts.
func mostWithin(counts []int, neighbours int) (most int) {
	sum := 0
	for i, n := range counts {
		if sum += n; i >= neighbours {
			sum -= counts[i-neighbours]
		}
		most = max(most, sum)
	}
	return most
}
