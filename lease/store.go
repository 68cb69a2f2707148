package lease

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-go/weir/shard"
)

var (
	// ErrSessionOver answers a heartbeat of a session that was ended or that the store does not
	// know (any more). The worker holds nothing and may start a new session.
	ErrSessionOver = errors.New("lease: the session is over")
	// ErrSetup is wrapped by errors that a retry cannot fix: a missing table or schema, a table
	// with another program's columns, a missing permission. The text says what to do.
	ErrSetup = errors.New("lease: the store is not set up")
)

// Store keeps the leases, sessions and leader of any number of applications. All methods may be
// called concurrently, by any number of processes, and must be linearizable for each row they
// touch. After an error other than [ErrSessionOver] and [ErrSetup] the call may or may not have
// taken effect. The caller may repeat any call after such an error, so a call that takes effect
// twice must do no harm. A store does not retain slices that are passed in. Returned slices belong
// to the caller.
//
// Every method returns an error for an application that [CheckApp] refuses. Beat and Leave begin
// with [Report.Check], Apply with [Action.Check] of every action before it carries out any.
//
// The contract grows by new fields of the types that are passed here, each with one of the
// [Abilities]. A store of your own that does not know a new field keeps working as before. A
// wrapper of a Store must pass on Abilities and whole values: embed the Store, and copy a Report
// rather than building one from the fields you know.
//
// store/storetest is this contract as a test suite. Wrappers can use it too.
type Store interface {
	// Abilities returns the optional capabilities of the store, 0 for none. It does no I/O, and the
	// result never changes during the life of the store. weir.New fails if an ability that its
	// Options require is missing. Run logs which features are off because another one is missing.
	Abilities() Abilities

	// Beat carries out a report and returns the session's orders.
	//
	// The first heartbeat of a session (Report.First) creates its row if it is absent. Any other
	// heartbeat of an absent session, and every heartbeat of an ended session, changes nothing and
	// fails with [ErrSessionOver]. A successful heartbeat increases the session's heartbeat count,
	// stores the rest of the report with the session, and carries out each [Progress] separately.
	//
	// The orders must reflect everything that this report did. They must also reflect every
	// [Store.Apply] that returned without error before this call began.
	Beat(ctx context.Context, app string, r Report) (Orders, error)

	// View returns the input of a leader's plan, which status pages also use. It need not be one
	// snapshot, but the leases must be read before the workers: if a lease names a live session,
	// the same view must contain that session's row.
	//
	// since is "" or the Revision of an earlier view. The store may leave Leases nil and set Same
	// if since then no lease was created, deleted or finished, or changed epoch, owner, heir,
	// revocation or Born. Changes of checkpoints and loads alone need not count.
	View(ctx context.Context, app string, since string) (View, error)

	// Apply carries out actions in order, each separately and under its own condition. It returns
	// for each whether it took effect. An action whose condition fails is skipped without an error.
	// After an error any prefix may have taken effect.
	Apply(ctx context.Context, app string, actions []Action) ([]bool, error)

	// Lead makes session the leader if the leader's term is still the given one (0 before the first
	// leader), and increases the term by one. Session "" resigns. The result says whether that
	// happened.
	Lead(ctx context.Context, app, session string, term uint64) (bool, error)

	// Leave ends a session in an orderly way. It carries out the report's progress, frees every
	// lease that the session still owns or has not acknowledged (for the heir if there is one),
	// resigns leadership, and removes the session's row. Leaving a session that is already over is
	// not an error. Its progress is refused as in Beat.
	Leave(ctx context.Context, app string, r Report) error
}

// Admin has the calls for operators that a store offers in addition to the contract. All stores of
// weir implement it.
type Admin interface {
	// Apps returns the sorted applications that have any stored data other than history. It may
	// read the whole store, so it is for commands and status pages and not for loops.
	Apps(ctx context.Context) ([]string, error)
	// Remove deletes all data of an application, even while its workers run. Running workers find
	// that their sessions are over and start a new application of the same name. Check first that
	// no worker is alive. Removing an unknown application is not an error.
	Remove(ctx context.Context, app string) error
}

