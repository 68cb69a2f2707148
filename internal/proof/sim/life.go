package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/previous"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/lease"
	positions "github.com/weir-go/weir/sink"
)

// worker is a worker of the application. It has one life after another.
type worker struct {
	name  string
	rate  float64 // rate of its clock
	life  *life   // current life; nil between two lives
	lifes int
}

// life is one run of a worker. It ends when Run returns or the worker crashes.
type life struct {
	w        *world
	of       *worker
	index    int // index among all lives, in order
	who      judge.Worker
	began    int64
	ctx      context.Context
	cancel   context.CancelFunc
	dead     atomic.Bool
	consumer *weir.Consumer
	counted  weir.Counts          // counts at the last step
	counts   map[string][]counted // numbers of calls, by subject
	parked   []*call              // parked calls in no particular order

	stopping bool
	goodbye  bool          // it is leaving or has left, so it sends no more heartbeats
	done     chan struct{} // closed when Run has returned
	paused   int64         // paused until this time
	cutOff   int64         // cut off from the store until this time
	lastWord time.Duration // duration of a cut that begins with the effect of the next heartbeat
	leads    int64         // until this time, a leader's calls to the store fail
	barred   int64         // time from which these calls fail
	older    bool          // it runs the previous version of weir
	pulls    bool          // its handlers pull batches
	unread   int64         // until this time, its calls to Kinesis fail
	trusted  trusted
	session  string // session in the store
	farewell bool   // the last call of Leave succeeded
	unheard  bool   // the last call of Leave failed
	lettered int    // dead letters that it stored, and whose answer it received
	walksOut bool   // the body has left its loop, and gets no error
	heard    bool   // a heartbeat was answered
	hindered hindered
	left     map[string]*leftover // records that failed calls of handlers left undone, by shard
	// noted contains records that a goroutine marked as done after its call, with the epoch.
	noted  map[judge.ID]uint64
	strays map[string][]judge.ID // strays passed to user code after the lease had moved, by shard
	kept   kept
	rows   *positions.Sink[*transaction] // only with partitions
	parts  int                           // number of partitions; 0 for one batch after the other
	tries  tries
	epochs map[lease.Key]uint64 // epochs of the leases that it last held; only with a loop
	pins   map[string]int64     // when it last learned which shards are open, by stream
	// finished contains records that the life has handled or dead-lettered since the end of the
	// faults.
	finished map[judge.ID]bool
	// settling contains how far the life has read since the end of the faults. It is used if
	// records are dropped.
	settling map[lease.Key]reading
}

// retryMax is the maximum backoff after a failure.
const retryMax = 5 * time.Second

var quiet = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 100}))

// counted is the number of calls of an operation. There are few operations.
type counted struct {
	op string
	n  int
}

// number returns the next number for a call like c.
func (l *life) number(c *call) int {
	all := l.counts[c.about]
	for i := range all {
		if all[i].op == c.op {
			all[i].n++
			return all[i].n
		}
	}
	l.counts[c.about] = append(all, counted{c.op, 1})
	return 1
}

// park adds a call to those that wait for an answer.
func (l *life) park(c *call) {
	c.slot = len(l.parked)
	l.parked = append(l.parked, c)
}

// unpark removes a call, unless it has been removed already.
func (l *life) unpark(c *call) {
	if c.slot >= len(l.parked) || l.parked[c.slot] != c {
		return // an earlier answer removed the call
	}
	last := len(l.parked) - 1
	moved := l.parked[last]
	l.parked[c.slot], moved.slot = moved, c.slot
	l.parked[last] = nil
	l.parked = l.parked[:last]
}

// unparkAll answers all waiting calls with an error, because the life is over.
func (l *life) unparkAll() {
	for _, c := range l.parked {
		c.answer(reply{err: errDead})
	}
	l.parked = nil
}

// start begins a life of a worker.
func (w *world) start(of *worker) {
	of.lifes++
	l := &life{
		w: w, of: of, index: w.begun, who: judge.Worker{Name: of.name, Life: of.lifes}, began: w.now(),
		counts: map[string][]counted{}, done: make(chan struct{}), hindered: newHindered(), pins: map[string]int64{},
		left: map[string]*leftover{}, noted: map[judge.ID]uint64{}, strays: map[string][]judge.ID{}, epochs: map[lease.Key]uint64{},
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	of.life = l
	w.lives = append(w.lives, l)
	w.begun++
	st, version := lease.Store(store{l}), ""
	if older := roll(w.seed, "version "+l.who.String()); older.chance(w.profile.Older) {
		l.older = true
		st, version = previous.Client(st), "of the version before"
	}
	w.note(l, "starts", "", 0, version)
	client := kinesis.New(kinesis.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://kinesis.sim"), HTTPClient: &http.Client{Transport: service{l}},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "sim", SecretAccessKey: "sim", Source: "sim"}, nil
		}),
	})
	l.makeRows()
	c, err := weir.New(client, st, w.options(of, l))
	l.consumer = c
	if err != nil {
		w.breaks("the options of a worker are refused: %v", err)
		return
	}
	w.stirred = true
	run := func() error { return c.Run(l.ctx, weir.HandlerFunc(l.handle)) }
	switch {
	case w.windows != nil:
		h, err := l.windowHandlers()
		if err != nil {
			w.breaks("the windows are refused: %v", err)
			return
		}
		l.pulls = true
		run = func() error { return c.RunPull(l.ctx, h) }
	case w.sink != nil, w.crosses.has(featOpenForm), w.crosses.has(featPullForm):
		run = l.shardRun(c)
	case w.crosses.has(featRecordForm):
		run = func() error { return c.Run(l.ctx, weir.HandlerFunc(l.eachRecord)) }
	case w.isLoop():
		run = func() error { return l.loop(c) }
	}
	go func() {
		err := run()
		close(l.done)
		l.w.gate.tell(&call{life: l, op: "returned", ctx: l.ctx, body: err})
	}()
}

