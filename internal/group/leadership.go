package group

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/lease"
)

// leadership is one campaign for the leadership and the time as leader after it. Each of its writes
// is conditional, so it may write twice, or at the same time as another worker. It therefore need
// not be certain that it leads.
type leadership struct {
	cfg     Config
	session string
	// term is the leadership term that this worker leads. During the campaign it is the previous
	// term.
	term   uint64
	wakeUp func() // triggers a heartbeat

	cancel context.CancelFunc
	looked chan struct{} // requests a look at the store
	done   chan struct{} // closed when run has returned

	mu     lock.Mutex[lock.Leadership]
	won    bool
	alone  bool // the last view had no other worker that could take over
	fatal  error
	lastOK time.Time // the last successful look

	// Owned by run.
	watch    *lease.Watch
	leases   []lease.Lease
	revision string
	reread   time.Time // when the leases were last read in full
	streams  *listings
	rounds   int
	settled  bool   // the last plan found nothing to do
	planned  roster // the input of the last plan, without the leases
	results  *listedStreams
	names    []string      // the streams that this worker reads
	own      lease.Streams // names in stored form, for the plan
	differ   bool          // live workers read different streams
	unread   []string      // streams with leases that no live worker reads
	withheld []string      // streams whose leases no worker gets, see [lease.Withheld]
	paused   []string      // paused streams of the last view
}

// look requests a look at the store at once. It and the next six methods are safe for concurrent
// use.
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

// deposed reports whether the answer to a heartbeat names another session as leader. Answers from
// before this leadership are ignored.
func (l *leadership) deposed(now lease.Leader, session string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.won && (now.Epoch > l.term || (now.Epoch == l.term && now.Session != session))
}

func (l *leadership) stuck() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.lastOK) > l.cfg.Times.Failover
}

// excuse restarts the timeout of stuck.
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
	defer cancel() // do not wait for listings after the leadership has ended
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
		for more := true; more; { // one look handles all pending events
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

// listed evaluates a listing. It returns false if Run must end.
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
		l.report(event.OpLead, err) // the answer to the next heartbeat shows the result
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if won {
		l.won, l.term = true, l.term+1
	}
	return won
}

// rereadAfter is the maximum age of the leases. A view may omit the leases if only checkpoints and
// loads have changed.
const rereadAfter = 30 * time.Second

// step reads the view, makes a plan and executes it. It returns the time until the next look. leads
// is false if this session no longer leads.
func (l *leadership) step(ctx context.Context) (next time.Duration, leads bool) {
	beat := l.cfg.Times.Heartbeat
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
			l.report(event.OpView, err)
		}
		return beat / 4, true
	}
	if view.Leader.Session != l.session || view.Leader.Epoch != l.term {
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
	l.logPauses(view.Paused)
	paused := view.Paused
	view.Paused = l.streams.unlisted(paused, view.Workers)
	l.noteAlone(view, facts)

	// In a steady state step only reads the view. It makes a new plan only if an input has changed.
	var actions []lease.Action
	if !l.settled || facts.Any() || !l.planned.is(view) || l.planned.streams != facts.Streams {
		actions = l.streams.actions(view, facts, l.cfg)
		view.Paused = l.streams.unlisted(paused, view.Workers) // streams may be complete with this view
		l.planned = rosterOf(view)
		l.planned.streams = facts.Streams
		l.compareStreams(view)
		actions = append(actions, lease.Plan(view, facts, lease.Limits{})...)
	}
	l.results.set(l.streams.complete(l.cfg.ListInterval))
	if len(actions) == 0 {
		l.settled = len(facts.Recent) == 0 // the plan may have left these leases for later
		l.mu.Lock()
		l.lastOK = time.Now()
		l.mu.Unlock()
		l.rounds = 0
		return max(l.watch.Next(beat/2), beat/20), true
	}
	return l.apply(ctx, view, actions), true
}

