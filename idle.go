package weir

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/delivery"
	"github.com/weir-go/weir/internal/source"
)

// idle has a term's handler be called when there is nothing to handle, for those that ask.
type idle struct {
	every time.Duration // 0 is never
	due   time.Time
	timer *time.Timer // wakes the loop; nil while it runs
	tip   time.Time   // when an event last said that nothing more was to be read
}

const leastIdle, mostIdle = 100 * time.Millisecond, time.Hour

// check says what is wrong with the options.
func (h *ShardHandlers) check() error {
	if h.Idle != 0 && (h.Idle < leastIdle || h.Idle > mostIdle) {
		return fmt.Errorf("weir: ShardHandlers.Idle %v must be between %v and %v, or 0 for no calls", h.Idle, leastIdle, mostIdle)
	}
	return nil
}

// again schedules the next call for when no record has been handled for a while from now on.
func (i *idle) again() {
	if i.every > 0 {
		i.due = time.Now().Add(i.every)
	}
}

// stop ends the timer.
func (i *idle) stop() {
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
}

// callIdle calls the handler if that is due. It is called when there is nothing to handle, and
// reports whether it did.
func (l *shardLoop) callIdle() (called bool, err error) {
	h := l.handles
	if h == nil || h.idle.every == 0 || h.gathered.Waits() {
		return false, nil
	}
	h.idle.stop()
	if wait := time.Until(h.idle.due); wait > 0 {
		if l.in.consumers == nil { // else the wait for the next event ends
			h.idle.timer = time.AfterFunc(wait, l.term.Wake)
		}
		return false, nil
	}
	defer l.rest()
	b := delivery.Batch{Idle: true, Tip: l.tip(), Behind: -1}
	if !b.Tip.IsZero() {
		b.Behind = 0
	}
	return true, l.deliver(l.handover(nil, false, b, time.Time{}))
}

// tip is when all there was had been read and handed over; zero when that is not known.
func (l *shardLoop) tip() time.Time {
	if l.in.consumers != nil {
		return l.handles.idle.tip
	}
	s := l.source.Status()
	if s.Doing != source.AtTip || s.Behind != 0 || s.Buffered > 0 || s.Err != nil {
		return time.Time{}
	}
	return s.Since
}
