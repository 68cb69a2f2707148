package group

import (
	"context"
	"time"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Host is the consumer that a worker belongs to: it lists and reads, and is told what happens. The
// beat loop calls it, except where a method says otherwise, so its methods must not block.
type Host interface {
	// List lists a stream, for the leader, who waits for it. With a start, the stream is new to the
	// application, and the listing says where each shard begins. It may be called concurrently.
	List(ctx context.Context, stream string, start shard.Position) (Listing, error)
	// Read reads the shard of a term until its context ends or it drains or the shard ends. It has
	// a goroutine for each term. An error ends Run; a context that ended is none. While there is
	// nothing to handle it may park, see [Term.Park].
	Read(t *Term) error
	// Troubles returns what is not going well with the shards, the worst first, for the next beat
	// to report. It is called with each beat; it is also where a reader that makes no progress is
	// given up.
	Troubles() []lease.Trouble

	// LeaseTaken is told that a term has begun.
	LeaseTaken(t *Term)
	// LeaseEnded is told that a term has ended.
	LeaseEnded(t *Term, why EndReason)
	// CheckpointSaved is told that a checkpoint is durable, and how long the store took for the
	// beat that it came with.
	CheckpointSaved(t *Term, at shard.Position, took time.Duration)
	// SessionBegan is told of a session when its first beat was answered.
	SessionBegan(session string)
	// BeatAnswered is told when a beat was sent that was answered; leases are trusted from then on.
	BeatAnswered(sent time.Time)
	// Leading is told when this worker begins to lead, and when it ends; by the leader's goroutine.
	Leading(leads bool, term uint64)
	// CallFailed is told of each failed call, and since when such calls fail. It may be called
	// concurrently.
	CallFailed(op string, err error, since time.Time)
	// Stopping is told that Run begins to stop, for whatever reason.
	Stopping()
}

// HostFuncs is a [Host] made of functions, for tests. OnList and OnRead are required where they are
// called; the others may be nil.
type HostFuncs struct {
	OnList     func(ctx context.Context, stream string, start shard.Position) (Listing, error)
	OnRead     func(t *Term) error
	OnTroubles func() []lease.Trouble
	OnTaken    func(t *Term)
	OnEnded    func(t *Term, why EndReason)
	OnSaved    func(t *Term, at shard.Position, took time.Duration)
	OnBeat     func(sent time.Time)
	OnLeading  func(leads bool, term uint64)
	OnFailed   func(op string, err error, since time.Time)
	OnStop     func()
}

// List calls OnList.
func (h *HostFuncs) List(ctx context.Context, stream string, start shard.Position) (Listing, error) {
	return h.OnList(ctx, stream, start)
}

// Read calls OnRead.
func (h *HostFuncs) Read(t *Term) error { return h.OnRead(t) }

// Troubles calls OnTroubles.
func (h *HostFuncs) Troubles() []lease.Trouble {
	if h.OnTroubles == nil {
		return nil
	}
	return h.OnTroubles()
}

// LeaseTaken calls OnTaken.
func (h *HostFuncs) LeaseTaken(t *Term) {
	if h.OnTaken != nil {
		h.OnTaken(t)
	}
}

// LeaseEnded calls OnEnded.
func (h *HostFuncs) LeaseEnded(t *Term, why EndReason) {
	if h.OnEnded != nil {
		h.OnEnded(t, why)
	}
}

// CheckpointSaved calls OnSaved.
func (h *HostFuncs) CheckpointSaved(t *Term, at shard.Position, took time.Duration) {
	if h.OnSaved != nil {
		h.OnSaved(t, at, took)
	}
}

// SessionBegan does nothing.
func (h *HostFuncs) SessionBegan(string) {}

// BeatAnswered calls OnBeat.
func (h *HostFuncs) BeatAnswered(sent time.Time) {
	if h.OnBeat != nil {
		h.OnBeat(sent)
	}
}

// Leading calls OnLeading.
func (h *HostFuncs) Leading(leads bool, term uint64) {
	if h.OnLeading != nil {
		h.OnLeading(leads, term)
	}
}

// CallFailed calls OnFailed.
func (h *HostFuncs) CallFailed(op string, err error, since time.Time) {
	if h.OnFailed != nil {
		h.OnFailed(op, err, since)
	}
}

// Stopping calls OnStop.
func (h *HostFuncs) Stopping() {
	if h.OnStop != nil {
		h.OnStop()
	}
}
