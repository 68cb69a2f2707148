package sim

import (
	"fmt"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/lock"
	"github.com/weir-go/weir/internal/proof/sim/judge"
	"github.com/weir-go/weir/internal/proof/sim/model"
	"github.com/weir-go/weir/store/memstore"
)

// The stages of a simulation.
const (
	faulty   = iota // with faults
	settling        // without faults: all records must be handled, and leases distributed evenly
	stopping        // all workers stop gracefully
	over
)

// shared contains the state that all applications of a simulation share. Only the driver uses it,
// except for fields with another comment.
type shared struct {
	allowed map[string]bool // the faults that may happen; nil means all
	planted func([]string) string

	gate     gate
	calendar calendar
	history  history
	began    time.Time
	instant  int64       // time of the driver's last wait
	stirred  bool        // a goroutine of weir may have work since all were parked
	calm     atomic.Bool // there are no more faults; handlers read it too
	stage    int
	steps    int
	skew     time.Duration // difference of the service's clock
	dated    struct {      // the last date that was formatted
		second int64
		text   string
	}
	store     *memstore.Store
	service   *model.Service
	written   map[string]int // number of records by key
	numbers   *numbering     // nil if aggregates have no numbers
	counts    map[Fault]int
	due       map[Fault]float64 // expected number of each fault, except for those in odds
	struck    []string          // faults that happened
	wrong     string
	settled   int64    // when everything was well again
	late      []string // problems found before settled
	meanwhile meanwhile
	begun     int // number of lives
	apps      []*world
	foreign   atomic.Pointer[string] // name of an application that a worker of another application passed to the store
}

// world is one application of a simulation, with the state that applications share.
type world struct {
	*shared
	app      string
	seed     uint64 // determines the random choices
	profile  Profile
	settings settings
	crosses  *crossing // nil if only the profile decides the features

	odds    map[oddsKey][]odds // cached odds of calls
	reading weir.FanOutMode
	reuses  bool // value of Options.ReuseBuffers
	starts  weir.Position
	beats   int // number of heartbeats sent

	workers []*worker
	lives   []*life
	sink    *sink    // nil if handlers have no sink
	letters *letters // nil if no record is dead-lettered
	killers *killers // nil if no record ends a process
	// parallel is Options.Concurrency. It is zero if keys are not handled in parallel.
	parallel weir.Concurrency
	filters  *filters // nil if no record is dropped
	drops    bool     // workers drop the repeats of numbers
	windows  *windows // nil without windows
	chosen   *chosen  // nil if the application reads all shards
	// producing is nil if records are put without a producer.
	producing *producing
	streams   []*stream
	operator  *operator // nil while none is running
	judge     *judge.Judge
	unsaid    map[string]bool // streams that no worker reported at the beginning of the stop
	books     books
	duties    duties
	firstPut  time.Duration // time of the first put
	leader    string        // the session, by the last read of the store

	outage  int64 // end of the store's outage for all workers
	outages []stretch
	lived   int64 // total time lived by workers that have ended
}

// Result is the result of a simulation.
type Result struct {
	Seed          uint64
	Profile       string
	Wrong         string // first broken promise; "" if there is none
	Hash          uint64 // hash of the complete history
	Steps, Events int
	Beats         int
	Lived         time.Duration // total time lived by all workers
	Settled       time.Duration // time from the last fault until everything was well
	Late          []string      // problems found before everything was well
	Handled       int
	Again         int
	Faults        map[Fault]int
	// Due is the expected number of each fault.
	Due     map[Fault]float64
	Struck  []string
	Worst   map[string]float64 // largest used part of the limit of each kind of duty
	Crossed []Crossed          // features of each application, in a profile that crosses features
	History []string
}

// Options configures a simulation.
type Options struct {
	Allowed map[string]bool // names of the faults that may happen; nil means all
	Workers int             // 0 means the number of the profile
	Lasts   time.Duration   // duration of the part with faults; 0 means that of the profile
	Whole   bool            // keep the complete history
	// Breaks, if set, decides from the faults whether a promise counts as broken. Tests of Shrink
	// use it.
	Breaks func(struck []string) string
}

