package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/lease"
)

// patience is the time limit of calls whose context has no deadline.
const patience = 30 * time.Second

// errCollided is returned if two reads of a transaction saw different states. This can happen only
// on a server.
var errCollided = errors.New("sqlstore: another transaction changed the rows first")

// checkAgain is the interval at which a Store reads the version of the tables again. If a program
// of a later version has changed it, this program may have to stop.
const checkAgain = 15 * time.Second

// isChecked reports whether the Store has checked the version of the tables recently.
func (s *Store) isChecked() bool {
	at := s.checked.Load()
	return at != 0 && int64(time.Since(s.born)) < at+int64(checkAgain)
}

// inTx is transact, with checks of the application's name and of the version of the tables.
func (s *Store) inTx(ctx context.Context, app string, write bool, do func(*tx) error) error {
	if err := lease.CheckApp(app); err != nil {
		return err
	}
	return s.inTxOf(ctx, app, write, do)
}

func (s *Store) inTxOf(ctx context.Context, app string, write bool, do func(*tx) error) error {
	return s.transact(ctx, app, write, func(t *tx) error {
		if !s.isChecked() {
			if err := t.checkVersion(); err != nil {
				return err
			}
			s.checked.Store(int64(time.Since(s.born)) + 1)
		}
		if write && s.dialect.server {
			// A transaction that may change data of views first locks the application's row. Such
			// transactions therefore run one after the other.
			if _, err := t.application(); err != nil {
				return err
			}
		}
		return do(t)
	})
}

