package lease

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-go/weir/shard"
)

var (
	// ErrSessionOver answers a beat of a session that was ended or that the store does not know
	// (any more). The worker holds nothing and may start a new session.
	ErrSessionOver = errors.New("lease: the session is over")
	// ErrSetup is wrapped by errors that no retry mends: a missing table or schema, a table of
	// somebody else's shape, no permission. The text says what to do.
	ErrSetup = errors.New("lease: the store is not set up")
)

// Store keeps the leases, sessions and leader of any number of applications. All methods may be
// called concurrently, by any number of processes, and must be linearizable for each row they
// touch. An error other than [ErrSessionOver] and [ErrSetup] leaves open whether the call took
// effect; every call may be repeated after such an error, and one that took effect twice must do no
// harm. Slices that are passed in are not kept, those that are returned belong to the caller.
//
// Every method fails on an application that [CheckApp] refuses; Beat and Leave begin with
// [Report.Check], Apply with [Action.Check] of every action before it carries out any.
//
// The contract grows by fields of what is passed here, each with one of the [Abilities]; a store of
// your own that does not know a new field goes on working with what it has. Something that wraps a
// Store passes Abilities and whole values on: embed the Store, and copy a Report rather than
// building one of the fields you know.
//
// store/storetest is this contract as a test suite, for wrappers too.
type Store interface {
	// Abilities are what the store does beyond what every store has to. It does no I/O, and answers
	// the same for as long as the store lives. A store that knows of none returns 0. weir.New fails
	// when one is missing that its Options cannot do without; Run logs which of its features are
	// off for lack of another.
	Abilities() Abilities

	// Beat carries out a report and answers with the session's orders.
	//
	// The first beat of a session (Report.First) makes its row if it is absent. Any other beat of a
	// session that is absent, and every beat of one that has ended, changes nothing and fails with
	// [ErrSessionOver]. A beat that succeeds moves the session's beat count, records the rest of
	// the report on the session, and carries out each [Progress] by itself.
	//
	// Orders that are returned must reflect everything that an [Store.Apply] did which returned
	// without error before this call began, and everything that this report did.
	Beat(ctx context.Context, app string, r Report) (Orders, error)

	// View returns what a leader plans from, and what people look at. It need not be one snapshot,
	// but the leases must be read before the workers: a lease never names a session whose row the
	// same view misses although it lives.
	//
	// since is "" or the Revision of an earlier view; when no lease was created, deleted, finished,
	// or changed epoch, owner, heir, revocation or Born since then, the store may leave Leases nil
	// and set Same. Moved checkpoints and loads alone need not count.
	View(ctx context.Context, app string, since string) (View, error)

	// Apply carries out actions in order, each by itself and under its own condition, and says for
	// each whether it took effect. One whose condition fails is skipped without an error. After an
	// error any prefix may have taken effect.
	Apply(ctx context.Context, app string, actions []Action) ([]bool, error)

	// Lead makes session the leader if the leader's term is still the given one (0 when there never
	// was a leader), and moves the term by one. session "" resigns. It reports whether that
	// happened.
	Lead(ctx context.Context, app, session string, term uint64) (bool, error)

	// Leave ends a session in an orderly way: it carries out the report's progress, frees every
	// lease that the session still owns (to the heir where one is named) or has not acknowledged,
	// gives leadership up, and removes the session's row. A session that is already over is no
	// error; its progress is refused as in Beat.
	Leave(ctx context.Context, app string, r Report) error
}

// Admin is what a store can do beside the contract, for people who look after applications. All
// stores of weir implement it.
type Admin interface {
	// Apps returns the applications that have anything stored but history, sorted. It may read the
	// whole store, so it is for commands and pages, not for loops.
	Apps(ctx context.Context) ([]string, error)
	// Remove deletes everything of an application, whatever its workers do: those that live find
	// that their sessions are over, and what they then begin anew is a new application of the same
	// name. Check first that none lives. One that is not there is no error.
	Remove(ctx context.Context, app string) error
}

// Report is what a worker says with a beat.
type Report struct {
	// this start of the worker: unique, at most [MaxSessionBytes] of [a-zA-Z0-9._:-]
	Session   string
	Name      string  // the worker's name for people, at most [MaxWorkerBytes]; more is cut
	First     bool    // no beat of this session has been answered yet
	Leaving   bool    // see [Worker.Leaving]
	Weight    float64 // see [Worker.Weight]; 0 counts as 1
	MaxLeases int     // see [Worker.MaxLeases]
	Holds     uint64  // see [Worker.Holds]
	Times     Times   // see [Worker.Times]; of a beat that is First, all others leave them
	Progress  []Progress
	// see [Worker.Streams]; a store without [NoteStreams] ignores it
	Streams Streams
	// see [Worker.Troubles]; the worst first: what is beyond [MaxTroubles] or 3 KiB is cut
	Troubles []Trouble
	// Others asks for [Orders.Others]. A store without [WatchBeats] ignores it.
	Others bool
	// Resigns is the term of a leadership that the session gives up, 0 for none. If the session
	// leads at that term, nobody leads any more with this beat; the term stays, as it does when a
	// leader's session ends. It never fails a beat: whether it happened shows in [Orders.Leader]. A
	// store without [ResignByBeat] ignores it.
	Resigns uint64
}

