// Package group executes the decisions of package lease. It keeps a worker's session alive with
// heartbeats. It starts a [Term] for each lease that the worker gets, and ends the term with the
// lease. While this worker leads, it also watches the other workers and executes plans. The package
// never handles records.
//
// Run starts these goroutines and waits for each of them before it returns:
//
//	heartbeat loop    Run itself; owns the session and the terms; slow only in calls of the store
//	reader       one for each term with something to do: Host.Read; not waited for once abandoned
//	deputy       at most one; lists streams that the leader does not list
//	leadership   at most one; campaigns, then owns the Watch and the listings
//	older        at most one; looks for streams that wait because of an older leader
//	listing      at most eight each, owned by leadership and by deputy
package group

import (
	"context"
	"log/slog"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Config is the configuration of a group. All fields are required, except MaxLeases, Streams, Named
// and Shards.
type Config struct {
	Store     lease.Store
	App       string
	Worker    string
	Weight    float64
	MaxLeases int
	Times     lease.Times
	Stop      time.Duration // how long readers may take to return when Run stops

	Streams []string
	// Named returns the streams to read, sorted. It replaces Streams. It must not block, and the
	// returned slice must never change. If both Named and Streams are nil, the worker reads all
	// streams.
	Named func() []string
	// Shards are the shards to read, with their descendants. nil means all shards.
	Shards       []string
	Start        shard.Position // for streams that are new to the application
	ListInterval time.Duration
	// Host lists and reads shards, and receives events.
	Host Host
	// Log must not block, because the heartbeat loop calls it.
	Log *slog.Logger
}

// Run takes part in the application until ctx ends or a permanent error occurs. It returns nil
// after an orderly stop. By then every reader has returned or was abandoned, all progress is saved,
// and this worker holds no lease. If the store may lack progress or not have released a lease, Run
// returns a [*StopError], joined with the error that caused the stop.
func Run(ctx context.Context, cfg Config) error {
	w := newWorker(cfg)
	return w.run(ctx)
}