// options returns the options of a worker. All durations are in the time of its own clock.
func (w *world) options(of *worker, l *life) weir.Options {
	by := func(d time.Duration) time.Duration { return time.Duration(float64(d) / of.rate) }
	o := w.settings
	var names func(context.Context) ([]string, error)
	if len(w.streams) > 1 {
		names = l.named
	}
	if w.reading == weir.FanOutRegister {
		o.stall = max(o.stall, 130*time.Second) // the minimum is 2 min, by the fastest clock
	}
	var give weir.FailurePolicy
	if w.letters != nil {
		give = w.letters.policy
		give.Destination = l.letters()
	}
	give.SuspectAfter = w.suspectAfter()
	opts := weir.Options{
		App: w.app, Streams: []string{firstStream}, DiscoverStreams: names, Worker: l.who.String(), Logger: l.logger(),
		Shards: w.chosen.shardIDs(), Start: w.starts, FanOut: weir.FanOut{Mode: w.reading}, ReuseBuffers: w.reuses, Expired: o.expired, Batching: weir.Batching{MaxRecords: o.batch}, MaxMemory: 16 << 20,
		Timing: weir.Timing{
			HeartbeatInterval: by(o.beat),
			FailoverAfter:     by(o.failover),
			HandoffTimeout:    by(o.handoff),
			StopTimeout:       by(o.stop),
			StallAfter:        by(o.stall),
			HandlerTimeout:    by(o.handler),
			ListInterval:      by(o.list),
		},
		Polling:   weir.Polling{IdleInterval: by(o.idle)},
		Retry:     weir.Retry{MinBackoff: by(100 * time.Millisecond), MaxBackoff: by(retryMax)},
		OnFailure: give, Filter: w.filter(), Concurrency: w.concurrency(l), OnEvent: l.hooks(),
	}
	opts.DropRepeats = w.drops && !l.older
	if p := w.producing; p != nil {
		opts.DropRepeats = p.drops && !l.older
		if p.own {
			opts.Aggregates = weir.UnpackOwn
		}
	}
	w.crosses.options(&opts, by)
	return opts
}

// crash ends a life immediately. Its calls have no effect any more.
func (w *world) crash(l *life, why string) {
	if l.dead.Load() {
		return
	}
	w.note(l, "crashes", "", 0, why)
	if w.stage >= settling && l.session != "" { // all workers may stop before one of them notices the death
		w.books.ghosts[l.session] = true
	}
	w.judge.Fault(l.who, w.wall())
	w.mourn(l)
	l.dead.Store(true)
	if w.sink != nil {
		w.sink.ledger.crashes(w, l)
	}
	l.trusted = trusted{}
	l.unparkAll()
	l.cancel()
	w.stirred = true
	w.ends(l)
}

// ends notes that a life is over, and schedules the next one.
func (w *world) ends(l *life) {
	if l.of.life != l {
		return
	}
	w.lived += w.now() - l.began
	l.of.life = nil
	if w.stage >= stopping {
		return
	}
	d := roll(w.seed, "restart "+l.who.String())
	w.startSoon(l.of, d.often(500*time.Millisecond, 40*time.Second))
}

