package group

import (
	"context"
	"slices"
	"time"

	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/lease"
)

// leadership is one stretch of campaigning for and then holding the leader's role. Everything it
// does is safe to do twice and by two workers at once: each write has a condition. So it need not
// be certain that it leads.
type leadership struct {
	cfg     Config
	session string
	term    uint64 // what it leads, once won; what it campaigns against, before
	wakeUp  func() // makes the beat loop beat

	cancel context.CancelFunc
	looked chan struct{} // look now
	done   chan struct{} // closed when run has returned

	mu     lock.Mutex[lock.Leadership]
	won    bool
	alone  bool // the last view showed nobody who could take over
	fatal  error
	lastOK time.Time // when a look last succeeded

	// Owned by run.
	watch    *lease.Watch
	leases   []lease.Lease
	revision string
	reread   time.Time // when the leases were last read in full
	streams  *listings
	rounds   int
	settled  bool   // the last plan found nothing to do
	planned  roster // what it was made for, beside the leases
	results  *listedStreams
	names    []string      // the streams that it reads
	own      lease.Streams // the same, as a plan takes them
	differ   bool          // live workers read different streams
	unread   []string      // streams with leases that no live worker reads
	withheld []string      // streams with leases that no worker gets, see [lease.Withheld]
}

// look makes the leadership look at the store at once. Safe for concurrent use, as are the next
// six.
func (l *leadership) look() {
	select {
	case l.looked <- struct{}{}:
	default:
	}
}

func (l *leadership) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// deposed reports whether an answer to a beat says that somebody else leads since. One that is
// older than this leadership says nothing.
func (l *leadership) deposed(now lease.Leader, session string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.won && (now.Term > l.term || (now.Term == l.term && now.Session != session))
}

func (l *leadership) stuck() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.lastOK) > l.cfg.Times.Failover
}

// excuse begins the watchdog's time anew.
func (l *leadership) excuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastOK = time.Now()
}

func (l *leadership) aloneIn() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.alone
}

func (l *leadership) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}

func (l *leadership) run(ctx context.Context) {
	defer close(l.done)
	defer l.streams.wait()
	if !l.won && !l.campaign(ctx) {
		return
	}
	l.wakeUp()
	l.cfg.Host.Leading(true, l.term)
	defer l.cfg.Host.Leading(false, l.term)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a listing does not wait for a leadership that has ended
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-l.looked:
		case r := <-l.streams.results:
			if !l.listed(r) {
				return
			}
		}
		for more := true; more; { // one look is for all that has happened before it
			select {
			case <-l.looked:
			case r := <-l.streams.results:
				if !l.listed(r) {
					return
				}
			default:
				more = false
			}
		}
		next, leads := l.step(ctx)
		if !leads {
			l.wakeUp()
			return
		}
		timer.Reset(next)
	}
}

// listed takes in a listing. It reports false if that ends Run.
func (l *leadership) listed(r result) bool {
	err := l.streams.take(r, l.cfg)
	if err != nil {
		l.mu.Lock()
		l.fatal = err
		l.mu.Unlock()
		l.wakeUp()
	}
	return err == nil
}

func (l *leadership) campaign(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Times.Failover/2)
	defer cancel()
	won, err := l.cfg.Store.Lead(ctx, l.cfg.App, l.session, l.term)
	if err != nil {
		l.report("lead", err) // whether it was won shows in the answer to the next beat
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if won {
		l.won, l.term = true, l.term+1
	}
	return won
}

// rereadAfter is how old the leases may be, that a view need not show again because only
// checkpoints and loads moved.
const rereadAfter = 30 * time.Second