// roster is the input of a plan, without the leases.
type roster struct {
	workers []lease.Worker
	paused  []string
	streams lease.Streams // the leader's streams
}

func rosterOf(v lease.View) roster {
	who := slices.Clone(v.Workers)
	for i := range who {
		cutOff := who[i].CutOff()
		who[i].Heartbeats, who[i].Holds, who[i].Troubles = 0, 0, nil
		if cutOff {
			who[i].Troubles = []lease.Trouble{{State: lease.CutOff}}
		}
	}
	return roster{workers: who, paused: v.Paused}
}

// is reports whether a view has this roster. Each look calls is, so it must not allocate.
func (r *roster) is(v lease.View) bool {
	return slices.Equal(r.paused, v.Paused) && slices.EqualFunc(r.workers, v.Workers, func(a, b lease.Worker) bool {
		return a.Session == b.Session && a.Name == b.Name && a.Ended == b.Ended && a.Leaving == b.Leaving && a.Drain == b.Drain &&
			a.Weight == b.Weight && a.MaxLeases == b.MaxLeases && a.Times == b.Times && a.Streams == b.Streams && a.CutOff() == b.CutOff()
	})
}

func (l *leadership) apply(ctx context.Context, view lease.View, actions []lease.Action) time.Duration {
	beat := l.cfg.Times.Heartbeat
	l.settled = false
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Times.Failover/2)
	defer cancel()
	did, err := l.cfg.Store.Apply(ctx, l.cfg.App, actions)
	if err != nil {
		l.revision = ""
		if ctx.Err() == nil {
			l.report(event.OpApply, err)
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
			l.revision = "" // the stored death belongs to the current positions: read them
			l.logDeath(view, a.Session)
		}
		l.cfg.Log.Debug("this leader tried an action", "action", a.String(), "done", did[i])
	}
	l.mu.Lock()
	l.lastOK = now
	l.mu.Unlock()
	l.wakeUp() // some actions may concern this worker's own session
	if !slices.Contains(did, true) {
		return beat / 10 // the view is out of date
	}
	// One step can enable the next, so look again at once. The limit protects against a store that
	// violates its contract.
	if l.rounds++; l.rounds > 20 {
		l.rounds = 0
		return beat / 2
	}
	return 0
}

// logDeath logs that a session was ended because its heartbeats have stopped.
func (l *leadership) logDeath(v lease.View, session string) {
	shards, name := 0, ""
	for i := range v.Leases {
		if v.Leases[i].Owner == session {
			shards++
		}
	}
	for i := range v.Workers {
		if v.Workers[i].Session == session {
			name = v.Workers[i].Name
		}
	}
	l.cfg.Log.Info("a worker has died, because its heartbeats have stopped; other workers take its shards",
		"other_worker", name, "other_session", session, "shards", shards, "for", l.cfg.Times.Failover)
}

// logPauses logs which streams are paused, or resumed, since the last view. The first view of a
// leader counts as a change.
func (l *leadership) logPauses(now []string) {
	for _, stream := range missing(now, l.paused) {
		l.cfg.Log.Info("an operator has paused reading; workers release the leases", "stream", cmp.Or(stream, "all"))
	}
	for _, stream := range missing(l.paused, now) {
		l.cfg.Log.Info("an operator has resumed reading", "stream", cmp.Or(stream, "all"))
	}
	l.paused = now
}

// missing returns the elements of all that other does not contain.
func missing(all, other []string) (some []string) {
	for _, s := range all {
		if !slices.Contains(other, s) {
			some = append(some, s)
		}
	}
	return some
}

// noteAlone stores whether no other worker could take over this worker's leases.
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

func (l *leadership) report(op event.StoreOp, err error) {
	l.cfg.Host.CallFailed(op, err, time.Now())
	l.cfg.Log.Debug("a call of this leader to the store failed; it is repeated", "op", op, "err", err)
}
