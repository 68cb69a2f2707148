package weir

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-go/weir/health"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/lease"
)

// judge keeps what was seen of a consumer's shards for long enough to judge them.
type judge struct {
	mu      lock.Mutex[lock.Judge]
	windows map[holding]*health.Window
}

// holding is one stretch of holding one shard.
type holding struct {
	lease.Key
	epoch uint64
}

// Judge says how the shards stand that this consumer holds, the worst first, and all of them
// together in one sentence, by the rules of package health: the command, the exporter and the page
// judge by the same ones. Lags and stages are known at once. Whether a lag falls, and for how long
// a shard has stood still, takes several looks over some minutes, and each call of Judge is one:
// let metrics or probes ask regularly. Near the end of retention is not told, since a consumer does
// not ask how long a stream keeps its records. It may be called at any time, also concurrently.
func (c *Consumer) Judge() (health.Application, []health.Named) {
	return c.judge.judge(c.Shards(), c.opts.Worker, time.Now())
}

func (j *judge) judge(shards []ShardStatus, worker string, now time.Time) (health.Application, []health.Named) {
	j.mu.Lock()
	defer j.mu.Unlock()
	bounds := health.Options{}.Defaults()
	kept := make(map[holding]*health.Window, len(shards))
	all := make([]health.Named, 0, len(shards))
	for i := range shards {
		s := &shards[i]
		if s.State == ShardAbandoned { // it may be another worker's
			continue
		}
		of := holding{lease.Key{Stream: s.Stream, Shard: s.Shard}, s.Epoch}
		w := j.windows[of]
		if w == nil {
			w = &health.Window{}
		}
		kept[of] = w
		w.Add(s.observation(worker, now), bounds.Window)
		all = append(all, health.Named{Stream: s.Stream, Name: s.Shard, Shard: health.Evaluate(w.All(), now, bounds)})
	}
	j.windows = kept
	slices.SortFunc(all, health.Compare)
	return health.Sum(all), all
}

// observation is what was seen of a shard now.
func (s *ShardStatus) observation(worker string, now time.Time) health.Observation {
	o := health.Observation{
		At: now, Handled: s.At, Saved: s.Saved, ReadLag: s.ReadLag, HandledLag: s.HandledLag, SavedLag: s.SavedLag,
		Owner: cmp.Or(worker, "this worker"), Stage: string(s.State), Since: s.Since, Attempts: s.Attempt, Held: s.Held, Expired: s.Expired,
	}
	if s.Err != nil {
		o.Err = s.Err.Error()
	}
	return o
}
