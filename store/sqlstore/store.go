package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/sqltable"
	"github.com/weir-go/weir/lease"
)

// Options configures a [Store].
type Options struct {
	// Dialect is the kind of the database. It is required.
	Dialect Dialect
	// Prefix is the beginning of the tables' names, by default "weir_". It is a letter or an
	// underscore, followed by letters, digits and underscores, with at most 30 characters. All
	// processes of an application must use the same prefix.
	Prefix string
	// Schema is a schema of Postgres or a database of MySQL that contains the tables. It must
	// exist. The default "" is the schema that the connection has selected. The allowed characters
	// are those of Prefix. It may be a reserved word. On Postgres, upper case becomes lower case,
	// as in a statement without quotes.
	Schema string
}

// Store implements [lease.Store] on a SQL database. It is safe for concurrent use by any number of
// processes. Its methods return the errors of the contract and those of the driver.
type Store struct {
	db      *sql.DB
	dialect *dialect
	prefix  string
	names   *strings.Replacer
	// turn is a lock that a writer of this process holds during its transaction. It is nil if the
	// database allows several writers at a time.
	turn   chan struct{}
	file   *file       // nil except for SQLite
	worked atomic.Bool // at least one transaction has succeeded
	wrote  atomic.Bool // at least one writing transaction has succeeded
	born   time.Time
	// checked is the time of the last check of the tables' version, in nanoseconds since born, plus
	// 1. It is 0 before the first check.
	checked atomic.Int64
	doubt   atomic.Bool // a call timed out, and the connections have not been checked since
}

var (
	_ lease.Store     = (*Store)(nil)
	_ lease.Admin     = (*Store)(nil)
	_ lease.Historian = (*Store)(nil)
)

var prefixForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,29}$`)

// New returns a Store on a database, which the caller must close. It returns an error for invalid
// options. It does not access the database.
func New(db *sql.DB, o Options) (*Store, error) {
	d := dialects[o.Dialect]
	switch {
	case db == nil:
		return nil, errors.New("sqlstore: db is nil: open it with database/sql")
	case d == nil:
		return nil, errors.New("sqlstore: Options.Dialect is not set: name the database's, such as sqlstore.SQLite")
	case o.Prefix == "":
		o.Prefix = "weir_"
	case !prefixForm.MatchString(o.Prefix):
		return nil, fmt.Errorf("sqlstore: Options.Prefix %.60q: want a letter or underscore, then letters, digits and underscores, at most 30",
			o.Prefix)
	}
	if o.Schema != "" && (!d.server || !prefixForm.MatchString(o.Schema)) {
		return nil, fmt.Errorf("sqlstore: Options.Schema %.60q: want a letter or underscore, then letters, digits and underscores, at most 30, "+
			"and a Dialect that has schemas", o.Schema)
	}
	place, said := o.Prefix, o.Prefix
	if o.Schema != "" {
		place, said = d.quote(o.Schema)+"."+o.Prefix, o.Schema+"."+o.Prefix
	}
	s := &Store{db: db, born: time.Now(), dialect: d, prefix: said, names: strings.NewReplacer("{prefix}", o.Prefix, "{schema}", place+"schema",
		"{applications}", place+"applications", "{sessions}", place+"sessions", "{leases}", place+"leases", "{history}", place+"history")}
	if d.oneWriter {
		s.turn, s.file = make(chan struct{}, 1), new(file)
	}
	return s, nil
}

// named inserts the names of the tables into a statement. It also converts parameters to the form
// of the database.
func (s *Store) named(query string) string {
	query = s.names.Replace(query)
	if s.dialect.dollars && strings.Contains(query, "?") {
		query = sqltable.Numbered(query)
	}
	return query
}

// Abilities implements [lease.Store]. They are the same for all dialects.
func (s *Store) Abilities() lease.Abilities {
	return lease.WatchHeartbeats | lease.ResignByHeartbeat | lease.NoteFailures | lease.NoteDeaths | lease.KeepHistory | lease.NoteStreams |
		lease.NoteRates | lease.NotePauses | lease.NoteNumbers
}

// Heartbeat implements [lease.Store] in one transaction. On MySQL, an ordinary heartbeat is several
// transactions; see the package comment.
func (s *Store) Heartbeat(ctx context.Context, app string, r lease.Report) (lease.Orders, error) {
	r, err := r.Check()
	if err != nil {
		return lease.Orders{}, err
	}
	o, quick, err := s.beatQuickly(ctx, app, r)
	if quick || err != nil {
		return o, err
	}
	err = s.inTx(ctx, app, true, func(t *tx) error {
		if err := t.countBeat(r); err != nil {
			return err
		}
		if err := t.loadHeld(r.Session); err != nil {
			return err
		}
		if err := t.progress(r); err != nil {
			return err
		}
		if err := t.resign(r); err != nil {
			return err
		}
		leader, err := t.leads()
		o = lease.Orders{Held: t.sorted(func(l *lease.Lease) bool { return l.Owner == r.Session }), Leader: leader}
		if err == nil && r.Others {
			o.Others, o.Leader.Streams, err = t.others(r, leader)
			if leader.Session == "" {
				o.Leader.Streams = ""
			}
		}
		return err
	})
	// The session's leases are in a file that other processes no longer use, so the session is
	// over.
	if errors.Is(err, errOtherFile) && !r.First {
		err = fmt.Errorf("%w: %w", lease.ErrSessionOver, err)
	}
	if err != nil {
		return lease.Orders{}, err
	}
	return o, nil
}

// countBeat stores a report in the session's row. For a first report it creates the row.
func (t *tx) countBeat(r lease.Report) error {
	troubles, err := encodeTroubles(r.Troubles)
	if err != nil {
		return err
	}
	set := "UPDATE {sessions} SET beat = beat + 1, name = ?, leaving = ?, weight = ?, max_leases = ?, holds = ?, troubles = ?, streams = ?"
	args := []any{r.Name, flag(r.Leaving), r.Weight, int64(r.MaxLeases), int64(r.Holds), troubles, string(r.Streams)}
	if r.First {
		set, args = set+", times = ?", append(args, r.Times.String())
	}
	n, err := t.exec(set+" WHERE app = ? AND session = ? AND ended = 0", append(args, t.app, r.Session)...)
	if err != nil || n > 0 {
		return err
	}
	w, there, err := t.session(r.Session)
	switch {
	case err != nil:
		return err
	case there && !w.Ended:
		return errCollided // the session was created after the first statement
	case there || !r.First:
		return lease.ErrSessionOver
	}
	_, err = t.exec("INSERT INTO {sessions} ("+sessionColumns+", app) VALUES (?, ?, 1, 0, ?, ?, ?, ?, 0, ?, ?, ?, ?)",
		r.Session, r.Name, flag(r.Leaving), r.Weight, int64(r.MaxLeases), int64(r.Holds), troubles, r.Times.String(), string(r.Streams), t.app)
	return err
}

// resign removes the leader if the report resigns. The term does not change.
func (t *tx) resign(r lease.Report) error {
	if r.Resigns == 0 {
		return nil
	}
	a, err := t.application()
	if err == nil && a.leader == r.Session && a.term == r.Resigns {
		a.leader, a.changed = "", true
	}
	return err
}

// others reads the heartbeat counts of all live sessions except the reporting session, and the
// streams of the leader.
func (t *tx) others(r lease.Report, leader lease.Leader) ([]lease.SessionHeartbeat, lease.Streams, error) {
	others, streams := []lease.SessionHeartbeat{}, lease.Streams("")
	if leader.Session == r.Session {
		streams = r.Streams
	}
	err := t.query("SELECT o.beat, o.session, "+streamsOfLeader+fromOthers+" ORDER BY o.session", 3, func(values []any) error {
		others = appendBeat(others, values[:2])
		if d := (decoder{row: values[2:]}); values[2] != nil {
			streams = lease.Streams(d.text("streams"))
		}
		return nil
	}, t.app, r.Session)
	return others, streams, err
}

// streamsOfLeader is the column streams of the session o if it leads, and otherwise NULL.
const streamsOfLeader = "CASE WHEN o.session = (SELECT a.leader FROM {applications} a WHERE a.app = o.app) THEN o.streams END"

// fromOthers selects all live sessions o of an application except one session.
const fromOthers = " FROM {sessions} o WHERE o.app = ? AND o.session <> ? AND o.ended = 0"

// appendBeat adds a session with its heartbeat count and name. It omits an invalid row, because the
// leader reports it.
func appendBeat(others []lease.SessionHeartbeat, values []any) []lease.SessionHeartbeat {
	d := decoder{row: values}
	beat, session := d.count("beat"), d.text("session")
	if d.err != nil {
		return others
	}
	return append(others, lease.SessionHeartbeat{Session: session, Heartbeats: beat})
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (t *tx) session(session string) (w lease.Worker, there bool, err error) {
	err = t.query("SELECT "+sessionColumns+" FROM {sessions} WHERE app = ? AND session = ?"+t.locking(), sessionCount, func(values []any) (err error) {
		there = true
		w, err = decodeSession(values)
		return err
	}, t.app, session)
	return w, there, err
}

// View implements [lease.Store]. On SQLite it is one snapshot. On a server it is several snapshots:
// first the data of the revision, then the leases, and then the workers.
func (s *Store) View(ctx context.Context, app, since string) (lease.View, error) {
	var v lease.View
	err := s.inTx(ctx, app, false, func(t *tx) error {
		v = lease.View{}
		a, err := t.application()
		if err != nil {
			return err
		}
		v.Leader = a.leads()
		if len(a.paused) > 0 {
			v.Paused = a.paused
			v.PauseNotes = a.notes
		}
		if a.stored {
			v.Revision = a.token + "." + strconv.FormatUint(a.revision, 10)
		}
		if v.Same = a.stored && v.Revision == since; !v.Same {
			err := t.query("SELECT "+leaseColumns+" FROM {leases} WHERE app = ? ORDER BY stream, shard", leaseCount, func(values []any) error {
				l, err := decodeLease(values)
				v.Leases = append(v.Leases, l)
				return err
			}, app)
			if err != nil {
				return err
			}
		}
		return t.query("SELECT "+sessionColumns+" FROM {sessions} WHERE app = ? ORDER BY session", sessionCount, func(values []any) error {
			w, err := decodeSession(values)
			v.Workers = append(v.Workers, w)
			return err
		}, app)
	})
	if err != nil {
		return lease.View{}, err
	}
	return v, nil
}

// Apply implements [lease.Store]. Either all actions take effect in one transaction, or none does.
func (s *Store) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	for _, a := range actions {
		if err := a.Check(); err != nil {
			return nil, err
		}
	}
	done := make([]bool, len(actions))
	err := s.inTx(ctx, app, true, func(t *tx) error {
		if err := t.preload(keysOf(actions)); err != nil {
			return err
		}
		for i, a := range actions {
			var err error
			if done[i], err = t.apply(a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

// Lead implements [lease.Store].
func (s *Store) Lead(ctx context.Context, app, session string, term uint64) (bool, error) {
	var won bool
	err := s.inTx(ctx, app, true, func(t *tx) error {
		a, err := t.application()
		if err != nil {
			return err
		}
		if won = a.term == term; won {
			a.follow(session)
		}
		return nil
	})
	return won && err == nil, err
}

// Leave implements [lease.Store], in one transaction.
func (s *Store) Leave(ctx context.Context, app string, r lease.Report) error {
	r, err := r.Check()
	if err != nil {
		return err
	}
	return s.inTx(ctx, app, true, func(t *tx) error {
		w, there, err := t.session(r.Session)
		if err != nil {
			return err
		}
		if err := t.load(" WHERE app = ? AND (owner = ? OR revoked = ?)", r.Session, r.Session); err != nil {
			return err
		}
		if there && !w.Ended {
			if err := t.progress(r); err != nil {
				return err
			}
		}
		for _, row := range t.leases {
			row.leave(r.Session)
		}
		a, err := t.application()
		if err != nil {
			return err
		}
		if a.leader == r.Session {
			a.follow("")
		}
		if there {
			_, err = t.exec("DELETE FROM {sessions} WHERE app = ? AND session = ?", app, r.Session)
		}
		return err
	})
}
