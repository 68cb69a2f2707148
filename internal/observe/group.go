package observe

import (
	"github.com/weir-go/weir/lease"
)

// Group counts the shards and workers of an application at one moment. All tools use it, so they
// show the same numbers.
type Group struct {
	Living   int    // workers that are neither ended nor silent
	Leader   string // session of the leader if it lives, or ""
	Open     int    // shards that are not finished
	Held     int    // open shards that a living worker holds
	Finished int
	// Streams contains the counts by stream.
	Streams map[string]Shares
	// Paused reports that the whole application is paused.
	Paused bool

	living  map[string]bool
	holders map[lease.Key]string
	shards  map[string]int        // by session
	rates   map[string]Throughput // by session
}

// Shares counts the open shards of a stream.
type Shares struct {
	Held, Unheld int
	Paused       bool
}

// GroupOf counts the shards and workers of a view. silent are the sessions without heartbeats.
func GroupOf(v lease.View, silent map[string]bool) Group {
	g := Group{
		Streams: map[string]Shares{}, living: map[string]bool{},
		holders: map[lease.Key]string{}, shards: map[string]int{}, rates: map[string]Throughput{},
	}
	paused := map[string]bool{}
	for _, stream := range v.Paused {
		paused[stream] = true
	}
	g.Paused = paused[""]
	for _, w := range v.Workers {
		if !w.Ended && !silent[w.Session] {
			g.living[w.Session] = true
			g.Living++
		}
	}
	if g.living[v.Leader.Session] {
		g.Leader = v.Leader.Session
	}
	for _, l := range v.Leases {
		s := g.Streams[l.Stream]
		s.Paused = paused[""] || paused[l.Stream]
		switch {
		case l.Finished():
			g.Finished++
		case g.living[l.Owner]:
			s.Held++
			g.Held++
			g.holders[l.Key] = l.Owner
			g.shards[l.Owner]++
			g.rates[l.Owner] = g.rates[l.Owner].Plus(ThroughputOf(l))
		default:
			s.Unheld++
		}
		g.Streams[l.Stream] = s
	}
	g.Open = len(v.Leases) - g.Finished
	return g
}

// Lives reports whether a session is neither ended nor silent.
func (g Group) Lives(session string) bool { return g.living[session] }

// Holder returns the session of the living worker that holds a shard, or "".
func (g Group) Holder(key lease.Key) string { return g.holders[key] }

// Holds returns how many open shards a living worker holds, and their throughput.
func (g Group) Holds(session string) (shards int, rate Throughput) {
	return g.shards[session], g.rates[session]
}

// ShardRate formats the throughput of a shard. It returns "–" if no living worker holds the shard.
func (g Group) ShardRate(l lease.Lease) string {
	switch {
	case g.Holder(l.Key) == "":
		return NoRate
	case l.Load == 0:
		return "not known"
	}
	return ThroughputOf(l).String()
}

// WorkerRate formats the throughput of a worker. It returns "–" if the worker holds nothing or does
// not live.
func (g Group) WorkerRate(session string) string {
	if g.shards[session] == 0 {
		return NoRate
	}
	return g.rates[session].String()
}

// Rate formats the throughput of the application. It returns "–" if no shard is held.
func (g Group) Rate() string {
	if g.Held == 0 {
		return NoRate
	}
	var sum Throughput
	for _, of := range g.rates {
		sum = sum.Plus(of)
	}
	return sum.String()
}
