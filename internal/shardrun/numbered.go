package shardrun

import (
	"time"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/repeats"
	"github.com/weir-go/weir/internal/retry"
	"github.com/weir-go/weir/internal/source"
	"github.com/weir-go/weir/lease"
)

// numbered recognizes the records of a term that a producer sent again. The heartbeat loop takes
// the numbers of the records before the checkpoint from it, and stores them with the checkpoint.
type numbered struct {
	mu lock.Mutex[lock.Shard]
	of *repeats.Tracker // guarded by mu
}

// Read implements [batch.Repeats].
func (n *numbered) Read(number string, sub uint32, of aggregate.Number, arrival time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.of.Read(number, sub, of, arrival)
}

// Numbers implements [group.Numbers].
func (n *numbered) Numbers(at Position) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.of.Saved(at)
}

func (n *numbered) restart(at Position) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of.Restart(at)
}

// readyForRepeats prepares the session for a page with numbered records. The numbers of earlier
// records come from the lease, and at the beginning of a shard from its parents. readyForRepeats
// waits until the store returns them. Without them, repeats would be handled.
func (l *Loop) readyForRepeats(page *source.Page) next {
	s := l.session
	if !l.in.DropRepeats || !page.Marked || s == nil || s.numbered != nil {
		return next{}
	}
	if before, ok := l.term.Numbers().(*numbered); ok { // of an earlier session of this term
		before.restart(s.start)
		s.numbered = before
		return next{}
	}
	stored := l.term.StoredNumbers()
	var ended []string
	if !repeats.Known(stored, s.start) {
		began := time.Now()
		for attempt := 1; ; attempt++ {
			parents, err := l.in.Lineage.Ended(l.term.Reading(), l.term.Lease.Key, began)
			if err == nil {
				ended = numbersOf(parents)
				break
			}
			if l.term.Reading().Err() != nil {
				return next{then: over}
			}
			l.Repeated().Warn("could not look up the numbers of the records that were handled in a shard's parents; weir retries", "err", err)
			if n := l.pause(retry.Pause(l.in.RetryMin, l.in.RetryMax, attempt)); n.then != goOn {
				return n
			}
		}
	}
	s.numbered = &numbered{of: repeats.New(stored, s.start, ended...)}
	l.term.SetNumbers(s.numbered)
	return next{}
}

// numbersOf returns the stored numbers of leases.
func numbersOf(leases []lease.Lease) (texts []string) {
	for i := range leases {
		texts = append(texts, leases[i].Numbers)
	}
	return texts
}
