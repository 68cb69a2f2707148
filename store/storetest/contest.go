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
// same leases. It also records the order in which their calls began and returned. judge checks the
// log at the end.
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
	from, to int64 // when the call began and returned
}

// beat is an answered heartbeat.
type beat struct {
	session  string
	from, to int64
	report   []lease.Progress
	held     []lease.Lease
}

// holds reports whether the orders contain a lease at an epoch.
func (b beat) holds(o epochOf) bool {
	return slices.ContainsFunc(b.held, func(l lease.Lease) bool {
		return l.Key == o.Key && l.Epoch == o.epoch
	})
}

const (
	contestWorkers, contestLeaders, contestLeases = 6, 2, 8
	// Positions from forged on are reported by sessions that do not own the lease.
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
	// All workers and leaders continue until both groups have done enough, or until one fails.
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

// work sends the heartbeats of a worker. They contain progress on leases that the worker holds, and
// on leases that it does not hold.
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
		o, err := s.Heartbeat(c.ctx, c.app, lease.Report{Session: session, Progress: slices.Clone(report)})
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

// direct reads views like a leader, and applies random actions to the leases in them.
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

// epochOf identifies a lease at one epoch.
type epochOf struct {
	lease.Key
	epoch uint64
}

// evidence contains the facts about each epoch that follow from the actions and heartbeats of a
// contest.
type evidence struct {
	*contestLog
	owner    map[epochOf]string // according to actions and orders
	moved    map[epochOf]act    // the action that ended the epoch
	given    map[epochOf]act    // the action that began the epoch
	wishes   map[epochOf][]act  // accepted handoff requests
	released map[epochOf]int64  // the start of the first heartbeat that released the lease
	reported map[epochOf]uint64 // the furthest position that the owner may have stored
	sure     map[epochOf]uint64 // the furthest position that the owner certainly stored
}

// judge compares the observations with the rules of the contract.
func (c *contestLog) judge() {
	e := evidence{
		contestLog: c, owner: map[epochOf]string{}, moved: map[epochOf]act{},
		given: map[epochOf]act{}, wishes: map[epochOf][]act{}, released: map[epochOf]int64{},
		reported: map[epochOf]uint64{}, sure: map[epochOf]uint64{},
	}
	for _, a := range c.acts {
		e.addAct(a)
	}
	for _, b := range c.beats {
		e.addBeat(b)
	}
	for _, b := range c.beats {
		e.judgeOrders(b)
	}
	e.judgePositions()
}

// own records that session owned a lease at an epoch.
func (e *evidence) own(o epochOf, session string) {
	if was, ok := e.owner[o]; ok && was != session {
		e.Errorf("%s epoch %d has two owners, %s and %s", o.Key, o.epoch, was, session)
	}
	e.owner[o] = session
}

func (e *evidence) addAct(a act) {
	o := epochOf{a.Key, a.Epoch}
	if a.Kind == lease.Handoff {
		e.wishes[o] = append(e.wishes[o], a)
		return
	}
	if was, ok := e.moved[o]; ok {
		e.Errorf("both %s and %s took effect", was.Action, a.Action)
	}
	e.moved[o] = a
	if a.Kind == lease.Assign {
		next := epochOf{a.Key, a.Epoch + 1}
		e.given[next] = a
		e.own(next, a.Session)
	}
}

func (e *evidence) addBeat(b beat) {
	for _, l := range b.held {
		e.own(epochOf{l.Key, l.Epoch}, b.session)
	}
	for _, p := range b.report {
		o := epochOf{p.Key, p.Epoch}
		n := e.number(p.Position)
		if n >= forged {
			continue
		}
		e.reported[o] = max(e.reported[o], n)
		if at, ok := e.released[o]; p.Release && (!ok || b.from < at) {
			e.released[o] = b.from
		}
		if !b.holds(o) {
			continue
		}
		e.sure[o] = max(e.sure[o], n)
		if p.Release {
			e.Errorf("%s was released at epoch %d by %s and is still in its orders",
				p.Key, p.Epoch, b.session)
		}
	}
}

// number returns the number of a position that place returned.
func (e *evidence) number(p shard.Position) uint64 {
	n, err := strconv.ParseUint(p.SequenceNumber(), 10, 64)
	if err != nil && p != shard.Oldest {
		e.Errorf("a position is %s, which no session reported", p)
	}
	return n
}

// judgeOrders checks that orders contain every lease that the session got, and no lease that was
// taken from it.
func (e *evidence) judgeOrders(b beat) {
	for _, l := range b.held {
		o := epochOf{l.Key, l.Epoch}
		if m, ok := e.moved[o]; ok && m.to < b.from {
			e.Errorf("orders of %s still show %s, although %s had returned", b.session, l, m.Action)
		}
		e.judgeWish(b, l, e.wishes[o])
	}
	for o, a := range e.given {
		if a.Session != b.session || a.to >= b.from || b.holds(o) {
			continue
		}
		m, taken := e.moved[o]
		at, gaveBack := e.released[o]
		if !(taken && m.from < b.to) && !(gaveBack && at <= b.from) {
			e.Errorf("orders of %s miss %s, although %s had returned", b.session, o.Key, a.Action)
		}
	}
}

// judgeWish checks the heir in orders. The heir must come from the latest request, or from a
// request whose call overlapped a later request or the heartbeat.
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

// judgePositions checks that checkpoints come from the owners, that no checkpoint was lost, and
// that no position moved back.
func (e *evidence) judgePositions() {
	final := map[lease.Key]lease.Lease{}
	for _, l := range e.view().Leases {
		final[l.Key] = l
		e.judgePosition(l)
		for s, n := range e.sure {
			if s.Key == l.Key && e.number(l.Position) < n {
				e.Errorf("at the end %s is before %d, which was stored at epoch %d", l, n, s.epoch)
			}
		}
		if last, ok := e.owner[epochOf{l.Key, l.Epoch}]; ok && l.Owner != last {
			e.Errorf("at the end %s, but epoch %d was given to %s", l, l.Epoch, last)
		}
	}
	for _, b := range e.beats {
		for _, l := range b.held {
			e.judgePosition(l)
			end := final[l.Key]
			if l.Epoch > end.Epoch || e.number(l.Position) > e.number(end.Position) {
				e.Errorf("orders of %s show %s, the end is %s", b.session, l, end)
			}
		}
	}
	for _, leases := range e.views {
		for _, l := range leases {
			e.judgePosition(l)
		}
	}
	if len(e.sure) == 0 || len(e.acts) == 0 {
		e.Errorf("nothing was contested: %d checkpoints, %d actions", len(e.sure), len(e.acts))
	}
}

// judgePosition checks one observed position of a lease.
func (e *evidence) judgePosition(l lease.Lease) {
	n := e.number(l.Position)
	if n == 0 {
		return
	}
	o := epochOf{l.Key, n / 1_000_000_000}
	switch {
	case n >= forged:
		e.Errorf("%s has a position that was reported by another session", l)
	case o.epoch > l.Epoch:
		e.Errorf("%s has a position of the later epoch %d", l, o.epoch)
	case n > e.reported[o]:
		e.Errorf("%s is further than %d, the furthest that was reported at epoch %d",
			l, e.reported[o], o.epoch)
	case e.owner[o] != strconv.FormatUint(n%100, 10):
		e.Errorf("%s has a position of worker %d, but epoch %d was that of %q",
			l, n%100, o.epoch, e.owner[o])
	}
	for s, n := range e.sure {
		if s.Key == l.Key && s.epoch < l.Epoch && e.number(l.Position) < n {
			e.Errorf("%s is before %d, which was stored at epoch %d", l, n, s.epoch)
		}
	}
}
