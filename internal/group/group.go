// Package group is the acting half of package lease: it keeps a worker's session alive with beats,
// starts and ends a [Term] for each lease the worker holds, and, while this worker leads, watches
// the others and carries out plans. It never sees a record.
//
// Goroutines of one Run, each waited for before it returns:
//
//	beat loop    Run itself; owns the session and the terms; nothing slow runs in it but the beat
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

// Config says what a group works with. All fields but the hooks are required.
type Config struct {
	Store     lease.Store
	App       string
	Worker    string
	Weight    float64
	MaxLeases int
	Times     lease.Times
	Stop      time.Duration // how long readers may take to return when Run stops

	Streams []string
	// Named returns the current streams, in place of Streams, and must not block. The slice is
	// sorted and never changed. A worker reads no other streams. If Named is nil, nil Streams stand
	// for all.
	Named        func() []string
	Start        shard.Position // for streams the application has not seen
	ListInterval time.Duration
	// Host lists, reads, and is told what happens.
	Host Host
	// Log is called by the beat loop and must not block.
	Log *slog.Logger
}

// Run takes part in the application until ctx ends or something fails for good. It returns nil
// after an orderly stop: by then every reader has returned, progress is saved and the leases are
// with other workers or free. A stop that the store does not answer returns a [*StopError], joined
// with the error that Run stopped for.
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

// String is the reason in words.
func (r EndReason) String() string {
	words := [...]string{EndLost: "lost", EndFinished: "finished", EndHandedOff: "handed off", EndStopped: "stopped", EndStalled: "stalled"}
	if int(r) < len(words) {
		return words[r]
	}
	return fmt.Sprintf("EndReason(%d)", uint8(r))
}
