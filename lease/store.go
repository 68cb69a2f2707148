package lease

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-go/weir/shard"
)

var (
	// ErrSessionOver is returned for a heartbeat of a session that was ended or that the store does
	// not know. The worker holds no leases and may start a new session.
	ErrSessionOver = errors.New("lease: the session is over")
	// ErrSetup is wrapped by errors that a retry cannot fix: a missing table or schema, a table
	// with another program's columns, a missing permission, or a newer format ([ErrFormat]). The
	// text explains the solution.
	ErrSetup = errors.New("lease: the store is not set up")
)

// Store keeps the leases, sessions and leader of any number of applications. All methods may be
// called concurrently, by any number of processes. They must be linearizable for each row that they
// touch. A store does not retain slices that are passed in. Returned slices belong to the caller.
//
// After an error other than [ErrSessionOver] and [ErrSetup], a call may or may not have taken
// effect. The caller may repeat any call after such an error. A call that takes effect twice must
// therefore do no harm.
//
// Every method returns an error for an application that [CheckApp] rejects. Heartbeat and Leave
// first call [Report.Check]. Apply first calls [Action.Check] for all actions.
//
// The contract grows by new fields of the types in these methods, each with one of the [Abilities].
// A custom store that does not know a new field keeps working. A wrapper of a Store must pass on
// Abilities and whole values. It should embed the Store. It should copy a Report, and not build one
// from the fields that it knows.
//
// Package store/storetest tests this contract. Wrappers can use it too.
type Store interface {
	// Abilities returns the optional capabilities of the store, or 0 if it has none. It does no
	// I/O, and the result never changes. weir.New fails if the store lacks an ability that its
	// Options require. For other missing abilities, Run logs which features are disabled.
	Abilities() Abilities

	// Heartbeat executes a report and returns the session's orders.
	//
	// The first heartbeat of a session (Report.First) creates its row if it is absent. Any other
	// heartbeat of an absent session, and every heartbeat of an ended session, changes nothing and
	// fails with [ErrSessionOver]. A successful heartbeat increases the session's heartbeat count
	// and stores the report with the session. It then executes each [Progress] separately.
	//
	// The orders must reflect all effects of this report. They must also reflect every
	// [Store.Apply] that returned without error before this call began.
	Heartbeat(ctx context.Context, app string, r Report) (Orders, error)

	// View returns the input of a leader's plan. Status pages also use it. It need not be one
	// snapshot, but the leases must be read before the workers. If a lease names a live session,
	// the same view must contain that session's row.
	//
	// since is "" or the Revision of an earlier view. If the leases have not changed since then,
	// the store may leave Leases nil and set Same. Changes are that a lease was created, deleted or
	// finished, or that its epoch, owner, heir, revocation or Born changed. Changes of checkpoints
	// and loads need not count.
	View(ctx context.Context, app string, since string) (View, error)

	// Apply executes actions in order, each separately and under its own condition. For each action
	// it returns whether the action took effect. An action whose condition is false is skipped
	// without an error. After an error, any number of leading actions may have taken effect.
	Apply(ctx context.Context, app string, actions []Action) ([]bool, error)

	// Lead makes session the leader and increases the leader's epoch by one, if the epoch is still
	// the given one. The epoch is 0 before the first leader. With an empty session, there is no
	// leader afterwards. Lead reports whether it made the change.
	Lead(ctx context.Context, app, session string, epoch uint64) (bool, error)

	// Leave ends a session in an orderly way. It executes the report's progress. It releases every
	// lease that the session still owns, to the heir if there is one. It acknowledges every
	// revocation that the session has not acknowledged. It resigns leadership and removes the
	// session's row. If the session is already over, Leave returns no error, but it does not
	// execute the progress.
	Leave(ctx context.Context, app string, r Report) error
}

// Admin contains calls for operators that a store offers in addition to the contract. All stores of
// weir implement it.
type Admin interface {
	// Apps returns the sorted applications that have any stored data other than history. It may
	// read the whole store. It is for commands and status pages, not for loops.
	Apps(ctx context.Context) ([]string, error)
	// Remove deletes all data of an application, even while its workers run. Running workers then
	// find that their sessions are over, and start a new application of the same name. Check first
	// that no worker is alive. Removing an unknown application is not an error.
	Remove(ctx context.Context, app string) error
}

