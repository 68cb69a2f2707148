package storetest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// contestLog records the actions and observations of many workers and leaders that race for the
// same leases, with the order in which their calls began and returned. judge checks it at the end.
type contestLog struct {
	*env
	clock atomic.Int64 // orders the beginnings and ends of calls

	mu    sync.Mutex
	acts  []act
	beats []beat
	views [][]lease.Lease // of one leader each, in order
}

// act is an action that took effect.
type act struct {
	lease.Action
	from, to int64 // the call had begun, and had returned
}

// beat is an answered heartbeat.
type beat struct {
	session  string
	from, to int64
	report   []lease.Progress
	held     []lease.Lease
}

const (
	contestWorkers, contestLeaders, contestLeases = 6, 2, 8
	// positions from here on are reported by sessions that do not own the lease
	forged = 1 << 62
)

func contest(e *env) {
	c := &contestLog{env: e}
	seed := rand.Uint64()
	e.Logf("seed %d", seed)
	for i := range contestLeases {
		e.must(create(strconv.Itoa(i)))
	}
	for i := range contestWorkers {
		e.start(strconv.Itoa(i))
	}
	// All continue until both workers and leaders have done enough. A failure also ends it.
	var worked, directed atomic.Int64
	var failed atomic.Bool
	goOn := func() bool {
		runtime.Gosched()
		return !failed.Load() && (worked.Load() < int64(e.steps/4) || directed.Load() < int64(e.steps/10))
	}
	e.together(contestWorkers+contestLeaders, func(i int, s lease.Store) error {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		var err error
		if i < contestWorkers {
			err = c.work(i, s, rng, func() bool { worked.Add(1); return goOn() })
		} else {
			err = c.direct(s, rng, func() bool { directed.Add(1); return goOn() })
		}
		if err != nil {
			failed.Store(true)
		}
		return err
	})
	c.judge()
}

// place returns a position that identifies its reporter.
func place(epoch, n uint64, worker int) uint64 {
	return epoch*1_000_000_000 + n%10_000_000*100 + uint64(worker)
}

// work sends heartbeats with progress on held leases, and also on leases that it does not hold.
func (c *contestLog) work(worker int, s lease.Store, rng *rand.Rand, goOn func() bool) error {
	session := strconv.Itoa(worker)
	held := map[lease.Key]lease.Lease{}
	lost := map[lease.Key]lease.Lease{}
	for n := uint64(0); goOn(); n++ {
		var report []lease.Progress
		for i := range contestLeases {
			key := k(strconv.Itoa(i))
			if l, ok := held[key]; ok {
				if rng.IntN(4) > 0 {
					report = append(report, lease.Progress{Key: key, Epoch: l.Epoch, Position: seq(place(l.Epoch, n, worker)),
						Release: rng.IntN(6) == 0 || l.Heir != "" && rng.IntN(2) == 0})
				}
			} else if l, ok := lost[key]; ok {
				report = append(report, lease.Progress{Key: key, Epoch: l.Epoch, Position: seq(forged + n), Release: rng.IntN(2) == 0})
			} else if rng.IntN(4) == 0 {
				report = append(report, lease.Progress{Key: key, Epoch: uint64(rng.IntN(2)), Position: seq(forged + n)})
			}
		}
		from := c.clock.Add(1)
		o, err := s.Beat(c.ctx, c.app, lease.Report{Session: session, Progress: slices.Clone(report)})
		to := c.clock.Add(1)
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.beats = append(c.beats, beat{session, from, to, report, o.Held})
		c.mu.Unlock()
		now := map[lease.Key]lease.Lease{}
		for _, l := range o.Held {
			now[l.Key] = l
			delete(lost, l.Key)
		}
		for key, l := range held {
			if _, ok := now[key]; !ok {
				lost[key] = l
			}
		}
		held = now
	}
	return nil
}

