package repeats

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// A trial writes containers to shards that split and merge, in any order and with any repeats, and
// reads them with workers that die, lose the text, or are reset.

type item struct {
	id, hash int
	number   aggregate.Number
}

type trialShard struct {
	from, to   int // of hashes; to is not included
	parents    []*trialShard
	containers [][]item
	closed     bool

	position shard.Position
	text     string
	// handled are the records whose deliveries are covered by the checkpoint, with the index of
	// their container.
	handled []handling
}

type handling struct{ id, container, sub int }

type progress struct {
	handling
	delivered bool
}

type trial struct {
	*rand.Rand
	t       *testing.T
	shards  []*trialShard
	items   []item
	stored  map[int]bool // in a shard with the record's hash
	times   map[int]int  // handled and covered by the checkpoint
	lossy   bool         // texts get lost, or the limits are exceeded
	started time.Time
	repeats int
}

const hashes = 64

func (r *trial) owner(hash int) *trialShard {
	for _, s := range r.shards {
		if !s.closed && s.from <= hash && hash < s.to {
			return s
		}
	}
	r.t.Fatal("no shard has the hash")
	return nil
}

// write stores a container with new and old records in the shard of its first record.
func (r *trial) write(series []uint64, next map[uint64]uint64) {
	var box []item
	for range 1 + r.IntN(6) {
		if len(r.items) > 0 && r.IntN(3) == 0 {
			at := len(r.items) - 1 - r.IntN(min(len(r.items), 30))
			box = append(box, r.items[at])
			continue
		}
		id := series[r.IntN(len(series))]
		next[id] += 1 + uint64(r.IntN(3)/2) // some numbers are never used
		r.items = append(r.items, item{len(r.items), r.IntN(hashes), aggregate.Number{Series: id, N: next[id]}})
		box = append(box, r.items[len(r.items)-1])
	}
	r.store(box)
}

func (r *trial) store(box []item) {
	s := r.owner(box[0].hash)
	s.containers = append(s.containers, box)
	for _, it := range box {
		r.stored[it.id] = r.stored[it.id] || s.from <= it.hash && it.hash < s.to
	}
}

// reshard splits a shard, or merges two.
func (r *trial) reshard() {
	var open []*trialShard
	for at := 0; at < hashes; {
		s := r.owner(at)
		open = append(open, s)
		at = s.to
	}
	i := r.IntN(len(open))
	s := open[i]
	if i+1 < len(open) && r.IntN(2) == 0 {
		o := open[i+1]
		s.closed, o.closed = true, true
		r.shards = append(r.shards, &trialShard{from: s.from, to: o.to, parents: []*trialShard{s, o}, position: shard.Oldest})
		return
	}
	if s.to-s.from < 2 {
		return
	}
	mid := s.from + 1 + r.IntN(s.to-s.from-1)
	s.closed = true
	r.shards = append(r.shards,
		&trialShard{from: s.from, to: mid, parents: []*trialShard{s}, position: shard.Oldest},
		&trialShard{from: mid, to: s.to, parents: []*trialShard{s}, position: shard.Oldest})
}

func (s *trialShard) finished() bool { return s.position.IsEnd() }

func number(container int) string { return strconv.Itoa(1000 + container) }

