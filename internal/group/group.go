// Package group carries out what package lease decides. It keeps a worker's session alive with
// heartbeats, and starts and ends a [Term] for each lease that the worker holds. While this worker
// leads, it also watches the other workers and carries out plans. It never sees a record.
//
// Goroutines of one Run, which waits for each of them before it returns:
//
//	beat loop    Run itself; owns the session and the terms; the heartbeat is the only slow call in it
//	reader       one for each term, while it has something to do: Config.Read. Not waited for once it was abandoned
//	deputy       at most one; lists streams that the leader does not list
//	leadership   at most one; campaigns, then owns the Watch and the listings
//	listing      at most eight, owned by leadership
package group

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Config is the configuration of a group. All fields except the hooks are required.
type Config struct {
	Store     lease.Store
	App       string
	Worker    string
	Weight    float64
	MaxLeases int
	Times     lease.Times
	Stop      time.Duration // how long readers may take to return when Run stops

	Streams []string
	// Named returns the current streams. It replaces Streams and must not block. The slice is
	// sorted and never changed. A worker reads no other streams. If Named is nil, nil Streams mean
	// all streams.
	Named        func() []string
	Start        shard.Position // for streams the application has not seen
	ListInterval time.Duration
	// Host lists and reads shards, and is notified of events.
	Host Host
	// Log is called by the beat loop and must not block.
	Log *slog.Logger
}

// Run takes part in the application until ctx ends or a permanent error occurs. It returns nil
// after an orderly stop: every reader has returned, progress is saved, and the leases are free or
// with other workers. If the store does not answer during the stop, Run returns a [*StopError],
// joined with the error that made it stop.
func Run(ctx context.Context, cfg Config) error {
	w := newWorker(cfg)
	return w.run(ctx)
}

// EndReason is why a term ended.
type EndReason uint8

// The reasons why a term ends.
const (
	EndLost EndReason = iota
	EndFinished
	EndHandedOff
	EndStopped
	EndStalled
)

// String returns the reason in words.
func (r EndReason) String() string {
	words := [...]string{EndLost: "lost", EndFinished: "finished", EndHandedOff: "handed off", EndStopped: "stopped", EndStalled: "stalled"}
	if int(r) < len(words) {
		return words[r]
	}
	return fmt.Sprintf("EndReason(%d)", uint8(r))
}