// direct applies actions to the leases that it sees.
func (c *contestLog) direct(s lease.Store, rng *rand.Rand, goOn func() bool) error {
	var known lease.View
	for goOn() {
		v, err := s.View(c.ctx, c.app, known.Revision)
		if err != nil {
			return err
		}
		if v.Same {
			v.Leases = known.Leases
		} else {
			c.mu.Lock()
			c.views = append(c.views, v.Leases)
			c.mu.Unlock()
		}
		known = v
		if len(v.Leases) != contestLeases {
			return fmt.Errorf("a view shows %d leases", len(v.Leases))
		}
		var actions []lease.Action
		for _, i := range rng.Perm(contestLeases)[:3] {
			l := v.Leases[i]
			a := lease.Action{Kind: lease.Assign, Key: l.Key, Epoch: l.Epoch, Session: strconv.Itoa(rng.IntN(contestWorkers))}
			if l.Owner != "" {
				a.Kind = []lease.Kind{lease.Assign, lease.Handoff, lease.Handoff, lease.Handoff, lease.Revoke}[rng.IntN(5)]
			}
			actions = append(actions, a)
		}
		from := c.clock.Add(1)
		done, err := s.Apply(c.ctx, c.app, actions)
		to := c.clock.Add(1)
		if err != nil {
			return err
		}
		c.mu.Lock()
		for i, a := range actions {
			if done[i] {
				c.acts = append(c.acts, act{a, from, to})
			}
		}
		c.mu.Unlock()
	}
	return nil
}

// epochOf identifies the time of one lease at one epoch.
type epochOf struct {
	lease.Key
	epoch uint64
}

// judge compares the observations with the rules.
func (c *contestLog) judge() {
	owner := map[epochOf]string{}    // the owner, by actions and by orders
	moved := map[epochOf]act{}       // the action that ended the epoch
	given := map[epochOf]act{}       // the action that began it
	wishes := map[epochOf][]act{}    // accepted wishes
	released := map[epochOf]int64{}  // when the first heartbeat that released it began
	reported := map[epochOf]uint64{} // the furthest position that the owner may have stored
	sure := map[epochOf]uint64{}     // the furthest that it certainly stored

	own := func(o epochOf, session string) {
		if was, ok := owner[o]; ok && was != session {
			c.Errorf("%s epoch %d has two owners, %s and %s", o.Key, o.epoch, was, session)
		}
		owner[o] = session
	}
	for _, a := range c.acts {
		o := epochOf{a.Key, a.Epoch}
		if a.Kind == lease.Handoff {
			wishes[o] = append(wishes[o], a)
			continue
		}
		if was, ok := moved[o]; ok {
			c.Errorf("both %s and %s took effect", was.Action, a.Action)
		}
		moved[o] = a
		if a.Kind == lease.Assign {
			next := epochOf{a.Key, a.Epoch + 1}
			given[next] = a
			own(next, a.Session)
		}
	}
	number := func(p shard.Position) uint64 {
		n, err := strconv.ParseUint(p.SequenceNumber(), 10, 64)
		if err != nil && p != shard.Oldest {
			c.Errorf("a position is %s, which no session reported", p)
		}
		return n
	}
	for _, b := range c.beats {
		for _, l := range b.held {
			own(epochOf{l.Key, l.Epoch}, b.session)
		}
		for _, p := range b.report {
			o := epochOf{p.Key, p.Epoch}
			n := number(p.Position)
			if n >= forged {
				continue
			}
			reported[o] = max(reported[o], n)
			if at, ok := released[o]; p.Release && (!ok || b.from < at) {
				released[o] = b.from
			}
			if slices.ContainsFunc(b.held, func(l lease.Lease) bool { return l.Key == p.Key && l.Epoch == p.Epoch }) {
				sure[o] = max(sure[o], n)
				if p.Release {
					c.Errorf("%s was released at epoch %d by %s and is still in its orders", p.Key, p.Epoch, b.session)
				}
			}
		}
	}

	for _, b := range c.beats {
		for _, l := range b.held {
			o := epochOf{l.Key, l.Epoch}
			if m, ok := moved[o]; ok && m.to < b.from {
				c.Errorf("orders of %s still show %s, although %s had returned", b.session, l, m.Action)
			}
			c.judgeWish(b, l, wishes[o])
		}
		for o, a := range given {
			if a.Session != b.session || a.to >= b.from || slices.ContainsFunc(b.held, func(l lease.Lease) bool {
				return l.Key == o.Key && l.Epoch == o.epoch
			}) {
				continue
			}
			m, taken := moved[o]
			at, gaveBack := released[o]
			if !(taken && m.from < b.to) && !(gaveBack && at <= b.from) {
				c.Errorf("orders of %s miss %s, although %s had returned", b.session, o.Key, a.Action)
			}
		}
	}
	c.judgePositions(owner, reported, sure, number)
}