// transact runs do in one transaction, and repeats it while the database is busy, until ctx ends.
// It commits if do returns nil. do must not keep state from one run to the next.
func (s *Store) transact(ctx context.Context, app string, write bool, do func(*tx) error) error {
	return s.insist(ctx, func(ctx context.Context) error {
		if write && s.turn != nil {
			select {
			case s.turn <- struct{}{}:
				defer func() { <-s.turn }()
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if s.file != nil { // before there is a connection, which might use another file
			if err := s.file.look(); err != nil {
				return err
			}
		}
		return s.onConn(ctx, func(c *sql.Conn) error {
			if s.file != nil {
				if err := s.file.learn(ctx, c); err != nil {
					return err
				}
			}
			t := &tx{Store: s, ctx: ctx, conn: c, app: app, leases: map[lease.Key]*row{}}
			err := t.run(write, do)
			if write && err == nil {
				s.wrote.Store(true)
			}
			return err
		})
	})
}

// insist repeats try while it fails because the database is busy. It explains the last error.
func (s *Store) insist(ctx context.Context, try func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	pause := time.Millisecond
	for {
		err := try(ctx)
		if err == nil {
			s.worked.Store(true)
			return nil
		}
		if !s.dialect.busy(err) && !errors.Is(err, errCollided) {
			return s.explain(ctx, err)
		}
		// Jitter keeps processes from colliding again in sync.
		t := time.NewTimer(pause/2 + mathrand.N(pause))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("sqlstore: the database stayed locked by others: %w", ctx.Err())
		}
		pause = min(2*pause, 20*time.Millisecond)
	}
}

// explain converts an error of the driver to an error of the contract.
func (s *Store) explain(ctx context.Context, err error) error {
	if errors.Is(err, lease.ErrSessionOver) || errors.Is(err, lease.ErrSetup) {
		return err
	}
	if what := s.dialect.hopeless(err, !s.worked.Load()); what != "" {
		return fmt.Errorf("%w: %s (%w)", lease.ErrSetup, what, err)
	}
	if !s.wrote.Load() && misunderstood(err) {
		return fmt.Errorf("%w: the database does not understand statements for %s: is Options.Dialect that of the database? (%w)",
			lease.ErrSetup, s.dialect.name, err)
	}
	// A driver may report the end of the context with its own text, such as "interrupted".
	if end := ctx.Err(); end != nil && !errors.Is(err, end) {
		return fmt.Errorf("sqlstore: %w (%w)", end, err)
	}
	return err
}

// tx is one transaction of one application. Leases that were read are changed in memory. flush
// writes them.
type tx struct {
	*Store
	ctx   context.Context
	conn  *sql.Conn
	app   string
	stmts map[string]*sql.Stmt
	write bool

	leases map[lease.Key]*row
	top    *application
}

// row contains a lease as it was read (was) and as it must be written (is). A pointer is nil if the
// lease does not exist.
type row struct{ was, is *lease.Lease }

// application is the row of an application. It also contains fields of the leader's session that
// show whether the leader is alive.
type application struct {
	leader   string
	term     uint64
	revision uint64
	token    string
	paused   []string          // sorted
	notes    map[string]string // of paused streams; also of streams whose pause an older client ended

	stored      bool
	leaderBeat  uint64
	leaderLives bool
	changed     bool
}

// run executes one whole transaction. It never leaves a transaction open, even after a panic.
func (t *tx) run(write bool, do func(*tx) error) error {
	t.write = write
	if !write && t.dialect.server {
		return do(t)
	}
	open := false
	defer func() {
		for _, stmt := range t.stmts {
			stmt.Close()
		}
		if !open {
			return
		}
		// If the database is local, roll back even after the end of ctx. After a failure, or if the
		// transaction has already ended, only closing the connection is certain to work.
		if _, err := t.conn.ExecContext(t.ending(), "ROLLBACK"); err != nil {
			_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
		}
	}()
	open = true // assume so, because the transaction may have begun despite the error
	if err := t.dialect.begin(t.ctx, t.conn, write); err != nil {
		open = !t.dialect.busy(err)
		return err
	}
	if err := do(t); err != nil {
		return err
	}
	if err := t.flush(); err != nil {
		return err
	}
	if err := t.ctx.Err(); err != nil {
		return err
	}
	if _, err := t.conn.ExecContext(t.ending(), "COMMIT"); err != nil {
		return err
	}
	open = false
	return nil
}

// ending returns the context for the end of a transaction. If the database is local it has no
// deadline, because a late answer is better than none.
func (t *tx) ending() context.Context {
	if t.dialect.server {
		return t.ctx
	}
	return context.WithoutCancel(t.ctx)
}

// locking returns the end of a query that reads rows for a change in this transaction.
func (t *tx) locking() string {
	if t.write && t.dialect.server {
		return " FOR UPDATE"
	}
	return ""
}

// prepared returns a statement that exists until the end of the transaction.
func (t *tx) prepared(query string) (*sql.Stmt, error) {
	if stmt := t.stmts[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := t.conn.PrepareContext(t.ctx, t.named(query))
	if err != nil {
		return nil, err
	}
	if t.stmts == nil {
		t.stmts = map[string]*sql.Stmt{}
	}
	t.stmts[query] = stmt
	return stmt, nil
}

// exec runs a statement and returns the number of affected rows.
func (t *tx) exec(query string, args ...any) (int64, error) {
	// Preparing would cost a round trip. Some drivers cache statements themselves.
	if t.dialect.server {
		res, err := t.conn.ExecContext(t.ctx, t.named(query), args...)
		if err != nil {
			return 0, err
		}
		return res.RowsAffected()
	}
	stmt, err := t.prepared(query)
	if err != nil {
		return 0, err
	}
	res, err := stmt.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// query calls each with the values of every row.
func (t *tx) query(query string, columns int, each func([]any) error, args ...any) error {
	rows, err := t.rows(query, args)
	if err != nil {
		return err
	}
	defer rows.Close()
	values, into := make([]any, columns), make([]any, columns)
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := each(values); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (t *tx) rows(query string, args []any) (*sql.Rows, error) {
	if t.dialect.server {
		return t.conn.QueryContext(t.ctx, t.named(query), args...)
	}
	stmt, err := t.prepared(query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(t.ctx, args...)
}

var (
	leaseCount   = strings.Count(leaseColumns, ",") + 1
	sessionCount = strings.Count(sessionColumns, ",") + 1
)

// loadHeld reads the leases that a session owns.
func (t *tx) loadHeld(session string) error {
	return t.load(t.dialect.byOwner+" WHERE app = ? AND owner = ?", session)
}

// load reads the leases of the application for which a condition is true. The parameters of the
// condition are app and args.
func (t *tx) load(condition string, args ...any) error {
	return t.query("SELECT "+leaseColumns+" FROM {leases}"+condition+t.locking(), leaseCount, func(values []any) error {
		l, err := decodeLease(values)
		if err != nil {
			return err
		}
		is := l
		t.leases[l.Key] = &row{was: &l, is: &is}
		return nil
	}, append([]any{t.app}, args...)...)
}

// lease returns the row of a key. It reads the row if necessary.
func (t *tx) lease(k lease.Key) (*row, error) {
	if r := t.leases[k]; r != nil {
		return r, nil
	}
	if err := t.load(" WHERE app = ? AND stream = ? AND shard = ?", k.Stream, k.Shard); err != nil {
		return nil, err
	}
	if t.leases[k] == nil {
		t.leases[k] = &row{}
	}
	return t.leases[k], nil
}

// sorted returns copies of the leases for which want returns true, sorted by key.
func (t *tx) sorted(want func(*lease.Lease) bool) []lease.Lease {
	var some []lease.Lease
	for _, r := range t.leases {
		if r.is != nil && want(r.is) {
			some = append(some, *r.is)
		}
	}
	sortLeases(some)
	return some
}

func sortLeases(some []lease.Lease) {
	slices.SortFunc(some, func(a, b lease.Lease) int { return a.Key.Compare(b.Key) })
}

// application reads the application's row. If the row does not exist, it returns a new one. flush
// creates that row if it was changed.
func (t *tx) application() (*application, error) {
	if t.top != nil {
		return t.top, nil
	}
	a := &application{}
	query := `SELECT a.leader, a.term, a.revision, a.token, a.paused, s.beat, s.ended, a.pause_notes FROM {applications} a
		LEFT JOIN {sessions} s ON s.app = a.app AND s.session = a.leader WHERE a.app = ?`
	if lock := t.locking(); lock != "" {
		// This omits the leader's row, which changes with each of the leader's heartbeats: see
		// leads.
		query = "SELECT leader, term, revision, token, paused, NULL, NULL, pause_notes FROM {applications} WHERE app = ?" + lock
	}
	err := t.query(query, 8, func(values []any) (err error) {
		a, err = readApplication(t.app, values)
		return err
	}, t.app)
	if err != nil {
		return nil, err
	}
	if !a.stored {
		a.token = rand.Text()[:12]
	}
	t.top = a
	return a, nil
}

// readApplication reads an application's row. From the row of the leader's session it reads the
// heartbeat count, and whether the session has ended.
func readApplication(app string, values []any) (*application, error) {
	d := decoder{row: values}
	a := &application{leader: d.text("leader"), term: d.count("term"), revision: d.count("revision"), token: d.text("token")}
	paused := d.text("paused")
	d.try("paused", func() error { return json.Unmarshal([]byte(paused), &a.paused) })
	slices.Sort(a.paused)
	a.paused = slices.Compact(a.paused)
	if values[7] != nil {
		d := decoder{row: values[7:]}
		notes := d.text("pause_notes")
		d.try("pause_notes", func() error { return json.Unmarshal([]byte(notes), &a.notes) })
		if d.err != nil {
			return &application{}, badRow("application", app, d.err)
		}
	}
	if d.err != nil {
		return &application{}, badRow("application", app, d.err)
	}
	if values[5] != nil {
		a.leaderBeat, a.leaderLives = d.count("beat"), !d.flag("ended")
	}
	if d.err != nil {
		return &application{}, badRow("session", a.leader, d.err)
	}
	a.stored = true
	return a, nil
}

// leads returns the current leader.
func (t *tx) leads() (lease.Leader, error) {
	a, err := t.application()
	if err != nil {
		return lease.Leader{}, err
	}
	if t.write && t.dialect.server && a.leader != "" {
		a.leaderLives = false
		err = t.query("SELECT beat, ended FROM {sessions} WHERE app = ? AND session = ?", 2, func(values []any) error {
			d := decoder{row: values}
			a.leaderBeat, a.leaderLives = d.count("beat"), !d.flag("ended")
			if d.err != nil {
				return badRow("session", a.leader, d.err)
			}
			return nil
		}, t.app, a.leader)
	}
	return a.leads(), err
}
