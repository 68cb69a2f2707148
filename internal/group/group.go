// Package group is the acting half of package lease: it keeps a worker's session alive with beats,
// starts and ends a [Term] for each lease the worker holds, and, while this worker leads, watches
// the others and carries out plans. It never sees a record.
//
// Goroutines of one Run, each waited for before it returns:
//
//	beat loop    Run itself; owns the session and the terms; nothing slow runs in it but the beat
//	reader       one for each term, while it has something to do: Config.Read. Not waited for once it was abandoned
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
	// Named returns the streams of now, in place of Streams, and must not block. A leader of which
	// it is set holds the leases of all other streams back, as if they were paused. The slice is
	// not changed.
	Named        func() []string
	Start        shard.Position // for streams the application has not seen
	ListInterval time.Duration
	// List lists a stream. With a start, the stream is new to the application, and the listing says
	// where each shard begins.
	List func(ctx context.Context, stream string, start shard.Position) (Listing, error)
	// Read reads the shard of a term until its context ends or it drains or the shard ends. An
	// error ends Run; a context that ended is none. While there is nothing to handle it may park,
	// see [Term.Park].
	Read func(t *Term) error

	// Troubles returns what is not going well with the shards, the worst first, for the next beat
	// to report. It is called with each beat and must not block; it is also where a reader that
	// makes no progress is given up. Nil: all goes well.
	Troubles func() []lease.Trouble

	// Hooks may be nil. They and Log are called by the beat loop and must not block.
	OnTaken   func(t *Term)
	OnEnded   func(t *Term, why EndReason)
	OnSaved   func(t *Term, at shard.Position) // a checkpoint is durable
	OnFailed  func(op string, err error, since time.Time)
	OnLeading func(leads bool, term uint64)
	OnBeat    func(sent time.Time) // a beat was answered; leases are trusted from when it was sent
	OnStop    func()               // Run begins to stop, for whatever reason
	Log       *slog.Logger
}

// Run takes part in the application until ctx ends or something fails for good. It returns nil
// after an orderly stop: by then every reader has returned, progress is saved and the leases are
// free, as far as the store answered.
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