// judgeWish checks the heir in orders. It must be the latest request, or one whose call overlapped
// a later request or the heartbeat.
func (c *contestLog) judgeWish(b beat, l lease.Lease, wishes []act) {
	var possible []string
	before := false
	for _, w := range wishes {
		before = before || w.to < b.from
		replaced := slices.ContainsFunc(wishes, func(later act) bool { return later.from > w.to && later.to < b.from })
		if w.from < b.to && !replaced {
			possible = append(possible, w.Session)
		}
	}
	if !before {
		possible = append(possible, "")
	}
	if !slices.Contains(possible, l.Heir) {
		c.Errorf("orders of %s show %s, but the wish can only be one of %q", b.session, l, possible)
	}
}

// judgePositions checks that checkpoints come from the owners, that none was lost, and that none
// went back.
func (c *contestLog) judgePositions(owner map[epochOf]string, reported, sure map[epochOf]uint64, number func(shard.Position) uint64) {
	final := map[lease.Key]lease.Lease{}
	check := func(l lease.Lease) {
		n := number(l.Position)
		if n == 0 {
			return
		}
		o := epochOf{l.Key, n / 1_000_000_000}
		switch {
		case n >= forged:
			c.Errorf("%s has a position that was reported by another session", l)
		case o.epoch > l.Epoch:
			c.Errorf("%s has a position of the later epoch %d", l, o.epoch)
		case n > reported[o]:
			c.Errorf("%s is further than %d, the furthest that was reported at epoch %d", l, reported[o], o.epoch)
		case owner[o] != strconv.FormatUint(n%100, 10):
			c.Errorf("%s has a position of worker %d, but epoch %d was that of %q", l, n%100, o.epoch, owner[o])
		}
		for s, n := range sure {
			if s.Key == l.Key && s.epoch < l.Epoch && number(l.Position) < n {
				c.Errorf("%s is before %d, which was stored at epoch %d", l, n, s.epoch)
			}
		}
	}
	for _, l := range c.view().Leases {
		final[l.Key] = l
		check(l)
		for s, n := range sure {
			if s.Key == l.Key && number(l.Position) < n {
				c.Errorf("at the end %s is before %d, which was stored at epoch %d", l, n, s.epoch)
			}
		}
		if last, ok := owner[epochOf{l.Key, l.Epoch}]; ok && l.Owner != last {
			c.Errorf("at the end %s, but epoch %d was given to %s", l, l.Epoch, last)
		}
	}
	for _, b := range c.beats {
		for _, l := range b.held {
			check(l)
			if end := final[l.Key]; l.Epoch > end.Epoch || number(l.Position) > number(end.Position) {
				c.Errorf("orders of %s show %s, the end is %s", b.session, l, end)
			}
		}
	}
	for _, leases := range c.views {
		for _, l := range leases {
			check(l)
		}
	}
	if len(sure) == 0 || len(c.acts) == 0 {
		c.Errorf("nothing was contested: %d checkpoints, %d actions", len(sure), len(c.acts))
	}
}