// Progress is what a report says of one lease. It takes effect only if the lease is owned by the
// reporting session at the given epoch; otherwise it is ignored (the orders show what the session
// holds), with one exception: Release by the session that Lease.Revoked names, at the epoch before
// the lease's, acknowledges the revocation and clears it. (At any other epoch it is the late
// duplicate of an older acknowledgement.)
type Progress struct {
	Key
	Epoch uint64
	// Position is the new checkpoint; the zero Position leaves it. A position before the stored one
	// is ignored. [shard.End] finishes the lease: no owner, epoch moved, whatever Release says.
	Position shard.Position
	// Release gives the lease back, after Position was stored: to the heir if there is one, else to
	// nobody. Epoch moves.
	Release bool
	// Stalled says, with Release, that the session gives the lease back because it could not make
	// progress with it. If nobody gets the lease by that, the session becomes [Lease.Shunned].
	Stalled bool
	// Load is the class of what the shard brings now; 0 leaves what is stored. It may come without
	// a Position.
	Load Load
	// Deaths becomes [Lease.Deaths], as it is; "" leaves what is stored. It may come without a
	// Position. A store without [NoteDeaths] ignores it.
	Deaths string
	// Children are the shards that the end of this one named, with Position End only. For each that
	// has no lease yet one is made, no later than the lease is finished: no owner, epoch 1,
	// position [shard.Oldest], Born as this one. They are facts about the stream, so a store may
	// make them even if the session has lost the lease meanwhile.
	Children []shard.Shard
}

// Orders answer a beat.
type Orders struct {
	// Held are the leases that the session owns, sorted by key, each with its epoch and possible
	// Heir. Their positions, loads, births and deaths may be as of when the session
	// got them.
	Held   []Lease
	Leader Leader
	// Others are the beat counts of all other sessions of the application that have not ended,
	// sorted by session, if the report asked for them. They are read after the beat was sent, but
	// need not be of one moment, and a count may be one that the session has had before: whoever
	// ends a session names the count, and that is compared with the present one.
	Others []SessionBeat
}

// SessionBeat is how far a session has counted.
type SessionBeat struct {
	Session string
	Beat    uint64 // see [Worker.Beat]
}

// View is what a leader plans from.
type View struct {
	Revision string // opaque, for the next View
	Same     bool   // Leases are those of the view that since named
	Leases   []Lease
	Workers  []Worker
	Leader   Leader
	// Paused are the streams whose leases nobody is to hold, sorted; "" stands for the whole
	// application. They are those of now, also when the leases are the Same.
	Paused []string
}

// Kind says what an [Action] does.
type Kind uint8

// The kinds of action. C is the condition under which it takes effect.
const (
	// Create makes a lease as Action.Lease says. C: there is none of that key.
	Create Kind = iota + 1
	// Assign makes Session the owner of Key, moves the epoch, clears Heir, Revoked and Shunned. C:
	// epoch, and it is not finished.
	Assign
	// Handoff asks the owner of Key to hand it to Session, which may be [Nobody]; "" withdraws the
	// wish. The epoch stays. C: epoch, and it has an owner, which is not Session.
	Handoff
	// Revoke takes Key from its owner, who becomes Lease.Revoked; moves the epoch, clears Heir. C:
	// epoch, and it has an owner. Whoever revoked it may have died before the old owner could learn
	// of it. So a leader that finds a revocation that it did not write itself has to Tell the
	// session, and only then starts to wait for the failover time.
	Revoke
	// Delete removes the lease Key. C: epoch, and nobody owns it.
	Delete
	// EndSession marks Session as ended. C: its beat count is Beat.
	EndSession
	// Forget removes the row of Session. C: it has ended.
	Forget
	// Tell makes sure that the next beat of Session is answered with fresh orders, in case a note
	// about them was lost. A store whose beats always read the leases does nothing. C: none.
	Tell
	// Move sets the position of Key to Position, also backwards, and Born if it is not 0; takes the
	// lease from its owner as Revoke does (if it has one), and moves the epoch. For operators, and
	// for streams that were made anew. C: epoch. A lease that is moved to [shard.End] while it is
	// held is finished for its children only when the old owner has acknowledged or cannot trust it
	// any more, like any revocation.
	Move
	// Drain sets Worker.Drain of Session to On: the worker is to be emptied although it goes on
	// running, or that is over. C: the session is there and has not ended.
	Drain
	// Pause puts Stream, "" for the whole application, among View.Paused (On), or takes it out. C:
	// with On, fewer than [MaxPaused] others are paused.
	Pause
	// Replace puts Lease, which has no owner, in the place of Key, which it is of: a shard of a
	// stream that was made anew, with other parents perhaps. It is one write, so that the epoch
	// never begins again. C: epoch, and nobody owns Key; the new epoch is a later one.
	Replace
	// Birth fills in the Born of Key, for a lease that was made before it was known. Nothing else
	// changes. C: epoch, and Born is 0.
	Birth
)

// String is the kind's name.
func (k Kind) String() string {
	names := [...]string{Create: "create", Assign: "assign", Handoff: "hand-off", Revoke: "revoke", Delete: "delete",
		EndSession: "end session", Forget: "forget session", Tell: "tell", Move: "move", Drain: "drain",
		Pause: "pause", Replace: "replace", Birth: "birth"}
	if int(k) < len(names) && names[k] != "" {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Action is one conditional write. Which fields count depends on Kind.
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
	// Deaths becomes [Lease.Deaths] with an Assign, as it is; "" leaves what is stored. A store
	// without [NoteDeaths] ignores it.
	Deaths string
}

// String is a short form for logs and tests.
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