// term reads a shard from its checkpoint for a while. The worker then dies, or has read everything.
func (r *trial) term(s *trialShard) {
	if s.finished() {
		return
	}
	var ended []string
	for _, p := range s.parents {
		if !p.finished() {
			return
		}
		if p.text != "" {
			ended = append(ended, p.text)
		}
	}
	old := r.lossy && r.IntN(4) == 0 // a worker without the option
	t := New(s.text, s.position, ended...)
	skip := s.position.Done()
	first := 0
	if s.position.Kind() == shard.Sequence {
		first, _ = strconv.Atoi(s.position.SequenceNumber())
		first -= 1000
		if skip == shard.Whole {
			first, skip = first+1, 0
		}
	} else {
		skip = 0
	}
	var ahead []progress
	// save moves the checkpoint past some of the records that were read.
	save := func(at shard.Position, n int) {
		for _, p := range ahead[:n] {
			if p.delivered {
				r.times[p.id]++
				s.handled = append(s.handled, p.handling)
			}
		}
		ahead = ahead[n:]
		s.position = at
		if !old {
			if text := t.Saved(at); text != "" {
				if len(text) > lease.MaxNumbersBytes {
					r.t.Fatalf("a text of %d bytes", len(text))
				}
				s.text = text
			}
		}
	}
	for c := first; c < len(s.containers); c++ {
		for sub, it := range s.containers[c] {
			if it.hash < s.from || it.hash >= s.to || c == first && uint32(sub) < skip {
				continue
			}
			repeat := t.Read(number(c), uint32(sub), it.number, r.started.Add(time.Duration(c)*time.Second))
			if repeat && !old {
				r.repeats++
			}
			ahead = append(ahead, progress{handling{it.id, c, sub}, !repeat || old})
			if r.IntN(10) == 0 {
				n := 1 + r.IntN(len(ahead))
				last := ahead[n-1]
				at, _ := shard.Part(number(last.container), uint32(last.sub)+1)
				save(at, n)
			}
		}
		if r.IntN(8) == 0 {
			at, _ := shard.After(number(c))
			save(at, len(ahead))
		}
		switch r.IntN(15) {
		case 0:
			return // it dies
		case 1: // reading begins at the checkpoint again
			t.Restart(s.position)
			ahead, first, skip = nil, 0, 0
			if s.position.Kind() == shard.Sequence {
				first, _ = strconv.Atoi(s.position.SequenceNumber())
				if first, skip = first-1000, s.position.Done(); skip == shard.Whole {
					first, skip = first+1, 0
				}
			}
			c = first - 1
		}
	}
	if s.closed {
		save(shard.End, len(ahead))
	}
}

// reset moves a shard back whose children were not read. Records after the new position are wanted
// again.
func (r *trial) reset(s *trialShard, keepText bool) {
	for _, o := range r.shards {
		for _, p := range o.parents {
			if p == s && o.position != shard.Oldest {
				return
			}
		}
	}
	back, sub := shard.Oldest, 0
	container := 0
	if n := len(s.containers); n > 0 && r.IntN(3) > 0 {
		container = r.IntN(n)
		sub = r.IntN(len(s.containers[container]))
		back, _ = shard.Part(number(container), uint32(sub))
	}
	if back.Compare(s.position) >= 0 {
		return
	}
	s.position = back
	if !keepText {
		s.text = ""
	}
	kept := s.handled[:0]
	for _, h := range s.handled {
		if h.container > container || h.container == container && h.sub >= sub {
			r.times[h.id]--
		} else {
			kept = append(kept, h)
		}
	}
	s.handled = kept
}

func (r *trial) run() {
	r.shards = []*trialShard{{to: hashes, position: shard.Oldest}}
	series, next := []uint64{1 + r.Uint64()>>1, 1 + r.Uint64()>>1}, map[uint64]uint64{}
	for range 40 + r.IntN(100) {
		switch k := r.IntN(20); {
		case k == 0:
			r.reshard()
		case k < 3:
			series = append(series[r.IntN(2):], 1+r.Uint64()>>1)
		case k < 12:
			r.write(series, next)
		case k < 13 && r.lossy:
			r.reset(r.shards[r.IntN(len(r.shards))], r.IntN(2) == 0)
		default:
			r.term(r.shards[r.IntN(len(r.shards))])
		}
	}
	for _, it := range r.items {
		if !r.stored[it.id] {
			r.store([]item{it})
		}
	}
	for _, s := range r.shards {
		s.closed = true
		for range 10_000 {
			r.term(s)
			if s.finished() {
				break
			}
		}
	}
	for _, it := range r.items {
		switch n := r.times[it.id]; {
		case n < 1:
			r.t.Errorf("record %d was dropped wrongly", it.id)
		case n > 1 && !r.lossy:
			r.t.Errorf("record %d was handled %d times", it.id, n)
		}
	}
}

func TestTrials(t *testing.T) {
	t.Parallel()
	repeats := 0
	seeds := uint64(150)
	if longform.On() {
		seeds = 200_000
	}
	for seed := range seeds {
		for _, lossy := range []bool{false, true} {
			r := &trial{
				Rand: rand.New(rand.NewPCG(seed, 0)), t: t, lossy: lossy, stored: map[int]bool{}, times: map[int]int{},
				started: time.Unix(1_800_000_000, 0),
			}
			r.run()
			if repeats += r.repeats; t.Failed() {
				t.Fatalf("seed %d, lossy %t", seed, lossy)
			}
		}
	}
	if repeats < 500 {
		t.Errorf("only %d repeats were dropped", repeats)
	}
}
