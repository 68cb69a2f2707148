package scenario_test

import (
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/scenario"
)

func TestAWorkerJoins(t *testing.T) {
	const workers = 10
	shards := size(110, 1000)
	var took, silent []time.Duration
	var moves, again []int
	least := shards / (workers + 1) // each worker ends with this number of shards, or one more
	for range size(1, 5) {
		run(t, 1, shards, func(f *fleet) {
			f.idle = time.Second
			stop := f.flow(keys(shards), time.Second)
			for range workers {
				f.start()
				time.Sleep(300 * time.Millisecond)
			}
			f.until("everybody has a share", time.Minute, func() bool { return f.even(shards, workers) })
			time.Sleep(10 * time.Second)
			joined, before := time.Now(), f.takes.Load()
			f.start()
			took = append(took, f.until("the newcomer has its share", 2*time.Minute, func() bool { return f.even(shards, workers+1) }))
			time.Sleep(5 * time.Second)
			moves = append(moves, int(f.takes.Load()-before))
			for _, s := range scenario.Silences(f.notes(), joined, time.Now(), 2*time.Second) {
				silent = append(silent, s.Longest)
			}
			stop()
			again = append(again, f.judge().Duplicates)
		})
	}
	if !table.Add("a worker joins ten with many leases: balanced after", took, 5*beat) {
		t.Errorf("balanced after %v", took)
	}
	if !table.Count("  leases that changed hands; the bound is the least possible", moves, least) {
		t.Errorf("%v leases changed hands, %d would do", moves, least)
	}
	table.Add("  longest silence, by shard; records come and are read each second", silent, -1)
	if !table.Count("  records handled again", again, 0) {
		t.Errorf("handled again %v", again)
	}
}

func TestManyWorkersStartAtOnce(t *testing.T) {
	const workers = 50
	shards := size(100, 500)
	var all, balanced []time.Duration
	var takes, again []int
	for range size(1, 5) {
		run(t, 1, shards, func(f *fleet) {
			f.idle = time.Second
			stop := f.flow(keys(shards), time.Second)
			time.Sleep(3 * time.Second)
			began := time.Now()
			for range workers {
				f.start()
			}
			f.until("every shard is read", time.Minute, func() bool { return f.shardsRead() == shards })
			all = append(all, time.Since(began))
			f.until("everybody has a share", time.Minute, func() bool { return f.even(shards, workers) })
			balanced = append(balanced, time.Since(began))
			time.Sleep(3 * time.Second)
			stop()
			takes = append(takes, int(f.takes.Load()))
			again = append(again, f.judge().Duplicates)
		})
	}
	table.Add("50 workers start at once: all shards read after", all, 10*beat)
	table.Add("  balanced after", balanced, -1)
	table.Count("  leases that were taken; least possible is one for each shard", takes, -1)
	if !table.Count("  records handled again", again, 0) {
		t.Errorf("handled again %v", again)
	}
}

// shardsRead returns the number of shards with at least one handled record.
func (f *fleet) shardsRead() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	read := map[string]bool{}
	for _, h := range f.handled {
		read[h.Shard] = true
	}
	return len(read)
}

func TestANewApplicationWithManyStreams(t *testing.T) {
	const shards = 10
	streams := size(20, 100)
	for _, workers := range []int{1, 5} {
		var took []time.Duration
		for range size(1, 5) {
			run(t, streams, shards, func(f *fleet) {
				f.idle = time.Second
				for _, s := range f.streams {
					for _, key := range keys(shards) {
						f.write(s, key)
					}
				}
				began := time.Now()
				for range workers {
					f.start()
				}
				f.until("every shard is read", time.Minute, func() bool { return f.shardsRead() == streams*shards })
				took = append(took, time.Since(began))
				f.judge()
			})
		}
		what := "a new application, streams of 10 shards, 1 worker: all shards read after"
		if workers > 1 {
			what = "  the same with 5 workers that start at once"
		}
		if !table.Add(what, took, 10*time.Second) {
			t.Errorf("%d workers: all shards are read after %v", workers, took)
		}
	}
}
