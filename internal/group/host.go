package group

import (
	"context"
	"time"

	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// Host is the consumer that a worker belongs to. It lists and reads shards and receives events. The
// heartbeat loop calls these methods unless their comments name another caller, so they must not
// block.
type Host interface {
	// List lists a stream's shards. A leader or a deputy calls it and waits for the result. With a
	// non-zero start, the listing contains the positions at which the application begins, see
	// [Listing].Begin. List may be called concurrently.
	List(ctx context.Context, stream string, start shard.Position) (Listing, error)
	// Read reads a term's shard until the term's context ends, the term drains, or the shard ends.
	// Each term has its own goroutine. Run ends with an error that Read returns. While there is
	// nothing to handle, Read may park: see [Term.Park].
	Read(t *Term) error
	// Troubles returns the problems of shards, the worst first. Each heartbeat calls Troubles and
	// reports them. Troubles also stops readers that make no progress.
	Troubles() []lease.Trouble

	// LeaseTaken is called when a term has begun.
	LeaseTaken(t *Term)
	// LeaseEnded is called when a term has ended.
	LeaseEnded(t *Term, why event.EndReason)
	// CheckpointSaved is called when a checkpoint is durable. took is the duration of the heartbeat
	// that saved the checkpoint.
	CheckpointSaved(t *Term, at shard.Position, took time.Duration)
	// SessionBegan is called when the store has answered the first heartbeat of a session.
	SessionBegan(session string)
	// BeatAnswered is called when the store has answered a heartbeat and the leases are valid. sent
	// is the time at which that heartbeat was sent. The validity of the leases is counted from
	// sent.
	BeatAnswered(sent time.Time)
	// Leading is called when this worker starts to lead and when it stops. The caller is the
	// leadership goroutine.
	Leading(leads bool, term uint64)
	// CallFailed is called for each failed call to the store or to List. For a heartbeat, since is
	// the time of the first failure of the outage; otherwise it is the current time. CallFailed may
	// be called concurrently.
	CallFailed(op event.StoreOp, err error, since time.Time)
	// Stopping is called when Run begins to stop, for any reason.
	Stopping()
}

// HostFuncs is a [Host] made of functions, for tests. OnList and OnRead must be set if they are
// used. The other functions may be nil.
type HostFuncs struct {
	OnList     func(ctx context.Context, stream string, start shard.Position) (Listing, error)
	OnRead     func(t *Term) error
	OnTroubles func() []lease.Trouble
	OnTaken    func(t *Term)
	OnEnded    func(t *Term, why event.EndReason)
	OnSaved    func(t *Term, at shard.Position, took time.Duration)
	OnBeat     func(sent time.Time)
	OnLeading  func(leads bool, term uint64)
	OnFailed   func(op event.StoreOp, err error, since time.Time)
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
func (h *HostFuncs) LeaseEnded(t *Term, why event.EndReason) {
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
func (h *HostFuncs) CallFailed(op event.StoreOp, err error, since time.Time) {
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
