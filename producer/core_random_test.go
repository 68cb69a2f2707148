package producer

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/jitter"
	"github.com/weir-go/weir/internal/proof/longform"
	"github.com/weir-go/weir/shard"
)

// service simulates a stream for the core. It stores and refuses records, and splits and merges
// shards.
type service struct {
	t      *testing.T
	rnd    *rand.Rand
	shards []*serviceShard
	number int
	auto   bool
	turn   int
}

type serviceShard struct {
	shard.Shard
	stored []serviceRecord
}

// serviceRecord is one record of the stream: the numbers and hash keys of the records that it
// contains.
type serviceRecord struct {
	sequence string
	numbers  []uint64
	keys     []shard.HashKey
}

func newService(t *testing.T, rnd *rand.Rand, shards int) *service {
	s := &service{t: t, rnd: rnd}
	s.add(shard.HashRange{End: shard.MaxHashKey})
	for len(s.open()) < shards {
		s.reshard(true)
	}
	return s
}

func (s *service) add(r shard.HashRange, parents ...string) *serviceShard {
	sh := &serviceShard{Shard: shard.Shard{ID: fmt.Sprintf("shardId-%012d", len(s.shards)), Range: r, Parents: parents}}
	s.shards = append(s.shards, sh)
	return sh
}

func (s *service) open() (open []*serviceShard) {
	for _, sh := range s.shards {
		if !sh.Closed {
			open = append(open, sh)
		}
	}
	return open
}

// reshard splits or merges at random.
func (s *service) reshard(split bool) {
	open := s.open()
	slices.SortFunc(open, func(a, b *serviceShard) int { return a.Range.Start.Compare(b.Range.Start) })
	i := s.rnd.IntN(len(open))
	switch {
	case split:
		p := open[i]
		p.Closed = true
		middle := p.Range.Middle()
		lower := middle
		if lower.Lo--; lower.Lo == 1<<64-1 {
			lower.Hi--
		}
		s.add(shard.HashRange{Start: p.Range.Start, End: lower}, p.ID)
		s.add(shard.HashRange{Start: middle, End: p.Range.End}, p.ID)
	case i+1 < len(open):
		a, b := open[i], open[i+1]
		a.Closed, b.Closed = true, true
		s.add(shard.HashRange{Start: a.Range.Start, End: b.Range.End}, a.ID, b.ID)
	}
}

// listing returns the result of ListShards.
func (s *service) listing(all bool) (listed []shard.Shard) {
	for _, sh := range s.shards {
		if all || !sh.Closed {
			listed = append(listed, sh.Shard)
		}
	}
	return listed
}

// carryOut stores the records of a request, except those that it refuses, and returns the answer.
func (s *service) carryOut(r *request, faults bool) answer {
	a := answer{took: 20 * time.Millisecond}
	if faults && s.rnd.IntN(20) == 0 {
		a.err = errors.New("the connection is broken before anything is stored")
		return a
	}
	for _, snd := range r.sendings {
		switch n := s.rnd.IntN(20); {
		case faults && n == 0:
			a.entries = append(a.entries, entry{Code: "ProvisionedThroughputExceededException"})
		case faults && n == 1:
			a.entries = append(a.entries, entry{Code: "InternalFailure"})
		case faults && n == 2:
			s.store(snd)
			a.entries = append(a.entries, entry{Code: "InternalFailure", Message: "it is stored all the same"})
		case faults && n == 3:
			e := s.store(snd)
			e.SequenceNumber = ""
			a.entries = append(a.entries, e)
		default:
			a.entries = append(a.entries, s.store(snd))
		}
	}
	if faults && s.rnd.IntN(20) == 0 {
		a.err = errors.New("the answer is lost")
	}
	return a
}

func (s *service) store(snd sending) entry {
	at := snd.records[0].hash
	open := s.open()
	i := slices.IndexFunc(open, func(sh *serviceShard) bool { return sh.Range.Contains(at) })
	if s.auto {
		s.turn++
		i = s.turn % len(open)
	}
	s.number++
	r := serviceRecord{sequence: fmt.Sprintf("%020d", s.number)}
	for _, p := range snd.records {
		r.numbers = append(r.numbers, p.number)
		r.keys = append(r.keys, p.hash)
	}
	open[i].stored = append(open[i].stored, r)
	return entry{Shard: open[i].ID, SequenceNumber: r.sequence}
}

// check compares the results of the records with the records that consumers receive. There are
// three kinds of consumers. They drop containers with a record that does not belong in their shard,
// as the KCL does, only such records, or nothing.
func (s *service) check(seed uint64, records []*Pending, hashes []shard.HashKey, ordered bool) {
	type place struct {
		shard, sequence string
		sub             int
	}
	stored := map[place]uint64{}
	seen := map[uint64]bool{}
	last := map[shard.HashKey]uint64{}
	for _, drops := range []string{"containers", "records", "nothing"} {
		clear(seen)
		clear(last)
		for _, sh := range s.shards { // parents before children
			for _, r := range sh.stored {
				foreign := func(key shard.HashKey) bool { return !sh.Range.Contains(key) }
				if drops == "containers" && len(r.numbers) > 1 && slices.ContainsFunc(r.keys, foreign) {
					continue
				}
				for sub, n := range r.numbers {
					stored[place{sh.ID, r.sequence, sub}] = n
					key := r.keys[sub]
					if drops == "records" && len(r.numbers) > 1 && foreign(key) || seen[n] {
						continue
					}
					if drops == "nothing" && !s.auto && foreign(key) {
						continue // the copy in the right shard is judged; this one comes at any time
					}
					seen[n] = true
					if ordered && n < last[key] {
						s.t.Fatalf("seed %d: record %d of a key comes after %d", seed, n, last[key])
					}
					last[key] = n
				}
			}
		}
		for i, p := range records {
			if !seen[p.number] {
				s.t.Fatalf("seed %d: record %d, which has %+v and %v, is lost for consumers that drop %s", seed, i, p.result(), p.err, drops)
			}
		}
	}
	for i, p := range records {
		r := p.result()
		if p.err != nil || !p.finished || stored[place{r.Shard, r.SequenceNumber, r.SubSequenceNumber}] != p.number {
			s.t.Fatalf("seed %d: record %d has the result %+v, %v, and is not there", seed, i, r, p.err)
		}
	}
}

