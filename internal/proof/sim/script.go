package sim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/lease"
)

// scripted contains the scheduled faults, in a fixed order.
var scripted = []Fault{Crash, AllButOne, ShortPause, LongPause, Isolated, LeaderCutOff, Outage, NoService, Leaves, Split, Merge, Doubles, Trim, Recreate, Renames, SetBack, Resets, ProducerCrashes, ProducerCloses, ProducerCutOff}

// ofStreams contains the faults of streams, which applications share.
var ofStreams = []Fault{Split, Merge, Doubles, Trim, Recreate, Renames}

// script puts the scheduled faults on the calendar.
func (w *world) script() {
	w.after(w.settings.beat, w.tick)
	whose := ""
	if !w.isFirst() {
		whose = w.app + ": "
	}
	for _, f := range scripted {
		rate := w.profile.Rates[f]
		if rate <= 0 || !w.isFirst() && slices.Contains(ofStreams, f) {
			continue
		}
		d := roll(w.seed, "script "+string(f))
		at := time.Duration(0)
		w.due[f] += rate * w.settings.lasts.Hours()
		for n := 1; ; n++ {
			u := (float64(d.next()>>11) + 1) / (1<<53 + 1)
			at += time.Duration(-math.Log(u) * float64(time.Hour) / rate)
			if at >= w.settings.lasts {
				break
			}
			id := fmt.Sprintf("%s%s#%d", whose, f, n)
			w.after(at+d.span(0, time.Millisecond), func() { w.happens(f, id) })
		}
	}
}

// happens carries out a scheduled fault, if there is anything it can affect.
func (w *world) happens(f Fault, id string) {
	if isOfProducer(f) {
		w.befallsProducer(f, id)
		return
	}
	d := roll(w.seed, id)
	var living []*life
	for _, wk := range w.workers {
		if wk.life != nil {
			living = append(living, wk.life)
		}
	}
	var l *life
	if len(living) > 0 {
		l = living[d.below(len(living))]
	}
	switch f {
	case Crash, ShortPause, LongPause, Isolated, NoService, Leaves:
		if l == nil || (f == Leaves && l.stopping) || !w.strikes(f, id) {
			return
		}
		w.note(l, "FAULT", "", 0, id)
		w.befalls(f, l, d)
	case AllButOne:
		if len(living) < 2 || !w.strikes(f, id) {
			return
		}
		spared := l
		if spared == w.books.of[w.leader] {
			spared = living[(slices.Index(living, l)+1)%len(living)]
		}
		for _, l := range living {
			if l != spared {
				w.note(l, "FAULT", "", 0, id)
				w.crash(l, string(f))
			}
		}
	case LeaderCutOff:
		if l = w.books.of[w.leader]; l == nil || l.dead.Load() || !w.strikes(f, id) {
			return
		}
		w.note(l, "FAULT", "", 0, id)
		span := d.span(time.Second, w.settings.scaled(30*time.Second))
		l.leads = w.now() + int64(span)
		w.bars(l)
		if d.chance(.5) {
			l.cutOff = l.leads
		}
		w.faults(l.who, span)
	case Outage:
		if !w.strikes(f, id) {
			return
		}
		w.note(nil, "FAULT", "", 0, id)
		span := d.often(time.Second, 60*time.Second)
		w.outageEnds(w.now())
		w.outage = w.now() + int64(span)
		w.outages = append(w.outages, stretch{w.now(), w.outage})
		w.faults(judge.Worker{}, span)
	case SetBack:
		w.setsBack(id, &d)
	case Resets:
		w.resets(id, &d)
	default:
		w.reshapes(f, id, &d)
	}
}

// faults tells the judge about a fault that lasts for a while.
func (w *world) faults(who judge.Worker, span time.Duration) { w.judge.Fault(who, w.wall().Add(span)) }

func (w *world) befalls(f Fault, l *life, d dice) {
	failover := w.settings.failover
	switch f {
	case Crash:
		w.crash(l, string(f))
	case ShortPause, LongPause:
		span := d.span(100*time.Millisecond, failover*9/10)
		if f == LongPause {
			span = d.span(failover*9/10, 8*failover)
			if d.chance(.5) { // it may just have been declared dead
				span = d.span(failover*9/10, failover*3/2)
			}
		}
		l.paused = max(l.paused, w.now()+int64(span))
		w.faults(l.who, span)
	case Isolated:
		span := d.span(time.Second, 12*failover)
		// Cut the worker off right after a heartbeat that reaches the store, and whose answer is
		// slow.
		if d.chance(.4) {
			l.lastWord = span
			return
		}
		l.cutOff = w.now() + int64(span)
		w.faults(l.who, span)
	case NoService:
		l.unread = w.now() + int64(d.span(5*time.Second, 4*time.Minute))
	case Leaves:
		l.stopping = true
		l.cancel()
		w.stirred = true
	}
}

// stillPutting is how long records are put after the last fault.
const stillPutting = 15 * time.Second

// settle begins the part without faults, for all applications.
func (w *world) settle() {
	w.note(nil, "SETTLE", "", 0, "")
	w.stage = settling
	leaders, readers := make([]*life, len(w.apps)), make([]*life, len(w.apps))
	for i, x := range w.apps {
		x.duties.settle = w.now()
		leaders[i], readers[i] = x.stays()
	}
	w.calm.Store(true)
	for i, x := range w.apps {
		x.calms(leaders[i], readers[i])
	}
	began := w.now()
	var again func()
	again = func() {
		wrong := ""
		passed := time.Duration(w.now() - began)
		for _, x := range w.apps {
			now := x.well()
			if now != "" && wrong == "" {
				wrong = now
			}
			if now != "" || passed <= stillPutting+time.Second {
				x.unsettled(now)
			}
		}
		if n := len(w.late); wrong != "" && (n == 0 || kind(w.late[n-1]) != kind(wrong)) {
			w.late = append(w.late, wrong+fmt.Sprintf(" (after %v)", passed))
		}
		if wrong != "" || passed <= stillPutting+time.Second {
			w.after(time.Second, again)
			return
		}
		w.settled, w.late = max(int64(passed), 1), append(w.late, w.meanwhile.String())
		w.after(5*time.Second, func() {
			if w.diedLate() {
				w.settled = 0
				again()
				return
			}
			w.leave()
		})
	}
	w.after(time.Second, again)
}