// Report is the content of a worker's heartbeat.
type Report struct {
	// identifies this start of the worker: unique, at most [MaxSessionBytes] of [a-zA-Z0-9._:-]
	Session   string
	Name      string  // display name of the worker, at most [MaxWorkerBytes]; more is cut
	First     bool    // no heartbeat of this session was answered yet
	Leaving   bool    // see [Worker.Leaving]
	Weight    float64 // see [Worker.Weight]; 0 counts as 1
	MaxLeases int     // see [Worker.MaxLeases]
	Holds     uint64  // see [Worker.Holds]
	Times     Times   // see [Worker.Times]; only used if First is true
	Progress  []Progress
	// see [Worker.Streams]; a store without [NoteStreams] ignores it
	Streams Streams
	// see [Worker.Troubles]; the worst first: everything beyond [MaxTroubles] or 3 KiB is cut
	Troubles []Trouble
	// Others asks for [Orders.Others]. A store without [WatchBeats] ignores it.
	Others bool
	// Resigns is the leadership term that the session resigns, 0 for none. If the session leads at
	// that term, there is no leader after this heartbeat. The term stays the same, as it does when
	// a leader's session ends. It never fails a heartbeat: [Orders.Leader] shows whether it
	// happened. A store without [ResignByBeat] ignores it.
	Resigns uint64
}

// Progress is the part of a report about one lease. It takes effect only if the reporting session
// owns the lease at the given epoch. Otherwise the store ignores it, and the orders show what the
// session holds. There is one exception: a Release by the session that Lease.Revoked names, at the
// epoch before the lease's, acknowledges the revocation and clears it. (At any other epoch it is a
// late duplicate of an older acknowledgement.)
type Progress struct {
	Key
	Epoch uint64
	// Position is the new checkpoint. The zero Position leaves the stored one. A position before
	// the stored one is ignored. [shard.End] finishes the lease: it loses its owner and its epoch
	// increases, regardless of Release.
	Position shard.Position
	// Release gives the lease back after Position was stored: to the heir if there is one,
	// otherwise without a new owner. The epoch increases.
	Release bool
	// Stalled says, with Release, that the session gives the lease back because it could not make
	// progress with it. If the lease then has no owner, the session becomes [Lease.Shunned].
	Stalled bool
	// Load is the present throughput class of the shard. 0 leaves the stored value. It may come
	// without a Position.
	Load Load
	// Deaths replaces [Lease.Deaths]. "" leaves the stored value. It may come without a Position. A
	// store without [NoteDeaths] ignores it.
	Deaths string
	// Children are the shards named at the end of this one, with Position End only. The store makes
	// a lease for each child that has none, no later than it finishes this lease: no owner, epoch
	// 1, position [shard.Oldest], Born as here. They are facts about the stream, so a store may
	// make them even if the session has lost the lease meanwhile.
	Children []shard.Shard
}

// Orders answer a heartbeat.
type Orders struct {
	// Held are the leases that the session owns, sorted by key, each with its epoch and possible
	// Heir. Their positions, loads, births and deaths may be those from the time when the session
	// got them.
	Held   []Lease
	Leader Leader
	// Others are the heartbeat counts of all other sessions of the application that have not ended,
	// sorted by session, if the report asked for them. They are read after the heartbeat was sent,
	// but not necessarily all at one moment, and a count may be out of date. That does no harm:
	// ending a session is conditional on its present count.
	Others []SessionBeat
}

// SessionBeat is the heartbeat count of a session.
type SessionBeat struct {
	Session string
	Beat    uint64 // see [Worker.Beat]
}

