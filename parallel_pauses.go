package weir

import (
	"container/heap"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/mono"
)

// Deliveries that wait until their pauses are over.

// wakeAt sets the timer for the first pause.
func (s *dispatcher) wakeAt() {
	if len(s.paused) == 0 || s.stops {
		return
	}
	wait := mono.Until(s.paused[0].due)
	if s.timer == nil {
		s.timer = time.AfterFunc(wait, s.resume)
	} else {
		s.timer.Reset(wait)
	}
}

// resume has those go on whose pauses are over. It is called without the lock.
func (s *dispatcher) resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for now := mono.Now(); len(s.paused) > 0 && s.paused[0].due.Sub(now) <= 0; {
		s.span.Resume(heap.Pop(&s.paused).(*keyDelivery).lane)
	}
	s.wakeAt()
	s.begin()
}

// pauses are deliveries that wait, a heap by when that is over.
type pauses []*keyDelivery

func (p pauses) Len() int           { return len(p) }
func (p pauses) Less(i, j int) bool { return p[i].due < p[j].due }
func (p pauses) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *pauses) Push(b any)        { *p = append(*p, b.(*keyDelivery)) }
func (p *pauses) Pop() any {
	last := len(*p) - 1
	b := (*p)[last]
	(*p)[last] = nil
	*p = slices.Delete(*p, last, last+1)
	return b
}
