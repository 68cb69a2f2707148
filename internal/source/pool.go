package source

import (
	"context"
	"sync"
)

// Pool makes the reads of many shards on a few goroutines. A read needs a deep stack for a moment; ten thousand idle shards
// that each kept one would need hundreds of megabytes. The bound also keeps a start with many shards from becoming a storm.
// The zero Pool is ready; it must be closed.
type Pool struct {
	mu      sync.Mutex
	workers int
	closed  bool
	work    chan job
	running sync.WaitGroup
}

type job struct {
	do   func()
	done chan<- struct{}
}

// poolSize is how many reads are under way at once. With answers after 20 ms that is 6,400 a second.
const poolSize = 128

// Do runs f on one of the pool's goroutines and returns when f has. done is the caller's, has room for one, and is used
// again and again. Without a free goroutine it waits, for as long as ctx lasts; then f is not run.
func (p *Pool) Do(ctx context.Context, done chan struct{}, f func()) error {
	j := job{f, done}
	work := p.ready()
	select {
	case work <- j:
	default:
		p.grow()
		select {
		case work <- j:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	<-done
	return nil
}

func (p *Pool) ready() chan job {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.work == nil {
		p.work = make(chan job)
	}
	return p.work
}

func (p *Pool) grow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.workers == poolSize || p.closed {
		return
	}
	p.workers++
	work := p.work
	p.running.Go(func() {
		for j := range work {
			j.do()
			j.done <- struct{}{}
		}
	})
}

// Close ends the goroutines. Nobody may be in Do any more.
func (p *Pool) Close() {
	p.mu.Lock()
	if p.work != nil && !p.closed {
		close(p.work)
	}
	p.closed = true
	p.mu.Unlock()
	p.running.Wait()
}