// View is the input of a leader's plan.
type View struct {
	Revision string // opaque, for the next View
	Same     bool   // Leases are unchanged since the view named by since
	Leases   []Lease
	Workers  []Worker
	Leader   Leader
	// Paused are the streams whose leases no session may hold, sorted. "" stands for the whole
	// application. They are always current, also if the leases are the Same.
	Paused []string
}

// Kind is the kind of an [Action].
type Kind uint8

// The kinds of action. C is the condition under which it takes effect.
const (
	// Create makes the lease Action.Lease. C: no lease has that key.
	Create Kind = iota + 1
	// Assign makes Session the owner of Key, increases the epoch, and clears Heir, Revoked and
	// Shunned. C: epoch, and the lease is not finished.
	Assign
	// Handoff asks the owner of Key to hand it to Session, which may be [Nobody]. "" withdraws the
	// request. The epoch stays. C: epoch, and the lease has an owner other than Session.
	Handoff
	// Revoke takes Key from its owner, which becomes Lease.Revoked, increases the epoch, and clears
	// Heir. C: epoch, and the lease has an owner. A leader may die after it revoked a lease and
	// before the old owner could learn of it. A leader that finds a revocation that it did not
	// write itself must therefore Tell the session, and only then start to wait for the failover
	// time.
	Revoke
	// Delete removes the lease Key. C: epoch, and the lease has no owner.
	Delete
	// EndSession marks Session as ended. C: its heartbeat count is Beat.
	EndSession
	// Forget removes the row of Session. C: the session has ended.
	Forget
	// Tell makes sure that the next heartbeat of Session is answered with fresh orders, in case a
	// notification was lost. A store whose heartbeats always read the leases does nothing. C: none.
	Tell
	// Move sets the position of Key to Position, also backwards, and Born if it is not 0. It takes
	// the lease from its owner, if any, as Revoke does, and increases the epoch. It is for
	// operators and for recreated streams. C: epoch. If a held lease is moved to [shard.End], its
	// children wait until the old owner has acknowledged or can no longer trust it, as with any
	// revocation.
	Move
	// Drain sets Worker.Drain of Session to On. If it is true, the worker is emptied while it keeps
	// running. C: the session exists and has not ended.
	Drain
	// Pause adds Stream to View.Paused (On) or removes it. "" stands for the whole application. C:
	// with On, fewer than [MaxPaused] others are paused.
	Pause
	// Replace puts Lease, which has no owner, in the place of Key. It is for a shard of a recreated
	// stream, whose parents may differ. It is a single write, so that the epoch never starts again.
	// C: epoch, and Key has no owner; the new epoch is later.
	Replace
	// Birth sets the Born of Key if the lease was made before the time was known. Nothing else
	// changes. C: epoch, and Born is 0.
	Birth
)

// String returns the name of the kind.
func (k Kind) String() string {
	names := [...]string{Create: "create", Assign: "assign", Handoff: "hand-off", Revoke: "revoke", Delete: "delete",
		EndSession: "end session", Forget: "forget session", Tell: "tell", Move: "move", Drain: "drain",
		Pause: "pause", Replace: "replace", Birth: "birth"}
	if int(k) < len(names) && names[k] != "" {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Action is one conditional write. Kind determines which fields count.
type Action struct {
	Kind     Kind
	Key      Key
	Epoch    uint64
	Session  string
	Beat     uint64
	Lease    Lease
	Position shard.Position
	Born     int64
	Stream   string
	On       bool
	// Deaths becomes [Lease.Deaths] with an Assign. "" leaves the stored value. A store without
	// [NoteDeaths] ignores it.
	Deaths string
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
		return fmt.Sprintf("end session %s beat=%d", a.Session, a.Beat)
	case Drain:
		return fmt.Sprintf("drain %s on=%t", a.Session, a.On)
	case Pause:
		return fmt.Sprintf("pause %q on=%t", a.Stream, a.On)
	default:
		return fmt.Sprintf("%s %s", a.Kind, a.Session)
	}
}