// calms ends the faults of an application's workers. A leader and a reader may stay cut off.
func (w *world) calms(leader, reader *life) {
	w.settleStreams()
	now := w.now() // end of the hindrances, for later duties
	w.outage = min(w.outage, now)
	w.outageEnds(now)
	for _, l := range append(w.producerLives(), w.lives...) {
		l.cutOff, l.leads, l.unread = min(l.cutOff, now), min(l.leads, now), min(l.unread, now)
		l.lastWord, l.paused = 0, min(l.paused, now+int64(time.Second))
		if l == leader {
			l.leads = math.MaxInt64
			w.bars(l)
		}
		if l == reader {
			l.unread = math.MaxInt64
		}
	}
}

// diedLate reports whether a worker has died since the faults ended. An earlier fault can cause
// that, for example a crash with a call that a pause delayed.
func (w *world) diedLate() bool {
	return slices.ContainsFunc(w.allWorkers(), func(wk *worker) bool { return wk.life == nil })
}

// allWorkers returns the workers of all applications.
func (s *shared) allWorkers() (all []*worker) {
	for _, x := range s.apps {
		all = append(all, x.workers...)
	}
	return all
}

// stays chooses a leader and a reader that remain cut off. Each of them is nil unless the seed
// selects its fault and at least two workers run.
func (w *world) stays() (leader, reader *life) {
	d := roll(w.seed, "stays")
	living := 0
	for _, wk := range w.workers {
		if wk.life != nil && !wk.life.stopping {
			living++
			if w.books.of[w.leader] != wk.life {
				reader = wk.life
			}
		}
	}
	leader = w.books.of[w.leader]
	if living < 2 || leader == nil || leader.of.life != leader || !d.chance(w.profile.Rates[LeaderStuck]) || !w.strikes(LeaderStuck, string(LeaderStuck)) {
		leader = nil
	}
	if living < 2 || reader == nil || !d.chance(w.profile.Rates[ReaderStuck]) || !w.strikes(ReaderStuck, string(ReaderStuck)) {
		reader = nil
	}
	if leader != nil {
		w.note(leader, "FAULT", "", 0, string(LeaderStuck))
	}
	if reader != nil {
		w.note(reader, "FAULT", "", 0, string(ReaderStuck))
	}
	return leader, reader
}

// leave stops all workers of all applications.
func (w *world) leave() {
	w.note(nil, "STOP", "", 0, "")
	w.stage = stopping
	most := time.Duration(0)
	for _, x := range w.apps {
		x.unsaid = map[string]bool{}
		for _, st := range x.streams {
			x.unsaid[st.name] = !x.said(st.name)
		}
		for _, l := range x.lives {
			l.leads, l.unread = min(l.leads, w.now()), min(l.unread, w.now())
		}
		most = max(most, x.settings.stopsWithin())
	}
	for _, wk := range w.allWorkers() {
		if wk.life != nil && !wk.life.stopping {
			wk.life.stopping = true
			wk.life.cancel()
			w.stirred = true
		}
	}
	began := w.now()
	var again func()
	again = func() {
		left := 0
		for _, wk := range w.allWorkers() {
			if wk.life != nil {
				left++
			}
		}
		switch {
		case left == 0:
			for _, x := range w.apps {
				x.emptied()
				x.sunk()
				x.tallied()
				x.sawLetters()
				x.produced()
			}
			w.stage = over
		case time.Duration(w.now()-began) > most:
			w.breaks("%v after they were told to stop %d workers still run", most, left)
		default:
			w.after(500*time.Millisecond, again)
		}
	}
	w.after(500*time.Millisecond, again)
}

// emptied checks the final content of the store.
func (w *world) emptied() {
	if n := w.judge.Missing(); n > 0 {
		w.breaks("all workers have stopped, but %d records are not handled, such as %s", n, w.judge.Lost())
	}
	v, err := w.store.View(context.Background(), w.app, "")
	if err != nil {
		w.breaks("%v", err)
	}
	// A lease that was given to a worker that has left counts as free, because that session has no
	// row.
	for _, l := range v.Leases {
		if !w.streamNamed(l.Stream).named { // leases of dead workers stay
			continue
		}
		// An operator finished the lease. Its field Revoked may still name the worker that held the
		// lease at that time, also if that worker has died since. No worker reads a finished lease,
		// so it counts as free.
		if l.Finished() && l.Owner == "" {
			continue
		}
		if slices.ContainsFunc(v.Workers, func(s lease.Worker) bool {
			left := s.Ended && w.loose(w.streamNamed(l.Stream)) && w.unsaid[l.Stream]
			return (s.Session == l.Owner || s.Session == l.Revoked) && !w.books.ghosts[s.Session] && !left
		}) {
			w.breaks("all workers have stopped, but this lease is not free: %s", l)
		}
	}
	for _, s := range v.Workers {
		// Rows of ended sessions stay for a while.
		if !s.Ended && !w.books.ghosts[s.Session] {
			w.breaks("all workers have stopped, but a session is left: %+v", s)
		}
	}
}
