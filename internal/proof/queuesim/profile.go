package queuesim

import (
	"math/rand/v2"
	"time"

	"github.com/weir-go/weir/queue"
)

// Profile enables faults and habits of handlers.
type Profile struct {
	Name  string
	about string

	processes [2]int // fewest and most
	records   [2]int
	lasts     time.Duration // how long faults happen
	latency   time.Duration // longest latency of one direction

	faults bool // there are faults, so holds may end and acknowledgements may fail
	// healthy means that no handler fails and no process crashes, so that no record may become a
	// dead letter.
	healthy bool

	throttled, failing, lost, partial, slow float64 // chances of faults of a call or entry
	outages, freezes, crashes, restarts     float64 // chances in each ten seconds of a process
	onlyHolds                               bool    // faults concern only extensions
	unclear                                 bool    // the service behaves in the less likely ways

	failures float64 // share of records that fail once or twice
	poison   float64 // share of records that never succeed
	slowly   float64 // share of records whose handlers take longer than a hold
	hangs    float64 // share of records whose handler blocks or hangs once
	packed   float64 // share of aggregates
	stores   float64 // chance that a dead-letter destination fails
	large    bool    // records of up to 10 MiB
	fast     bool    // handlers take milliseconds
}

// Profiles contains all profiles.
var Profiles = []Profile{
	{
		Name: "calm", about: "no faults: handlers fail, and take longer than a hold",
		processes: [2]int{1, 3}, records: [2]int{50, 250}, lasts: 2 * time.Minute, latency: 10 * time.Millisecond,
		failures: 0.1, slowly: 0.05, packed: 0.1,
	},
	{
		Name: "rolling", about: "ten processes, restarted one after the other, with six receives per record",
		processes: [2]int{10, 10}, records: [2]int{200, 500}, lasts: 2 * time.Minute, latency: 10 * time.Millisecond,
		healthy: true, restarts: 0.5, slowly: 0.01, packed: 0.05,
	},
	{
		Name: "faults", about: "lost answers, partial failures, throttling, outages, and a service with other choices",
		processes: [2]int{1, 4}, records: [2]int{50, 250}, lasts: 3 * time.Minute, latency: 50 * time.Millisecond,
		faults: true, throttled: 0.05, failing: 0.05, lost: 0.1, partial: 0.1, slow: 0.03, outages: 0.05, unclear: true,
		failures: 0.05, slowly: 0.1, packed: 0.1,
	},
	{
		Name: "holds", about: "slow handlers, whose extensions are late, fail and are lost",
		processes: [2]int{2, 4}, records: [2]int{30, 100}, lasts: 3 * time.Minute, latency: 20 * time.Millisecond,
		faults: true, partial: 0.05, slow: 0.3, outages: 0.3, onlyHolds: true, slowly: 0.4, packed: 0.2,
	},
	{
		Name: "crashes", about: "processes crash, freeze beyond their holds and are restarted",
		processes: [2]int{2, 5}, records: [2]int{50, 250}, lasts: 3 * time.Minute, latency: 20 * time.Millisecond,
		faults: true, lost: 0.02, freezes: 0.15, crashes: 0.1, restarts: 0.1, failures: 0.05, slowly: 0.1, packed: 0.2,
	},
	{
		Name: "letters", about: "records that never succeed, handlers that block, and destinations that fail",
		processes: [2]int{1, 3}, records: [2]int{30, 120}, lasts: 4 * time.Minute, latency: 20 * time.Millisecond,
		faults: true, lost: 0.02, partial: 0.02, restarts: 0.02, outages: 0.01, failures: 0.1, poison: 0.1, hangs: 0.03, packed: 0.2, stores: 0.3,
	},
	{
		Name: "large", about: "records of up to 10 MiB, with little memory",
		processes: [2]int{1, 3}, records: [2]int{40, 120}, lasts: 2 * time.Minute, latency: 200 * time.Millisecond,
		faults: true, lost: 0.03, throttled: 0.03, failures: 0.05, large: true,
	},
	{
		Name: "busy", about: "fast handlers and outages of acknowledgements",
		processes: [2]int{1, 2}, records: [2]int{2000, 5000}, lasts: time.Minute, latency: 10 * time.Millisecond,
		faults: true, outages: 0.3, partial: 0.02, fast: true,
	},
}

// fault is what happens to a call before it is carried out.
type fault int

const (
	noFault fault = iota
	throttled
	failing
)

func between(r *rand.Rand, low, high int) int { return low + r.IntN(high-low+1) }

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// drawOptions draws the options that all processes share.
func (p *Profile) drawOptions(r *rand.Rand) queue.Options {
	o := queue.Options{
		Queue: arn, App: "sim",
		Concurrency: one(r, 1, 2, 3, 5, 10, 20),
		BatchSize:   one(r, 0, 3, 10),
		OrderByKey:  r.IntN(3) == 0,
		KeepPacked:  r.IntN(5) == 0,
		Wait:        one(r, time.Second, 5*time.Second, 20*time.Second),
		Hold:        one(r, 5*time.Second, 10*time.Second, 30*time.Second),
		AckDelay:    one(r, 0, time.Millisecond, 100*time.Millisecond, time.Second, 3*time.Second),
		MinBackoff:  one(r, 10*time.Millisecond, time.Second),
		MaxBackoff:  one(r, 2*time.Second, 20*time.Second),
		StopTimeout: one(r, time.Second, 10*time.Second, 30*time.Second),
		MaxBytes:    128 << 20,
	}
	o.MaxHold = max(o.Hold, one(r, time.Minute, 5*time.Minute))
	if p.healthy {
		o.StopTimeout, o.MaxHold = 30*time.Second, time.Hour
	}
	if p.large {
		o.MaxBytes = one(r, int64(40<<20), 64<<20, 128<<20)
		o.Concurrency = one(r, 1, 5, 20, 100)
	}
	if p.fast {
		o.Concurrency = one(r, 5, 10, 30)
	}
	o.OnFailure.OutageGrace = one(r, time.Duration(-1), 10*time.Second, 2*time.Minute)
	if p.poison > 0 {
		o.OnFailure.MaxAttempts = one(r, 1, 3, 5)
		o.OnFailure.MaxPerMinute = one(r, -1, 0, 5)
	}
	return o
}

// drawRules draws the behaviours of the service.
func (p *Profile) drawRules(r *rand.Rand) (u rules) {
	if p.unclear && r.IntN(2) == 0 {
		u = rules{r.IntN(2) == 0, r.IntN(3) == 0, r.IntN(2) == 0, r.IntN(2) == 0, one(r, 0, 0, 20)}
	}
	return u
}
