package queuesim

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/jitter"
	"github.com/weir-go/weir/queue"
)

// world is one simulation.
type world struct {
	profile *Profile
	options queue.Options
	names   bool // handlers name the records of a batch that fail
	began   time.Time

	mu          sync.Mutex // guards all fields below, and those of the service and the processes
	random      *rand.Rand
	service     *service
	fates       map[string]fate // by the key of the record
	calls       map[part]int
	handled     map[part]bool
	parts       map[string]part // by their data
	texts       map[part]string // payloads, without compression
	filterCalls map[part]int
	quiet       bool // no more faults
	lives       int
	problem     string
	Result
	counted map[string]int
}

// Result counts what happened in a simulation.
type Result struct {
	Problem     string // the broken promise, or empty
	Lasted      time.Duration
	Records     int
	Processes   int
	Happened    map[string]int // faults by name
	deliveries  int
	again       int // records that were handled more than once
	holdsEnded  int
	deadLetters int
	releases    int

	contextsEnded int
	mostInFlight  int // most records that a process had at a time
}

// life is a process, from its start to its end.
type life struct {
	*world
	name     string
	consumer *queue.Consumer
	options  queue.Options
	poke     chan struct{} // ends a waiting receive when the process freezes
	gone     chan struct{} // closed when the process crashes

	// The mutex of the world guards the fields below.
	crashed     bool
	frozen      time.Time // until
	outage      time.Time // until; calls fail
	outageHangs bool
	outageOf    string    // operation that fails; empty for all
	disturbed   time.Time // when the last call failed, or the process was frozen
	stopAsked   time.Time
	done        map[part]bool   // the process succeeded with it or stored its dead letter
	failed      map[string]bool // by record ID; its handler or filter failed here
	refused     map[string]bool // by record ID; the filter refused a part here
	dropped     map[part]bool   // the filter dropped it here
	droppings   int
	running     map[part]bool
	keys        map[string]int
	held        map[*record]bool
	inCalls     int
	successes   int
	acks        int
	letters     int
	mostHeld    int64
	mostWaiting int
}

// Run runs the simulation of a seed. It must be called in a bubble of package synctest.
func Run(p *Profile, seed uint64) Result {
	random := rand.New(rand.NewPCG(seed, 1))
	w := &world{
		profile: p, random: random, began: time.Now(), names: random.IntN(2) == 0,
		fates: map[string]fate{}, calls: map[part]int{}, handled: map[part]bool{}, counted: map[string]int{},
		parts: map[string]part{}, texts: map[part]string{}, filterCalls: map[part]int{},
	}
	var mu sync.Mutex
	waits := rand.New(rand.NewPCG(seed, 2))
	defer jitter.Replace(func(string, uint64) uint64 {
		mu.Lock()
		defer mu.Unlock()
		return waits.Uint64()
	})()
	w.options = p.drawOptions(random)
	w.service = &service{world: w, rules: p.drawRules(random), most: one(random, 6, 6, 10, 0), records: map[string]*record{}, changed: make(chan struct{})}
	if p.healthy {
		w.service.most = 6
	}
	letters := p.poison > 0 && (w.service.most == 0 || random.IntN(2) == 0)
	if !p.large && random.IntN(2) == 0 {
		w.options.Filter = weir.Filter{By: orders, NotJSON: one(random, weir.PassNotJSON, weir.DropNotJSON, weir.FailNotJSON)}
		if w.options.Filter.NotJSON == weir.FailNotJSON && (p.healthy || w.service.most == 0 && !letters) {
			w.options.Filter.NotJSON = weir.PassNotJSON // the records would have no place
		}
	}
	w.run(letters)
	w.Problem, w.Lasted, w.Happened, w.Processes = w.problem, time.Since(w.began), w.counted, w.lives
	return w.Result
}

// run starts the processes and the producer, and waits until the queue is empty.
func (w *world) run(letters bool) {
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	w.mu.Lock()
	n, records := between(w.random, w.profile.processes[0], w.profile.processes[1]), between(w.random, w.profile.records[0], w.profile.records[1])
	w.Records = records
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = w.random.Uint64()
	}
	made := make([]*record, records)
	for i := range made {
		made[i] = w.makeRecord(i)
	}
	w.mu.Unlock()
	all.Go(func() { w.produce(made) })
	for i := range seeds {
		all.Go(func() { w.process(ctx, i, rand.New(rand.NewPCG(seeds[i], 3)), letters) })
	}
	time.Sleep(w.profile.lasts)
	w.mu.Lock()
	w.quiet = true
	w.mu.Unlock()
	for range 4 * 3600 {
		w.mu.Lock()
		w.service.settle(time.Now())
		over := len(w.service.live) == 0 || w.problem != ""
		w.mu.Unlock()
		if over {
			break
		}
		time.Sleep(time.Second)
	}
	w.mu.Lock()
	if w.problem == "" {
		w.finish()
	}
	w.mu.Unlock()
	stop()
	all.Wait()
	time.Sleep(2 * time.Hour) // abandoned handlers end
}

