package scenario_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/internal/scenario"
)

// parents asks the server which shards a shard came from, by shard.
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

// follow returns, for each shard with parents, the time from when the last of them had been handled to the end, until the shard's first record
// was handled. It fails for those that were handled too early.
// stayed are those of shards whose first reader had read a parent, moved the others.
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
			continue // nothing was put into it
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

func TestChildrenFollowTheirParents(t *testing.T) {
	const shards = 8
	var stayed, moved []time.Duration
	for range size(2, 15) {
		run(t, 1, shards, func(f *fleet) {
			stop := f.flow(keys(8*shards), 100*time.Millisecond)
			for range 4 {
				f.start()
				time.Sleep(time.Second)
			}
			f.until("everybody has a share", time.Minute, func() bool { return f.even(shards, 4) })
			time.Sleep(3*time.Second + 137*time.Millisecond)
			open := f.srv.OpenShards("s0")
			var halves [][2]string
			for _, s := range open[:4] {
				low, high := f.srv.Split("s0", s)
				halves = append(halves, [2]string{low, high})
				time.Sleep(2*time.Second + 300*time.Millisecond)
			}
			// Neighbours that different workers may read.
			f.srv.Merge("s0", open[4], open[5])
			time.Sleep(2*time.Second + 100*time.Millisecond)
			f.srv.Merge("s0", open[6], open[7])
			time.Sleep(2*time.Second + 700*time.Millisecond)
			f.srv.Merge("s0", halves[0][1], halves[1][0])
			time.Sleep(5 * time.Second)
			stop()
			f.judge()
			same, other := f.follow()
			if len(same)+len(other) != 11 {
				f.t.Errorf("%d children were read, want 11", len(same)+len(other))
			}
			stayed, moved = append(stayed, same...), append(moved, other...)
		})
	}
	if !table.Add("parents' end to the first record of a child that a reader of a parent gets", stayed, time.Second) {
		t.Errorf("children wait for %v", slices.Max(stayed))
	}
	// The leader sees the end with its next look, half a beat later at most, and the worker sees its new lease with its next beat.
	table.Add("  of one that another worker gets", moved, time.Second)
	if slices.Max(moved) > 2*beat {
		t.Errorf("children wait for %v", slices.Max(moved))
	}
}

// A stream that grows to a thousand shards while it is read.
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
			f.follow() // parents first
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