// Report is the content of a worker's heartbeat.
type Report struct {
	// Session identifies this start of the worker. It must be unique and have at most
	// [MaxSessionBytes] characters of [a-zA-Z0-9._:-].
	Session   string
	Name      string  // display name of the worker, cut to [MaxWorkerBytes]
	First     bool    // no heartbeat of this session was answered yet
	Leaving   bool    // see [Worker.Leaving]
	Weight    float64 // see [Worker.Weight]; 0 counts as 1
	MaxLeases int     // see [Worker.MaxLeases]
	Holds     uint64  // see [Worker.Holds]
	Times     Times   // see [Worker.Times]; only used if First is true
	Progress  []Progress
	// Streams is described at [Worker.Streams]. A store without [NoteStreams] ignores it.
	Streams Streams
	// Troubles is described at [Worker.Troubles]. The worst come first, because the list is cut
	// after [MaxTroubles] or 3 KiB.
	Troubles []Trouble
	// Others requests [Orders.Others]. A store without [WatchHeartbeats] ignores it.
	Others bool
	// Resigns is the leader's epoch that the session resigns, or 0. If the session leads at that
	// epoch, there is no leader after this heartbeat. The epoch itself stays the same, as when a
	// leader's session ends. Resigns never makes a heartbeat fail: [Orders.Leader] shows whether it
	// had an effect. A store without [ResignByHeartbeat] ignores it.
	Resigns uint64
}

// Progress is the part of a report about one lease. It takes effect only if the reporting session
// owns the lease at the given epoch. Otherwise the store ignores it, and the orders show what the
// session holds.
//
// Besides Children, there is one exception. A Release by the session in Lease.Revoked, at the epoch
// just before the lease's current epoch, acknowledges the revocation and clears Revoked. A Release
// at any other epoch is a late duplicate of an older acknowledgement.
type Progress struct {
	Key
	Epoch uint64
	// Position is the new checkpoint. The zero Position leaves the stored one unchanged. A position
	// before the stored one is ignored. [shard.End] finishes the lease: the lease loses its owner
	// and its epoch increases, with or without Release.
	Position shard.Position
	// Release gives the lease back after Position was stored. The lease goes to the heir if there
	// is one, and otherwise has no owner. The epoch increases.
	Release bool
	// Stalled is only used with Release. It reports that the session could not make progress with
	// the lease. If the lease then has no owner, the session becomes [Lease.Shunned].
	Stalled bool
	// Load is the current throughput class of the shard. 0 leaves the stored value unchanged. Load
	// may be set without a Position.
	Load Load
	// Rate becomes [Lease.Rate] if Load is not 0. Load must be its class, or Rate must be 0. A
	// store without [NoteRates] ignores it.
	Rate uint64
	// Deaths replaces [Lease.Deaths]. "" leaves the stored value unchanged. Deaths may be set
	// without a Position. A store without [NoteDeaths] ignores it.
	Deaths string
	// Numbers replaces [Lease.Numbers]. "" leaves the stored value unchanged. Numbers may be set
	// without a Position. A store without [NoteNumbers] ignores it.
	Numbers string
	// Children are the child shards at the end of this shard. They are only used if Position is
	// End. The store creates a lease for each child without a lease, at the latest when it finishes
	// this lease. The new lease has no owner, epoch 1, position [shard.Oldest], and the same Born.
	// Children are facts about the stream, so a store may create their leases even if the session
	// has lost this lease.
	Children []shard.Shard
}

// Orders are the answer to a heartbeat.
type Orders struct {
	// Held are the leases that the session owns, sorted by key. Their epochs and heirs are current.
	// Their positions, loads, births, deaths and numbers may date from when the session got them.
	Held   []Lease
	Leader Leader
	// Others are the heartbeat counts of all other sessions of the application that have not ended,
	// sorted by session. They are set if the report requested them. They are read after the
	// heartbeat was sent, but not necessarily all at one moment. A count may be out of date. That
	// is harmless, because ending a session is conditional on its current count.
	Others []SessionHeartbeat
}

// SessionHeartbeat is the heartbeat count of a session.
type SessionHeartbeat struct {
	Session    string
	Heartbeats uint64 // see [Worker.Heartbeats]
}

// View is the input of a leader's plan.
type View struct {
	Revision string // opaque; pass it to the next View
	Same     bool   // Leases are unchanged since the view that since identifies
	Leases   []Lease
	Workers  []Worker
	Leader   Leader
	// Paused are the streams whose leases no session may hold, sorted. "" stands for the whole
	// application. They are always current, even if Same is set.
	Paused []string
	// PauseNotes are the notes of the paused streams, see [View.PauseNote]. It may contain other
	// streams, and be nil if there are no notes.
	PauseNotes map[string]string
}

// Kind is the kind of an [Action].
type Kind uint8