// simulate runs one simulation. It must be called inside a bubble.
func simulate(seed uint64, p Profile, o Options) Result {
	all := &shared{
		allowed: o.Allowed, planted: o.Breaks, began: time.Now(), store: memstore.New(), service: model.New(),
		counts: map[Fault]int{}, due: map[Fault]float64{}, written: map[string]int{},
	}
	all.gate.poke = make(chan struct{}, 1)
	all.history.all = o.Whole
	skew := roll(seed, "skew")
	all.skew = skew.span(-10*time.Minute, 10*time.Minute)
	for i := range max(p.Apps, 1) {
		newWorld(all, seed, i, p.filled())
	}
	for _, w := range all.apps {
		w.prepare(o)
	}
	lock.Violations() // discard those of earlier seeds
	w := all.apps[0]
	w.after(w.firstPut, w.put)
	for _, w := range all.apps {
		w.script()
	}
	w.after(w.settings.lasts, w.settle)
	w.drive()
	w.end()
	r := Result{
		Seed: seed, Profile: p.Name, Steps: w.steps, Settled: time.Duration(w.settled), Late: w.late,
		Faults: w.counts, Due: w.due, Struck: w.struck, Worst: map[string]float64{},
	}
	for _, w := range all.apps {
		w.adds(&r)
	}
	r.Wrong, r.Hash, r.Events = w.wrong, w.history.hash, w.history.count
	if w.wrong != "" || o.Whole {
		for _, m := range w.history.recent {
			r.History = append(r.History, m.String())
		}
	}
	w.history.end()
	return r
}

// newWorld adds the i-th application to a simulation.
func newWorld(all *shared, seed uint64, i int, p Profile) {
	w := &world{
		shared: all, app: "app", seed: seed, profile: p, judge: judge.New(), books: newBooks(), duties: newDuties(), odds: map[oddsKey][]odds{},
	}
	if i > 0 {
		w.app, w.seed = otherApp, mix(seed*golden+uint64(i))
	}
	all.apps = append(all.apps, w)
	w.makeCrossing(seed)
	if pushed := roll(w.seed, "pushed"); pushed.chance(w.profile.Pushed) {
		w.reading = weir.FanOutRegister
	}
	if reuses := roll(w.seed, "reuses"); reuses.chance(w.profile.Reuses) {
		w.reuses = true
	}
}

// otherApp is the name of the second application in a simulation of two.
const otherApp = "other"

// isFirst reports whether the world is the first application.
func (w *world) isFirst() bool { return w == w.apps[0] }

// adds adds the results of the application to r.
func (w *world) adds(r *Result) {
	if w.wrong == "" {
		w.wrong = w.judge.Wrong()
	}
	for _, wk := range w.workers {
		if wk.life != nil {
			w.lived += w.now() - wk.life.began
		}
	}
	r.Lived += time.Duration(w.lived)
	r.Beats += w.beats
	r.Handled += w.judge.Handled
	r.Again += w.judge.Again
	for kind, part := range w.duties.worst {
		r.Worst[kind] = max(r.Worst[kind], part)
	}
	for _, all := range w.odds {
		for _, o := range all {
			r.Due[o.fault] += o.due
		}
	}
	if w.crosses != nil {
		r.Crossed = append(r.Crossed, Crossed{w.crosses.on, time.Duration(w.lived)})
	}
}

// prepare creates the streams and the workers.
func (w *world) prepare(o Options) {
	d := roll(w.seed, "settings "+w.profile.Name)
	p := w.profile
	w.settings = choose(&d, p)
	s := &w.settings
	if !w.isFirst() {
		first := w.apps[0].settings
		s.lasts, s.keys, s.expired = first.lasts, first.keys, first.expired
	}
	w.judge.Grace = s.explains()
	if o.Lasts > 0 {
		s.lasts = o.Lasts
	}
	n := p.Workers[0] + d.below(p.Workers[1]-p.Workers[0]+1)
	if o.Workers > 0 {
		n = o.Workers
	}
	shards := p.Shards[0] + d.below(p.Shards[1]-p.Shards[0]+1)
	w.makeStreams(shards)
	w.makeChosen()
	w.makeWindows()
	w.makeSink()
	w.makeLetters()
	w.makeKillers()
	w.makeParallel()
	w.makeFilters()
	w.makeProducers()
	w.makeNumbers()
	late := w.begin()
	name := "w"
	if !w.isFirst() {
		name = w.app
	}
	for i := range n {
		// Rates are within 4.5 % of true time, so any two rates differ by less than a tenth.
		wk := &worker{name: fmt.Sprintf("%s%d", name, i), rate: 1 + (float64(d.below(90001))-45000)/1e6}
		w.workers = append(w.workers, wk)
		w.startSoon(wk, late+d.span(0, 10*time.Second))
	}
	w.firstPut = d.span(0, time.Second)
}

// now returns nanoseconds since the start. Time passes only while the driver waits.
func (w *world) now() int64 { return w.instant }

func (w *world) passed() { w.instant = int64(time.Since(w.began)) }

