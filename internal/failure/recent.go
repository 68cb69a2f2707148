package failure

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/lease"
)

// lately is how long a worker reports dead-lettered records of a shard. Each new dead-lettered
// record restarts the time.
const lately = time.Hour

// Recent contains the shards with records that were dead-lettered recently. The zero Recent is
// ready to use.
type Recent struct {
	mu     lock.Mutex[lock.Failures]
	shards map[lease.Key]recent // guarded by mu; nil before there is any
}

type recent struct {
	records     int
	first, last time.Time
	at, why     string // of the last record
}

// Note adds records of a shard that were dead-lettered. at is the position of the last one.
func (r *Recent) Note(key lease.Key, records int, at, why string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shards == nil {
		r.shards = map[lease.Key]recent{}
	}
	of, some := r.shards[key]
	if !some {
		of.first = now
	}
	of.records, of.last, of.at, of.why = of.records+records, now, at, why
	r.shards[key] = of
}

// Tell adds recently dead-lettered records to the troubles. If a shard already has a trouble, Tell
// changes that trouble. Otherwise it appends a new one.
func (r *Recent) Tell(troubles []lease.Trouble, now time.Time) []lease.Trouble {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(troubles)
	for key, of := range r.shards {
		if now.Sub(of.last) >= lately {
			delete(r.shards, key)
			continue
		}
		if i := slices.IndexFunc(troubles[:n], func(t lease.Trouble) bool { return t.Key == key }); i >= 0 {
			troubles[i].Failing.GivenUp = of.records
			continue
		}
		troubles = append(troubles, lease.Trouble{
			Key: key, State: lease.GaveUp, For: now.Sub(of.first).Truncate(time.Second), Why: of.why,
			Failing: lease.Failing{At: of.at, GivenUp: of.records},
		})
	}
	slices.SortFunc(troubles[n:], func(a, b lease.Trouble) int {
		return cmp.Or(cmp.Compare(b.Failing.GivenUp, a.Failing.GivenUp), a.Key.Compare(b.Key))
	})
	return troubles
}