// These are the kinds of actions. Each action only takes effect under its condition.
const (
	// Create creates the lease Action.Lease. Condition: no lease has that key.
	Create Kind = iota + 1
	// Assign makes Session the owner of Key, increases the epoch, and clears Heir, Revoked and
	// Shunned. Condition: the epoch is Epoch, and the lease is not finished.
	Assign
	// Handoff requests that the owner of Key hand it to Session, which may be [Nobody]. If Session
	// is "", the request is withdrawn. The epoch does not change. Condition: the epoch is Epoch,
	// and the lease has an owner other than Session.
	Handoff
	// Revoke takes Key from its owner, which becomes Lease.Revoked. It increases the epoch and
	// clears Heir. Condition: the epoch is Epoch, and the lease has an owner.
	//
	// A leader may die after it revoked a lease and before the old owner could learn of it. If a
	// leader finds a revocation by another leader, it must therefore first Tell the session. Only
	// then it starts to wait for the failover time.
	Revoke
	// Delete removes the lease Key. Condition: the epoch is Epoch, and the lease has no owner.
	Delete
	// EndSession marks Session as ended. Condition: its heartbeat count is Heartbeats.
	EndSession
	// Forget removes the row of Session. Condition: the session has ended.
	Forget
	// Tell ensures that the next heartbeat of Session gets current orders, in case a notification
	// was lost. A store whose heartbeats always read the leases does nothing. Tell has no
	// condition.
	Tell
	// Move sets the position of Key to Position, also backwards, and sets Born if it is not 0. It
	// takes the lease from its owner as Revoke does, and increases the epoch. It is for operators
	// and for recreated streams. Condition: the epoch is Epoch.
	//
	// If a held lease is moved to [shard.End], its children wait, as with any revocation. They wait
	// until the old owner has acknowledged, or until the lease is no longer valid for it.
	Move
	// Drain sets Worker.Drain of Session to On. If On is set, the worker is emptied while it keeps
	// running. Condition: the session exists and has not ended.
	Drain
	// Pause adds Stream to View.Paused if On is set, and otherwise removes it. "" stands for the
	// whole application. Condition for On: fewer than [MaxPaused] other streams are paused. With
	// On, Note becomes the note of the stream, also if the stream was paused before.
	Pause
	// Replace replaces the lease Key by Lease, which has no owner. It is for a shard of a recreated
	// stream, whose parents may differ. It is a single write, so that the epoch does not start
	// again at 1, as it would after Delete and Create. Condition: the epoch is Epoch, Key has no
	// owner, and the new epoch is later.
	Replace
	// Birth sets the Born of Key. It is for leases that were created before the creation time of
	// their stream was known. It changes nothing else. Condition: the epoch is Epoch, and Born is
	// 0.
	Birth
)

// String returns the name of the kind.
func (k Kind) String() string {
	names := [...]string{Create: "create", Assign: "assign", Handoff: "handoff", Revoke: "revoke", Delete: "delete",
		EndSession: "end session", Forget: "forget session", Tell: "tell", Move: "move", Drain: "drain",
		Pause: "pause", Replace: "replace", Birth: "birth"}
	if int(k) < len(names) && names[k] != "" {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Action is one conditional write. Kind determines which fields are used.
type Action struct {
	Kind       Kind
	Key        Key
	Epoch      uint64
	Session    string
	Heartbeats uint64
	Lease      Lease
	Position   shard.Position
	Born       int64
	Stream     string
	On         bool
	// Deaths becomes [Lease.Deaths] with an Assign. "" leaves the stored value unchanged. A store
	// without [NoteDeaths] ignores it.
	Deaths string
	// Note is a [PauseNote] as text, or "". A store without [NotePauses] ignores it.
	Note string
}

// String returns a short form for logs and tests.
func (a Action) String() string {
	switch a.Kind {
	case Create:
		return fmt.Sprintf("create %s", a.Lease)
	case Assign, Handoff:
		to := "to " + a.Session
		switch a.Session {
		case "":
			to = "withdrawn"
		case Nobody:
			to = "to nobody"
		}
		return fmt.Sprintf("%s %s epoch=%d %s", a.Kind, a.Key, a.Epoch, to)
	case Revoke, Delete:
		return fmt.Sprintf("%s %s epoch=%d", a.Kind, a.Key, a.Epoch)
	case Replace:
		return fmt.Sprintf("replace %s epoch=%d by %s", a.Key, a.Epoch, a.Lease)
	case Birth:
		return fmt.Sprintf("birth of %s epoch=%d: %d", a.Key, a.Epoch, a.Born)
	case Move:
		return fmt.Sprintf("move %s epoch=%d to %s", a.Key, a.Epoch, a.Position)
	case EndSession:
		return fmt.Sprintf("end session %s heartbeat=%d", a.Session, a.Heartbeats)
	case Drain:
		return fmt.Sprintf("drain %s on=%t", a.Session, a.On)
	case Pause:
		return fmt.Sprintf("pause %q on=%t", a.Stream, a.On)
	default:
		return fmt.Sprintf("%s %s", a.Kind, a.Session)
	}
}