// produce puts half of the records at once, and the others one after the other.
func (w *world) produce(made []*record) {
	pause := w.profile.lasts * 3 / 4 / time.Duration(len(made))
	for i, r := range made {
		if i > len(made)/2 {
			time.Sleep(2 * pause)
		}
		w.mu.Lock()
		w.service.put(r)
		w.mu.Unlock()
	}
}

// process runs one process after the other until ctx ends.
func (w *world) process(ctx context.Context, number int, r *rand.Rand, letters bool) {
	for life := 1; ctx.Err() == nil; life++ {
		w.live(ctx, fmt.Sprintf("p%d.%d", number, life), r, letters)
	}
}

// live runs a process until it crashes, is restarted or ctx ends.
func (w *world) live(ctx context.Context, name string, r *rand.Rand, letters bool) {
	l := &life{
		world: w, name: name, options: w.options, poke: make(chan struct{}, 1), gone: make(chan struct{}),
		done: map[part]bool{}, failed: map[string]bool{}, refused: map[string]bool{}, dropped: map[part]bool{}, running: map[part]bool{}, keys: map[string]int{}, held: map[*record]bool{},
	}
	l.options.API, l.options.Logger = &link{l}, slog.New(l)
	if l.options.Filter.By != nil {
		l.options.Filter.By = matcher{l}
	}
	if letters {
		l.options.OnFailure.Destination = deadletter.Func(l.put)
	}
	c, err := queue.New(aws.Config{}, l.options)
	if err != nil {
		panic(err)
	}
	l.consumer = c
	w.mu.Lock()
	w.lives++
	w.mu.Unlock()

	running, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- c.Run(running, l.handler()) }()
	for l.fateOfProcess(r) {
		select {
		case err := <-ended:
			l.mu.Lock()
			l.broken("%s ended by itself: %v", l.name, err)
			l.mu.Unlock()
			_ = sleep(ctx, time.Minute)
			return
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
			continue
		}
		break
	}
	if rest := func() time.Duration { l.mu.Lock(); defer l.mu.Unlock(); return time.Until(l.frozen) }(); rest > 0 {
		time.Sleep(rest)
	}
	asked := time.Now()
	l.mu.Lock()
	l.stopAsked = asked
	l.mu.Unlock()
	stop()
	err = <-ended
	l.ended(err, time.Since(asked))
	_ = sleep(ctx, time.Duration(r.IntN(1000))*time.Millisecond)
}

// fateOfProcess draws what happens to a process in the next ten seconds. It returns false if the
// process has to end.
func (l *life) fateOfProcess(r *rand.Rand) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, now := l.profile, time.Now()
	chance := func(c float64) bool { return !l.quiet && r.Float64() < c }
	switch {
	case chance(p.crashes):
		l.happenedLocked("a process crashes")
		l.crashed = true
		close(l.gone)
		return false
	case chance(p.restarts):
		l.happenedLocked("a process is restarted")
		return false
	case chance(p.freezes):
		l.happenedLocked("a process freezes")
		l.frozen = now.Add(time.Duration(r.Int64N(int64(2 * l.options.Hold))))
		l.disturbed = l.frozen.Add(time.Second)
		select {
		case l.poke <- struct{}{}:
		default:
		}
	case chance(p.outages):
		l.happenedLocked("an outage")
		l.outage, l.outageHangs, l.outageOf = now.Add(time.Duration(r.Int64N(int64(2*l.options.Hold)))), r.IntN(2) == 0, one(r, "", "Receive", "Acknowledge", "Acknowledge", "SetVisibility")
		if p.onlyHolds {
			l.outageOf = "SetVisibility"
		}
		l.disturbed = l.outage.Add(10 * time.Second)
	}
	return true
}

// stalled reports whether the process cannot react to the end of a hold.
func (l *life) stalled(now time.Time) bool { return now.Before(l.frozen.Add(time.Second)) }

// faulty reports whether calls may fail now.
func (w *world) faulty() bool { return w.profile.faults && !w.quiet }

// some returns a random time below d.
func (w *world) some(d time.Duration) time.Duration { return time.Duration(w.random.Int64N(int64(d))) }

func (w *world) chance(c float64) bool { return c > 0 && w.random.Float64() < c }

// drawFault draws what happens to a call before it is carried out.
func (l *life) drawFault(string) (f fault, code string) {
	switch {
	case !l.faulty():
	case l.chance(l.profile.throttled):
		return throttled, ""
	case l.chance(l.profile.failing):
		return failing, one(l.random, "InternalFailureException", "ServiceUnavailable")
	}
	return noFault, ""
}

// happened counts a fault of the process.
func (l *life) happened(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.happenedLocked(what)
}

func (l *life) happenedLocked(what string) {
	l.counted[what]++
	if now := time.Now(); l.disturbed.Before(now) {
		l.disturbed = now.Add(10 * time.Second)
	}
}

// The life is the handler of the log of its consumer. The consumer writes most lines in its loop,
// so a frozen process stops the loop there.

func (l *life) Enabled(context.Context, slog.Level) bool { return true }
func (l *life) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *life) WithGroup(string) slog.Handler            { return l }
func (l *life) Handle(context.Context, slog.Record) error {
	l.mu.Lock()
	rest := time.Until(l.frozen)
	l.mu.Unlock()
	if rest > 0 {
		time.Sleep(rest)
	}
	return nil
}
