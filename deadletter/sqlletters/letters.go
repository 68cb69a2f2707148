// Package sqlletters keeps dead letters in a table of Postgres, MySQL, MariaDB or SQLite. It uses
// the database handle of the application.
package sqlletters

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/sqltable"
)

// Dialect is the kind of database behind a *sql.DB.
type Dialect int

// These are the dialects. The zero Dialect is invalid.
const (
	SQLite   Dialect = iota + 1 // set a busy timeout if several processes use the file
	Postgres                    // PostgreSQL 11 or newer
	MySQL                       // MySQL 8.0 or newer, or MariaDB 10.3 or newer
)

// DefaultTable is the default name of the table.
const DefaultTable = "weir_letters"

// Box is a [deadletter.Box] in a table. Applications may share a table. The methods of Box may be
// called concurrently. A dead letter that is put again keeps its place in the order.
//
// The box needs about 60 bytes of memory for each marked dead letter that it has yielded, as long
// as the dead letter is in the table. Dead letters without a mark need no memory.
type Box struct {
	db     *sql.DB
	schema string
	put    string
	page   string
	look   string
	probe  string // checks that the table exists and returns no rows
	mark   string // marks a dead letter that this box has not yielded
	markIf string
	by     string

	mu    sync.Mutex
	marks marks // guarded by mu
}