// returned processes the return of Run.
func (w *world) returned(l *life, err error) {
	if l.dead.Load() {
		return
	}
	what := "nil"
	if err != nil {
		what = err.Error()
	}
	w.note(l, "returned", "", 0, what)
	for _, c := range l.parked {
		if !c.gone.Load() && !c.isUsers() && c.op != "late" && c.op != "hook" {
			w.breaks("Run of %s has returned while a call (%s) was under way", l.who, c.op)
		}
	}
	l.trusted = trusted{}
	// A worker that received no answer to its heartbeats cannot know its leases. It does not even
	// know whether a heartbeat began its session. Its error must say that the store did not answer.
	unanswered := err != nil && !l.heard &&
		strings.Contains(err.Error(), "stopped before the store had answered")
	names := errors.Is(err, weir.ErrNotReleased) || errors.Is(err, weir.ErrNotSaved)
	if l.unheard && !l.walksOut && !names && !unanswered {
		w.holdsNothing(l, err)
	}
	switch {
	case unanswered:
	// The store did not answer the worker's last call.
	case errors.Is(err, weir.ErrNotSaved), errors.Is(err, weir.ErrNotReleased):
		if l.farewell && errors.Is(err, weir.ErrNotReleased) {
			w.breaks("Run of %s has returned %v although the store took in its farewell", l.who, err)
		}
	case err == nil, errors.Is(err, errStop), w.profile.Rates[HandlerExits] > 0 && strings.Contains(err.Error(), "ended its goroutine"), errors.Is(err, weir.ErrAbandoned), errors.Is(err, weir.ErrStreamNotFound) && w.profile.Rates[Recreate] > 0:
	default:
		w.breaks("Run of %s has returned %v", l.who, err)
	}
	w.ends(l)
}

// holdsNothing reports a violation if Run returned no error about leases, although the store still
// lists some leases of the worker.
func (w *world) holdsNothing(l *life, err error) {
	v, failed := w.store.View(context.Background(), w.app, "")
	if failed != nil {
		w.breaks("looking at the store: %v", failed)
		return
	}
	// The leases of an ended session may stay until a worker reads the stream.
	if w.profile.Apart && w.isEnded(v, l.session) {
		return
	}
	for _, lease := range v.Leases {
		if l.session != "" && lease.Owner == l.session {
			w.breaks("Run of %s has returned %v, and the store has %s as its", l.who, err, lease.Key)
			return
		}
	}
}

var errStop = errors.New("sim: a handler asked to stop")

// store is the store as a life uses it.
type store struct{ l *life }

type beatCall struct {
	call   call // part of the struct, to save an allocation
	report lease.Report
	// plain means that the call has no fault. It takes effect once and is then answered once.
	plain   bool
	orders  lease.Orders // answer if there is no fault
	watched bool         // the driver checks whether the call was answered in time
	spent   bool         // the call was answered, so the object can be reused
}

// answered returns the orders in a reply.
func (b *beatCall) answered(r reply) lease.Orders {
	if b.plain {
		return b.orders
	}
	o, _ := r.value.(lease.Orders)
	return o
}

type viewCall struct{ since string }
type applyCall struct{ actions []lease.Action }
type leadCall struct {
	session string
	term    uint64
}
type leaveCall struct{ report lease.Report }

func ask[T any](ctx context.Context, s store, op string, body any) (T, error) {
	return asked[T](&call{life: s.l, op: op, ctx: ctx, body: body})
}

func asked[T any](c *call) (T, error) {
	r := c.life.w.gate.wait(c)
	v, _ := r.value.(T)
	return v, r.err
}

// names notes the application's name in a call to the store, if the life belongs to another
// application.
func (l *life) names(app string) {
	if app != l.w.app {
		l.w.foreign.Store(&app)
	}
}

var errPanics = errors.New("sim: the store panics")

// unlessPanics returns err. If err reports a panic of the store, it panics instead.
func unlessPanics(err error) error {
	if errors.Is(err, errPanics) {
		panic(err)
	}
	return err
}

// These are the methods of [lease.Store]. A crashed worker gets an empty answer to a heartbeat, so
// it holds no lease.

func (s store) Abilities() lease.Abilities { return s.l.w.store.Abilities() }

func (s store) Heartbeat(ctx context.Context, app string, report lease.Report) (lease.Orders, error) {
	s.l.names(app)
	b := s.l.w.gate.newBeat()
	b.report, b.call = report, call{life: s.l, op: "beat", ctx: ctx, body: b, deaf: true}
	r := s.l.w.gate.wait(&b.call)
	o, err := b.answered(r), unlessPanics(r.err)
	if b.spent {
		s.l.w.gate.freeBeat(b)
	}
	if errors.Is(err, errDead) {
		return lease.Orders{}, nil
	}
	return o, err
}

func (s store) View(ctx context.Context, app, since string) (lease.View, error) {
	s.l.names(app)
	v, err := ask[lease.View](ctx, s, "view", viewCall{since})
	return v, unlessPanics(err)
}

func (s store) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	s.l.names(app)
	v, err := ask[[]bool](ctx, s, "apply", applyCall{actions})
	return v, unlessPanics(err)
}

func (s store) Lead(ctx context.Context, app, session string, term uint64) (bool, error) {
	s.l.names(app)
	v, err := ask[bool](ctx, s, "lead", leadCall{session, term})
	return v, unlessPanics(err)
}

func (s store) Leave(ctx context.Context, app string, r lease.Report) error {
	s.l.names(app)
	_, err := ask[any](ctx, s, "leave", leaveCall{r})
	if errors.Is(err, errDead) {
		return nil
	}
	s.l.farewell, s.l.unheard = err == nil, err != nil
	return unlessPanics(err)
}

func (l *life) String() string { return fmt.Sprint(l.who) }
