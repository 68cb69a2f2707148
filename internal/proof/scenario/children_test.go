package scenario_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/proof/scenario"
)

// parents returns the parents of each shard, as the server lists them.
func (f *fleet) parents(stream string) map[string][]string {
	all := map[string][]string{}
	in := &kinesis.ListShardsInput{StreamName: &stream}
	for {
		out, err := f.srv.Client().ListShards(f.t.Context(), in)
		if err != nil {
			f.t.Fatal(err)
		}
		for _, s := range out.Shards {
			for _, p := range []*string{s.ParentShardId, s.AdjacentParentShardId} {
				if p != nil {
					all[*s.ShardId] = append(all[*s.ShardId], *p)
				}
			}
		}
		if out.NextToken == nil {
			return all
		}
		in = &kinesis.ListShardsInput{NextToken: out.NextToken}
	}
}

// follow returns, for each shard with parents, the time from the end of its last parent until its
// first record was handled. It fails the test if a shard was handled too early. stayed contains the
// times of shards whose first reader also handled records of a parent. moved contains the times of
// all other shards.
func (f *fleet) follow() (stayed, moved []time.Duration) {
	first := map[string]scenario.Handled{}
	readers := map[string]map[string]bool{} // by shard
	for _, h := range f.notes() {
		if one, seen := first[h.Shard]; !seen || h.At < one.At {
			first[h.Shard] = h
		}
		if readers[h.Shard] == nil {
			readers[h.Shard] = map[string]bool{}
		}
		readers[h.Shard][h.Worker] = true
	}
	for child, parents := range f.parents("s0") {
		begun, read := first["s0/"+child]
		if !read {
			continue // it has no records
		}
		var last int64
		stays := false
		for _, p := range parents {
			end, ended := f.ends["s0/"+p]
			if !ended {
				f.t.Errorf("%s was never handled to its end", p)
			}
			last = max(last, end)
			stays = stays || readers["s0/"+p][begun.Worker]
		}
		if begun.At < last {
			f.t.Errorf("%s is handled %v before the end of its parents", child, time.Duration(last-begun.At))
		}
		if stays {
			stayed = append(stayed, time.Duration(begun.At-last))
		} else {
			moved = append(moved, time.Duration(begun.At-last))
		}
	}
	return stayed, moved
}

// The first record of a child is handled within a second after the end of its last parent. A split
// or merge takes only a few additional calls to the store.
func TestChildrenFollowTheirParents(t *testing.T) {
	const shards, workers, changes = 8, 4, 7
	var waits, lags []time.Duration
	var elsewhere, extra []int
	for range size(4, 40) {
		run(t, 1, shards, func(f *fleet) {
			stop := f.flow(keys(8*shards), 100*time.Millisecond)
			for range workers {
				f.start()
				time.Sleep(rand.N(2 * time.Second))
			}
			f.until("everybody has a share", time.Minute, func() bool { return f.even(shards, workers) })
			// The ends come at any time relative to the heartbeats and the leader's views.
			pause := func() { time.Sleep(3*time.Second + rand.N(time.Second)) }
			pause()
			began, before := time.Now(), f.quick()
			open := f.srv.OpenShards("s0")
			var halves [][2]string
			for _, s := range open[:4] {
				low, high := f.srv.Split("s0", s)
				halves = append(halves, [2]string{low, high})
				pause()
			}
			// Adjacent shards may have different readers.
			f.srv.Merge("s0", open[4], open[5])
			pause()
			f.srv.Merge("s0", open[6], open[7])
			pause()
			f.srv.Merge("s0", halves[0][1], halves[1][0])
			pause()
			extra = append(extra, (f.quick()-before)/changes)
			stop()
			f.judge()
			for _, h := range f.handled {
				if put := f.putAt[h.Key][h.N-1]; put >= began.UnixNano() {
					lags = append(lags, time.Duration(h.At-put))
				}
			}
			stayed, moved := f.follow()
			if n := len(stayed) + len(moved); n != 11 {
				f.t.Errorf("%d children were read, want 11", n)
			}
			waits = append(waits, append(stayed, moved...)...)
			elsewhere = append(elsewhere, len(moved))
		})
	}
	if !table.Add("parents' end to the first record of a child", waits, time.Second) {
		t.Errorf("children wait for %v", slices.Max(waits))
	}
	table.Count("  children, of 11, that none of those who read its parents gets", elsewhere, -1)
	// A change of the shards may change how many leases a worker should have. A handoff waits for a
	// heartbeat of the new owner.
	if !table.Add("  put to handled, of all records meanwhile", lags, 2*time.Second) {
		t.Errorf("a record waited for %v", slices.Max(lags))
	}
	if !table.Count("  heartbeats before their time and writes of the leader, per split or merge", extra, 20) {
		t.Errorf("a split or merge costs %v calls more", extra)
	}
}

// Children that make the shares uneven are handed off as soon as they have begun.
func TestAChildIsHandedOnWhenItHasBegun(t *testing.T) {
	var took []time.Duration
	for range size(4, 20) {
		run(t, 1, 1, func(f *fleet) {
			stop := f.flow(keys(8), 100*time.Millisecond)
			f.start()
			f.start()
			time.Sleep(5*time.Second + rand.N(time.Second))
			f.srv.Split("s0", f.srv.OpenShards("s0")[0])
			took = append(took, f.until("both have one", time.Minute, func() bool { return f.even(2, 2) }))
			time.Sleep(time.Second)
			stop()
			if v := f.judge(); v.Duplicates > 0 {
				t.Errorf("handled again %d", v.Duplicates)
			}
			if stayed, _ := f.follow(); len(stayed) != 2 {
				t.Errorf("%d of 2 children were begun by who had read their parent", len(stayed))
			}
		})
	}
	if !table.Add("  both children of an only shard are with the worker of their parent: balanced after", took, 5*beat) {
		t.Errorf("balanced after %v", took)
	}
}

// A stream doubles its shards every 10 s while it is read.
func TestAStreamDoublesAgainAndAgain(t *testing.T) {
	const workers = 10
	most := size(64, 1000)
	var lags, worst []time.Duration
	for range size(1, 3) {
		run(t, 1, 1, func(f *fleet) {
			f.idle = time.Second
			stop := f.flow(keys(3*most), 3*time.Second)
			for range workers {
				f.start()
			}
			time.Sleep(10 * time.Second)
			for n := 2; ; n *= 2 {
				f.srv.Scale("s0", min(n, most))
				time.Sleep(10 * time.Second)
				if n >= most {
					break
				}
			}
			f.until("everybody has a share", time.Minute, func() bool { return f.even(most, workers) })
			stop()
			if v := f.judge(); v.Duplicates > 0 {
				t.Errorf("handled again %d", v.Duplicates)
			}
			f.follow() // checks that parents come first
			byShard := map[string]time.Duration{}
			for _, h := range f.handled {
				byShard[h.Shard] = max(byShard[h.Shard], time.Duration(h.At-f.putAt[h.Key][h.N-1]))
			}
			var high time.Duration
			for _, lag := range byShard {
				lags = append(lags, lag)
				high = max(high, lag)
			}
			worst = append(worst, high)
		})
	}
	table.Add("a stream doubles from 1 shard to many, each 10 s: longest wait of a record, by shard", lags, -1)
	table.Add("  the worst shard, by run", worst, -1)
}
