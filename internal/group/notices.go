package group

import (
	"log/slog"
	"slices"
	"time"

	"github.com/weir-go/weir/lease"
)

// notices are conditions that the leader logs once when they begin, because other logs show only
// their consequences.
type notices struct {
	paused []string // the paused streams; "" stands for the whole application
	unheld int      // shards for which no worker has room
}

// log logs pauses that began or ended, and that shards have no worker because all workers are full.
// paused are the streams that an operator paused.
func (n *notices) log(to *slog.Logger, v lease.View, paused []string) {
	for _, name := range paused {
		switch {
		case slices.Contains(n.paused, name):
		case name == "":
			to.Info("an operator has paused the application; no worker reads it until it is resumed", pausedBy(v, paused, name)...)
		default:
			to.Info("an operator has paused a stream; no worker reads it until it is resumed", append([]any{"stream", name}, pausedBy(v, paused, name)...)...)
		}
	}
	for _, name := range n.paused {
		switch {
		case slices.Contains(paused, name):
		case name == "":
			to.Info("an operator has resumed the application")
		default:
			to.Info("an operator has resumed a stream", "stream", name)
		}
	}
	n.paused = slices.Clone(paused)
	unheld := withoutRoom(v, paused)
	if unheld > 0 && unheld != n.unheld { // also if another worker with a limit has come
		to.Warn("no worker has room for some shards, so nothing reads them; start more workers, or raise Options.MaxLeases", "shards", unheld)
	}
	n.unheld = unheld
}

// pausedBy returns the attributes of a log line for who paused a stream, and how long ago.
func pausedBy(v lease.View, paused []string, stream string) (attrs []any) {
	v.Paused = paused // v lacks streams that are not listed completely yet
	note := v.PauseNote(stream)
	if note.By != "" {
		attrs = append(attrs, "by", note.By)
	}
	if !note.At.IsZero() {
		attrs = append(attrs, "paused_at", note.At.UTC().Format(time.RFC3339))
	}
	return attrs
}

// withoutRoom returns the number of shards that exceed what all workers may hold together. It
// returns 0 if a worker may hold any number of shards, or if workers read different streams.
func withoutRoom(v lease.View, paused []string) int {
	if slices.Contains(paused, "") || lease.StreamsDiffer(v) {
		return 0
	}
	room, workers := 0, 0
	for i := range v.Workers {
		w := &v.Workers[i]
		if w.Ended || w.Leaving || w.Drain || w.CutOff() {
			continue
		}
		if w.MaxLeases == 0 {
			return 0
		}
		room, workers = room+w.MaxLeases, workers+1
	}
	if workers == 0 {
		return 0
	}
	unfinished := map[lease.Key]bool{}
	for i := range v.Leases {
		if !v.Leases[i].Finished() {
			unfinished[v.Leases[i].Key] = true
		}
	}
	need := 0
	for i := range v.Leases {
		l := &v.Leases[i]
		waits := slices.ContainsFunc(l.Parents, func(p string) bool { return unfinished[lease.Key{Stream: l.Stream, Shard: p}] })
		if unfinished[l.Key] && !waits && !slices.Contains(paused, l.Stream) {
			need++
		}
	}
	return max(0, need-room)
}