// wall returns the current time of a correct clock.
func (w *world) wall() time.Time { return w.began.Add(time.Duration(w.instant)) }

func (w *world) after(d time.Duration, do func()) { w.calendar.add(w.now()+int64(d), do) }

// unseen schedules an event that weir cannot notice. The event must not schedule further events.
func (w *world) unseen(d time.Duration, do func()) { w.calendar.addUnseen(w.now()+int64(d), do) }

func (w *world) breaks(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

func (w *world) note(l *life, op, about string, n int, what string) {
	m := w.history.add(moment{at: w.now(), op: op, about: about, n: n, what: what})
	if l != nil {
		m.who, m.life = l.who.Name, l.who.Life
	}
	w.history.seal(m)
}

// noteOf notes the progress of a call in the history.
func (w *world) noteOf(c *call, how, what string) {
	w.history.seal(w.history.add(moment{
		at: w.now(), who: c.life.who.Name, life: c.life.who.Life, op: c.op, how: how, about: c.about, n: c.n, what: what,
	}))
}

// strikes decides whether a possible fault happens.
func (w *world) strikes(f Fault, id string) bool {
	if w.calm.Load() || w.allowed != nil && !w.allowed[id] {
		return false
	}
	w.counts[f]++
	w.struck = append(w.struck, id)
	return true
}

// drive lets events happen, one after another.
func (w *world) drive() {
	var alarms alarms
	defer alarms.stop()
	w.stirred = true
	for w.stage != over {
		due, late := w.calendar.late(w.now())
		if w.stirred && !late {
			w.stirred = false
			synctest.Wait()
			for _, c := range w.gate.take() {
				c.life.w.admit(c)
			}
		}
		if w.planted != nil && w.wrong == "" {
			w.wrong = w.planted(w.struck)
		}
		if wrong := w.isWrong(); wrong != "" {
			w.note(nil, "BROKEN", "", 0, wrong)
			return
		}
		if w.steps++; w.steps > mostSteps {
			w.breaks("the simulation has not ended after %d steps", mostSteps)
			continue
		}
		if late {
			awake := w.instant
			w.instant = due
			w.calendar.unseen.pop()()
			w.instant = awake
			continue
		}
		if next := w.calendar.next(); next > w.now() {
			select {
			case <-alarms.next(next, w.now()):
				alarms.over()
				w.instant = next
			case <-w.gate.poke:
				w.passed()
				w.stirred = true
				continue
			}
			if !w.gate.empty() {
				w.stirred = true
				continue
			}
			if _, late := w.calendar.late(w.now()); late {
				continue
			}
		}
		w.calendar.pop()()
	}
}

// isWrong returns the first broken promise of any application, or "".
func (w *world) isWrong() string {
	if app := w.foreign.Load(); app != nil {
		w.breaks("a worker of another application names the application %q to the store", *app)
	}
	for _, x := range w.apps {
		x.checkInside()
		x.heardOutcomes()
		if w.wrong == "" {
			w.wrong = x.judge.Wrong()
		}
	}
	return w.wrong
}

// mostSteps is the maximum number of steps. The largest simulation needs only a small fraction of
// them.
const mostSteps = 20_000_000

// end crashes all remaining workers and waits for their goroutines.
func (w *world) end() {
	w.calm.Store(true)
	w.stage = over
	var lives []*life
	for _, x := range w.apps {
		lives = append(append(lives, x.lives...), x.producerLives()...)
	}
	for _, l := range lives {
		l.dead.Store(true)
		l.unparkAll()
		l.cancel()
	}
	for range 600 {
		synctest.Wait()
		for _, c := range w.gate.take() {
			if c.done != nil {
				c.answer(reply{err: errDead})
			}
		}
		left := 0
		for _, l := range lives {
			select {
			case <-l.done:
			default:
				left++
			}
		}
		if left == 0 {
			return
		}
		time.Sleep(time.Second)
		w.passed()
	}
	w.breaks("a worker that was told to stop has not returned after ten minutes")
}

// dice returns the dice for a call.
func (w *world) dice(c *call, more string) dice {
	return rolled(w.seed, named(named(named(unnamed, c.op), c.about), more), uint64(c.n), uint64(c.life.who.Life), mix(uint64(len(c.life.who.Name))<<32+uint64(hashName(c.life.who.Name))))
}

func hashName(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

// id returns the name of a fault of a call.
func (c *call) id(f Fault) string {
	return fmt.Sprintf("%s/%s/%s#%d: %s", c.life.who, c.op, c.about, c.n, f)
}