// step looks, plans, and carries out. It returns the time until the next look, and false when
// somebody else leads.
func (l *leadership) step(ctx context.Context) (next time.Duration, leads bool) {
	beat := l.cfg.Times.Beat
	began := time.Now()
	if began.Sub(l.reread) >= rereadAfter {
		l.revision = ""
	}
	call, cancel := context.WithTimeout(ctx, l.cfg.Times.Failover/2)
	view, err := l.cfg.Store.View(call, l.cfg.App, l.revision)
	cancel()
	ended := time.Now()
	if err != nil {
		l.watch.Missed()
		l.revision = ""
		if ctx.Err() == nil {
			l.report("view", err)
		}
		return beat / 4, true
	}
	if view.Leader.Session != l.session || view.Leader.Term != l.term {
		return 0, false
	}
	if view.Same {
		view.Leases = l.leases
	} else {
		l.reread = began
	}
	l.leases, l.revision = view.Leases, view.Revision
	names := l.cfg.streams()
	l.streams.name(names)
	facts := l.watch.See(view, began, ended)
	if names != nil && !(l.own.Known() && slices.Equal(names, l.names)) {
		l.names, l.own = names, lease.StreamsOf(names, nil)
	}
	facts.Streams = l.own
	if l.streams.begin(ctx, view, l.cfg) {
		l.settled = false
	}
	facts.Gone = l.streams.gone
	paused := view.Paused
	view.Paused = l.streams.unlisted(paused, view.Workers)
	l.noteAlone(view, facts)

	// In steady state a look costs nothing but the look: what led to no action before leads to none
	// now.
	var actions []lease.Action
	if !l.settled || facts.Any() || !l.planned.is(view) || l.planned.streams != facts.Streams {
		actions = l.streams.actions(view, facts, l.cfg)
		view.Paused = l.streams.unlisted(paused, view.Workers) // the view may complete some
		l.planned = rosterOf(view)
		l.planned.streams = facts.Streams
		l.compareStreams(view)
		actions = append(actions, lease.Plan(view, facts, lease.Limits{})...)
	}
	l.results.set(l.streams.complete(l.cfg.ListInterval))
	if len(actions) == 0 {
		l.settled = len(facts.Recent) == 0 // which the plan may have waited for
		l.mu.Lock()
		l.lastOK = time.Now()
		l.mu.Unlock()
		l.rounds = 0
		return max(l.watch.Next(beat/2), beat/20), true
	}
	return l.apply(ctx, actions), true
}

// roster is what a plan depends on beside the leases.
type roster struct {
	workers []lease.Worker
	paused  []string
	streams lease.Streams // of the leader
}

func rosterOf(v lease.View) roster {
	who := slices.Clone(v.Workers)
	for i := range who {
		cutOff := who[i].CutOff()
		who[i].Beat, who[i].Holds, who[i].Troubles = 0, 0, nil
		if cutOff {
			who[i].Troubles = []lease.Trouble{{State: lease.CutOff}}
		}
	}
	return roster{workers: who, paused: v.Paused}
}

// is reports whether a view has this roster. It is asked at each look, and makes nothing.
func (r *roster) is(v lease.View) bool {
	return slices.Equal(r.paused, v.Paused) && slices.EqualFunc(r.workers, v.Workers, func(a, b lease.Worker) bool {
		return a.Session == b.Session && a.Name == b.Name && a.Ended == b.Ended && a.Leaving == b.Leaving && a.Drain == b.Drain &&
			a.Weight == b.Weight && a.MaxLeases == b.MaxLeases && a.Times == b.Times && a.Streams == b.Streams && a.CutOff() == b.CutOff()
	})
}

func (l *leadership) apply(ctx context.Context, actions []lease.Action) time.Duration {
	beat := l.cfg.Times.Beat
	l.settled = false
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Times.Failover/2)
	defer cancel()
	did, err := l.cfg.Store.Apply(ctx, l.cfg.App, actions)
	if err != nil {
		l.revision = ""
		if ctx.Err() == nil {
			l.report("apply", err)
		}
		return beat / 4
	}
	now := time.Now()
	for i, a := range actions {
		switch {
		case !did[i]:
		case a.Kind == lease.Tell:
			l.watch.Told(a.Session, now)
		case a.Kind == lease.Create:
			l.streams.made(a.Lease)
		case a.Kind == lease.EndSession:
			l.revision = "" // what is noted of its death is about the positions where it died
		}
		l.cfg.Log.Debug("leader", "action", a.String(), "done", did[i])
	}
	l.mu.Lock()
	l.lastOK = now
	l.mu.Unlock()
	l.wakeUp() // some of it may concern this worker's own session
	if !slices.Contains(did, true) {
		return beat / 10 // what was seen is out of date
	}
	// One step prepares the next: look again at once. The bound is for a store that does not do
	// what it says.
	if l.rounds++; l.rounds > 20 {
		l.rounds = 0
		return beat / 2
	}
	return 0
}

// noteAlone remembers whether anybody could take this worker's leases over.
func (l *leadership) noteAlone(v lease.View, f lease.Facts) {
	alone := !slices.ContainsFunc(v.Workers, func(w lease.Worker) bool {
		_, dead := f.Dead[w.Session]
		return w.Session != l.session && !w.Ended && !w.Leaving && !dead
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if alone != l.alone {
		l.alone = alone
		l.wakeUp()
	}
}

func (l *leadership) report(op string, err error) {
	l.cfg.Host.CallFailed(op, err, time.Now())
	l.cfg.Log.Debug("the store failed", "op", op, "err", err)
}