var tableForm = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,47}$`)

// New returns a Box for the dead letters in a table. If table is "", it uses DefaultTable. The name
// must only contain a-z, 0-9 and _, must have at most 48 characters, and must not be a reserved
// word of the database. New returns an error for an invalid name, an unknown dialect or a nil db.
// It does not access the database. The caller must close db.
func New(db *sql.DB, d Dialect, table string) (*Box, error) {
	if table == "" {
		table = DefaultTable
	}
	b := &Box{db: db, schema: schemas[d], by: rand.Text()}
	switch {
	case db == nil:
		return nil, errors.New("sqlletters: the database is nil")
	case b.schema == "":
		return nil, fmt.Errorf("sqlletters: there is no dialect %d: use SQLite, Postgres or MySQL", d)
	case !tableForm.MatchString(table):
		return nil, fmt.Errorf("sqlletters: a table cannot be named %.100q: use a-z, 0-9 and _, 48 characters at most", table)
	}
	upsert := "ON CONFLICT (id) DO UPDATE SET state = excluded.state, since = 0, marked_by = '', letter = excluded.letter"
	if d == MySQL {
		upsert = "ON DUPLICATE KEY UPDATE state = VALUES(state), since = 0, marked_by = '', letter = VALUES(letter)"
	}
	for to, text := range map[*string]string{
		&b.schema: b.schema,
		&b.put:    "INSERT INTO {table} (id, state, since, marked_by, letter) VALUES (?, 'kept', 0, '', ?) " + upsert,
		&b.page:   fmt.Sprintf("SELECT seq, state, since, marked_by, letter FROM {table} WHERE seq > ? ORDER BY seq LIMIT %d", perPage),
		&b.probe:  "SELECT seq, id, state, since, marked_by, letter FROM {table} WHERE 1 = 0",
		&b.look:   "SELECT state, marked_by FROM {table} WHERE id = ?",
		&b.mark:   "UPDATE {table} SET state = ?, since = ?, marked_by = ? WHERE id = ?",
		&b.markIf: "UPDATE {table} SET state = ?, since = ?, marked_by = ? WHERE id = ? AND (marked_by = ? OR marked_by = ?)",
	} {
		text = strings.ReplaceAll(text, "{table}", table)
		if d == Postgres {
			text = sqltable.Numbered(text)
		}
		*to = text
	}
	return b, nil
}

// A dead letter is stored as JSON in bytes, because its texts may contain characters that a
// database rejects in text. The column id has the SHA-256 of the dead letter's ID in hexadecimal
// digits. No collation treats two such values as equal, and each is short enough for an index.
// since is in microseconds since 1970, or 0 for Kept.
var schemas = map[Dialect]string{
	SQLite: `CREATE TABLE IF NOT EXISTS {table} (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
	state TEXT NOT NULL, since INTEGER NOT NULL, marked_by TEXT NOT NULL, letter BLOB NOT NULL)`,
	Postgres: `CREATE TABLE IF NOT EXISTS {table} (seq BIGSERIAL PRIMARY KEY, id TEXT NOT NULL UNIQUE,
	state TEXT NOT NULL, since BIGINT NOT NULL, marked_by TEXT NOT NULL, letter BYTEA NOT NULL)`,
	MySQL: `CREATE TABLE IF NOT EXISTS {table} (seq BIGINT AUTO_INCREMENT PRIMARY KEY, id CHAR(64) NOT NULL UNIQUE,
	state VARCHAR(16) NOT NULL, since BIGINT NOT NULL, marked_by VARCHAR(64) NOT NULL, letter LONGBLOB NOT NULL)
	CHARACTER SET ascii COLLATE ascii_bin ENGINE InnoDB`,
}

// perPage is the maximum number of dead letters that are read at once. Each may contain a record of
// 10 MiB in base64.
const perPage = 8

// Schema returns the statement with which [Box.Migrate] creates the table. Use it to create the
// table by other means.
func (b *Box) Schema() string { return b.schema }

// Migrate creates the table unless it exists.
//
// It may be repeated, and any number of processes may call it at the same time. No other function
// of the library calls it. It needs permissions to create and change tables, which workers and
// operators do not need: call it when a program is deployed, as a separate user.
func (b *Box) Migrate(ctx context.Context) error {
	if err := sqltable.Make(ctx, b.db, b.schema, b.probe); err != nil {
		return fmt.Errorf("sqlletters: making the table: %w", err)
	}
	return nil
}

// Put writes dead letters one after the other. See [deadletter.Destination].
func (b *Box) Put(ctx context.Context, letters []deadletter.Letter) error {
	for i := range letters {
		text, err := json.Marshal(&letters[i])
		if err != nil {
			return fmt.Errorf("sqlletters: dead letter %s: %w", letters[i].ID, err)
		}
		if err := b.do(ctx, "letter "+letters[i].ID, b.put, key(letters[i].ID), text); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func key(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// do runs a statement, and repeats it if it collided with another one.
func (b *Box) do(ctx context.Context, what, statement string, args ...any) error {
	_, err := b.exec(ctx, what, statement, args...)
	return err
}

func (b *Box) exec(ctx context.Context, what, statement string, args ...any) (rows int64, err error) {
	for try := 1; ; try++ {
		done, err := b.db.ExecContext(ctx, statement, args...)
		if err == nil {
			if rows, err = done.RowsAffected(); err == nil {
				return rows, nil
			}
		}
		if try == 5 || !collided(err) {
			return 0, fmt.Errorf("sqlletters: %s: %w", what, err)
		}
	}
}

// collided reports whether a database aborted a statement because of a deadlock or a conflict with
// another statement.
func collided(err error) bool {
	for _, text := range []string{"SQLSTATE 40P01", "SQLSTATE 40001", "Error 1213"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// Mark stores the state of dead letters, one after the other. See [deadletter.Box].
func (b *Box) Mark(ctx context.Context, to deadletter.State, ids ...string) error {
	switch to {
	case deadletter.Kept, deadletter.Begun, deadletter.Done, deadletter.Dropped:
	default:
		return fmt.Errorf("sqlletters: %q is not a valid state of a letter", to)
	}
	var changed []error
	for _, id := range ids {
		switch err := b.markOne(ctx, to, id); {
		case errors.Is(err, deadletter.ErrChanged):
			changed = append(changed, err)
		case err != nil:
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(changed...)
}

func (b *Box) markOne(ctx context.Context, to deadletter.State, id string) error {
	b.mu.Lock()
	from, seen := b.marks.from(id)
	b.mu.Unlock()
	statement, args := b.mark, []any{string(to), time.Now().UnixMicro(), b.by, key(id)}
	if seen {
		// The statement also accepts a mark of this box. If the answer to an earlier attempt was
		// lost, the current mark may come from that attempt.
		statement, args = b.markIf, append(args, from, b.by)
	}
	rows, err := b.exec(ctx, "marking dead letter "+id, statement, args...)
	if err != nil {
		return err
	}
	if rows == 0 && seen { // in MySQL this also happens if no column changed
		var state, by string
		err := b.db.QueryRowContext(ctx, b.look, key(id)).Scan(&state, &by)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("sqlletters: marking dead letter %s: %w", id, err)
		}
		if by != b.by || state != string(to) {
			return fmt.Errorf("%w: %s", deadletter.ErrChanged, id)
		}
	}
	b.note(id, b.by)
	return nil
}

func (b *Box) note(id, by string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.marks.note(id, by)
}

// Items reads several dead letters at a time. It holds no connection while they are handled. See
// [deadletter.Box].
func (b *Box) Items(ctx context.Context) iter.Seq2[deadletter.Item, error] {
	return func(yield func(deadletter.Item, error) bool) {
		b.mu.Lock()
		pass := b.marks.Begin()
		b.mu.Unlock()
		for last := int64(0); ; {
			rows, err := b.readPage(ctx, last)
			if err != nil {
				yield(deadletter.Item{}, err)
				return
			}
			for _, r := range rows {
				last = r.seq
				i, err := r.item()
				if err == nil {
					b.note(i.ID, r.by)
				}
				if !yield(i, err) {
					return
				}
			}
			if len(rows) < perPage {
				b.mu.Lock()
				b.marks.End(pass)
				b.mu.Unlock()
				return
			}
		}
	}
}

// row is a row of the table.
type row struct {
	seq, since int64
	state, by  string
	letter     []byte
}

func (b *Box) readPage(ctx context.Context, after int64) (page []row, err error) {
	rows, err := b.db.QueryContext(ctx, b.page, after)
	if err != nil {
		return nil, fmt.Errorf("sqlletters: reading: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err returns the error
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.seq, &r.state, &r.since, &r.by, &r.letter); err != nil {
			return nil, fmt.Errorf("sqlletters: reading: %w", err)
		}
		page = append(page, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("sqlletters: reading: %w", err)
	}
	return page, nil
}

// item returns the dead letter of a row.
func (r *row) item() (deadletter.Item, error) {
	l, err := deadletter.Parse(r.letter)
	if err != nil {
		return deadletter.Item{}, fmt.Errorf("sqlletters: row %d is not a dead letter: %w", r.seq, err)
	}
	i := deadletter.Item{Letter: l, State: deadletter.State(r.state)}
	switch i.State {
	case deadletter.Kept:
	case deadletter.Begun, deadletter.Done, deadletter.Dropped:
		i.Since = time.UnixMicro(r.since).UTC()
	default:
		return deadletter.Item{}, fmt.Errorf("sqlletters: row %d: its state is %.30q", r.seq, r.state)
	}
	return i, nil
}
