package scenario_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/scenario"
)

// usual is the longest normal time between handled records of a shard. Records come every 100 ms,
// and shards are polled every 200 ms.
const usual = 500 * time.Millisecond

// team starts workers at irregular times, with records in every shard. It waits until all workers
// have their share.
func (f *fleet) team(workers, shards int) (stop func()) {
	stop = f.flow(keys(shards), 100*time.Millisecond)
	for range workers {
		f.start()
		time.Sleep(rand.N(2 * time.Second))
	}
	f.until("everybody has a share", time.Minute, func() bool { return f.even(shards, workers) })
	time.Sleep(5*time.Second + rand.N(time.Second))
	return stop
}

// pick returns the given number of workers that do not lead. If leads is true, it also returns the
// leader.
func (f *fleet) pick(leads bool, others int) (some []*worker) {
	l := f.leader()
	if leads {
		some = append(some, l)
	}
	for _, w := range f.workers {
		if w != l && others > 0 {
			some = append(some, w)
			others--
		}
	}
	if others > 0 {
		f.t.Fatal("there are not so many workers")
	}
	return some
}

// longest returns the longest silence of any shard since a time.
func (f *fleet) longest(since time.Time) (d time.Duration) {
	for _, s := range scenario.Silences(f.notes(), since, time.Now(), usual) {
		d = max(d, s.Longest)
	}
	return d
}

// One or several workers die at the same time, with or without the leader. In all cases the silence
// of a shard has the same limit.
func TestKilledWorkers(t *testing.T) {
	const workers, shards = 4, 20
	for _, c := range []struct {
		who    string
		leads  bool
		others int
	}{
		{"one that does not lead", false, 1},
		{"the leader", true, 0},
		{"the leader and one more", true, 1},
		{"the leader and all but one", true, workers - 2},
	} {
		var silent []time.Duration
		var again []int
		for range size(3, 20) {
			run(t, 1, shards, func(f *fleet) {
				stop := f.team(workers, shards)
				victims := f.pick(c.leads, c.others)
				killed := time.Now()
				for _, w := range victims {
					w.kill()
				}
				time.Sleep(12 * time.Second)
				silent = append(silent, f.longest(killed))
				stop()
				again = append(again, f.judge().Duplicates)
			})
		}
		// 50 records a second flow through the five shards of each victim, and a heartbeat saves
		// the progress.
		if !table.Add("death of "+c.who+", of 4: longest silence of a shard", silent, failover+2*beat) {
			t.Errorf("death of %s: silent for %v", c.who, silent)
		}
		table.Count("  records handled again, of 50 a second in the shards of each", again, -1)
	}
}

func TestACleanStop(t *testing.T) {
	const workers, shards = 4, 20
	for _, c := range []struct {
		who    string
		leads  bool
		others int
	}{{"a worker that does not lead", false, 1}, {"the leader", true, 0}} {
		var silent, took []time.Duration
		var again []int
		for range size(3, 25) {
			run(t, 1, shards, func(f *fleet) {
				stop := f.team(workers, shards)
				stopped := time.Now()
				f.pick(c.leads, c.others)[0].stop()
				took = append(took, time.Since(stopped))
				time.Sleep(8 * time.Second)
				silent = append(silent, f.longest(stopped))
				stop()
				again = append(again, f.judge().Duplicates)
			})
		}
		if !table.Add("clean stop of "+c.who+", 1 of 4: longest silence of a shard", silent, 2*beat) {
			t.Errorf("stop of %s: silent for %v", c.who, silent)
		}
		table.Add("  time until Run returned", took, -1)
		if !table.Count("  records handled again", again, 0) {
			t.Errorf("stop of %s: handled again %v", c.who, again)
		}
	}
}

// Ten workers are replaced one after another, as in a deployment. A worker stops, then its
// successor starts, and then the next worker stops.
func TestARollingRestart(t *testing.T) {
	const workers = 10
	shards := size(30, 100)
	var total, longest []time.Duration
	var again, breaks, moves []int
	for range size(1, 5) {
		run(t, 1, shards, func(f *fleet) {
			stop := f.team(workers, shards)
			began, before := time.Now(), f.takes.Load()
			for _, w := range f.workers[:workers] {
				w.stop()
				f.start()
				time.Sleep(5*time.Second + rand.N(5*time.Second))
			}
			f.until("everybody has a share again", time.Minute, func() bool { return f.even(shards, workers) })
			moves = append(moves, int(f.takes.Load()-before))
			for _, s := range scenario.Silences(f.notes(), began, time.Now(), usual) {
				total, longest, breaks = append(total, s.Total), append(longest, s.Longest), append(breaks, s.Breaks)
			}
			stop()
			again = append(again, f.judge().Duplicates)
		})
	}
	if !table.Add("rolling restart of ten workers: longest silence, by shard", longest, 2*beat) {
		t.Error("a shard was silent for too long")
	}
	table.Add("  all silences of a shard added up, those of more than 0.5 s", total, -1)
	table.Count("  how many those are", breaks, -1)
	table.Count("  handoffs; each worker gives back what it holds and its successor gets as much", moves, 2*shards)
	if !table.Count("  records handled again", again, 0) {
		t.Errorf("handled again %v", again)
	}
}