// Under random refusals, lost answers, splits, merges and reordered answers and listings, no record
// is lost, each record is at the place that its result reports, and keys keep their order.
func TestCoreKeepsOrderAndLosesNothing(t *testing.T) {
	seeds := uint64(40)
	if longform.On() {
		seeds = 3000
	}
	for seed := range seeds {
		runCore(t, seed)
	}
}

func runCore(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 3))
	defer jitter.Replace(func(string, uint64) uint64 { return rnd.Uint64() })()
	s := newService(t, rnd, 1+rnd.IntN(4))
	o := options{plain: rnd.IntN(3) == 0, unordered: rnd.IntN(4) == 0, linger: 50 * time.Millisecond}
	s.auto = rnd.IntN(10) == 0
	deniedFacts, deniedShards := rnd.IntN(6) == 0, rnd.IntN(8) == 0
	now := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	c := newCore(o, now)
	keys := 1 + rnd.IntN(30)
	large := rnd.IntN(10) == 0
	size := 1 + rnd.IntN(2000)
	var records []*Pending
	var hashes []shard.HashKey
	type call struct {
		r      *request
		answer *answer
	}
	var calls []*call
	listing, listed, listedAll := false, []shard.Shard(nil), false
	resharding := rnd.IntN(40)
	for step := 0; ; step++ {
		faults := step < 1500
		if step > 200_000 {
			t.Fatalf("seed %d: %d records have no outcome: %+v", seed, c.open, c.counts)
		}
		if !faults && c.open == 0 {
			break
		}
		now = now.Add(time.Duration(rnd.IntN(8)) * time.Millisecond)
		if faults && rnd.IntN(3) == 0 {
			for range rnd.IntN(8) {
				p := &Pending{key: fmt.Sprint("key", rnd.IntN(keys)), data: make([]byte, rnd.IntN(size))}
				if large && rnd.IntN(20) == 0 {
					p.data = make([]byte, 60_000)
				}
				p.bytes, p.hash = int32(len(p.data)+len(p.key)), shard.HashOf(p.key)
				hashes = append(hashes, p.hash)
				records = append(records, p)
				c.put(p, now.Sub(c.began))
			}
		}
		if faults && resharding > 0 && rnd.IntN(resharding*10) == 0 {
			s.reshard(rnd.IntN(2) == 0)
		}
		for range 3 {
			if r, _ := c.next(now); r != nil {
				calls = append(calls, &call{r: r})
			}
		}
		if len(calls) > 0 && rnd.IntN(2) == 0 { // the service has one of them
			if at := calls[rnd.IntN(len(calls))]; at.answer == nil {
				a := s.carryOut(at.r, faults)
				at.answer = &a
			}
		}
		if len(calls) > 0 && rnd.IntN(2) == 0 { // and its answer arrives
			if i := rnd.IntN(len(calls)); calls[i].answer != nil {
				c.answered(calls[i].r, *calls[i].answer, now)
				calls = slices.Delete(calls, i, i+1)
			}
		}
		switch want := c.lookUp; {
		case want.facts && rnd.IntN(10) == 0:
			if deniedFacts {
				c.learnFacts(facts{})
			} else {
				c.learnFacts(facts{known: true, auto: s.auto, maxRecord: usualRecord, shards: len(s.open())})
			}
		case want.shards && !listing && rnd.IntN(10) == 0:
			listing, listedAll, listed = true, want.all, s.listing(want.all)
			if deniedShards {
				listed = nil
			}
		case listing && rnd.IntN(10) == 0:
			listing = false
			_ = c.learnShards(listed, listedAll)
		}
	}
	if c.inFlight != 0 || len(c.retired) != 0 || len(c.stranded) != 0 || c.filled.len() != 0 {
		for c.filled.len() > 0 {
			if q := c.filled.pop(); q.n > 0 {
				t.Fatalf("seed %d: a queue is left with %d records", seed, q.n)
			}
		}
		if c.inFlight != 0 || len(c.retired) != 0 || len(c.stranded) != 0 {
			t.Fatalf("seed %d: %d records in flight, %d retired queues, %d stranded containers", seed, c.inFlight, len(c.retired), len(c.stranded))
		}
	}
	if n := c.counts; n.Stored != uint64(len(records)) || n.Failed != 0 {
		t.Fatalf("seed %d: %+v", seed, n)
	}
	s.check(seed, records, hashes, !o.unordered && !s.auto)
}
