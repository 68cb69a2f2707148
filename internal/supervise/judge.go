package supervise

import (
	"slices"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/lease"
)

// Judge stores recent observations of a consumer's shards, as many as package health needs. The
// zero Judge is ready to use.
type Judge struct {
	mu       lock.Mutex[lock.Judge] // guards observed
	observed map[holding]*health.Observations
}

// holding identifies a shard during one epoch of its lease.
type holding struct {
	lease.Key
	epoch uint64
}

// Observed is an observation of a shard, with the epoch of its lease.
type Observed struct {
	lease.Key
	Epoch uint64
	health.Observation
}

// Judge rates the shards, the worst first, and the application. Each call adds one observation of
// each given shard. Observations of shards that are not given any more are dropped.
func (j *Judge) Judge(shards []Observed, now time.Time) (health.Application, []health.Named) {
	j.mu.Lock()
	defer j.mu.Unlock()
	bounds := health.Options{}.Defaults()
	kept := make(map[holding]*health.Observations, len(shards))
	all := make([]health.Named, 0, len(shards))
	for i := range shards {
		s := &shards[i]
		of := holding{s.Key, s.Epoch}
		w := j.observed[of]
		if w == nil {
			w = &health.Observations{}
		}
		kept[of] = w
		w.Add(s.Observation, bounds.TrendOver)
		all = append(all, health.Named{Stream: s.Stream, Name: s.Shard, Shard: health.Evaluate(w.All(), now, bounds)})
	}
	j.observed = kept
	slices.SortFunc(all, health.Compare)
	return health.Sum(all), all
}
