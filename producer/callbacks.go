package producer

import (
	"errors"

	"github.com/weir-go/weir/internal/guard"
)

// callbacks lists records with an outcome whose callback was not called yet. The producer's mutex
// guards the list.
type callbacks struct {
	waiting []*Pending
	spare   []*Pending    // memory for the next ones
	wake    chan struct{} // has one element when the list is not empty
	over    chan struct{} // closed when all were called
}

func (c *callbacks) push(rec *Pending) {
	c.waiting = append(c.waiting, rec)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// callBack calls the callbacks one after the other. It returns when the dispatcher has ended and no
// callback is left.
func (p *Producer) callBack() {
	defer close(p.callbacks.over)
	for over := false; ; {
		p.mu.Lock()
		todo := p.callbacks.waiting
		p.callbacks.waiting, p.callbacks.spare = p.callbacks.spare, nil
		p.mu.Unlock()
		for _, rec := range todo {
			if err := guard.Call(func() error { rec.done(rec.result(), rec.err); return nil }); err != nil {
				p.logPanic(err)
			}
			p.mu.Lock()
			rec.done = nil
			p.release(rec)
			p.mu.Unlock()
		}
		if over {
			return
		}
		clear(todo)
		if cap(todo) <= spareItems {
			p.mu.Lock()
			p.callbacks.spare = todo[:0]
			p.mu.Unlock()
		}
		select {
		case <-p.callbacks.wake:
		case <-p.over:
			over = true // and look once more
		}
	}
}

// logPanic logs a panic of a callback, of a hook or of the logger.
func (p *Producer) logPanic(err error) {
	stack := ""
	var panicked *guard.Panic
	if errors.As(err, &panicked) {
		stack = panicked.Stack
	}
	p.repeated.Error("a callback or a hook of the producer panicked; the producer continues", "err", err, "stack", stack)
}
