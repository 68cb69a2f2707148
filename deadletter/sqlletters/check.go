package sqlletters

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// ErrNoTable is returned by [Box.Readable] and [Box.Writable] if the table does not exist, or if
// this user cannot see it. [Box.Migrate] creates the table.
var ErrNoTable = errors.New("sqlletters: there is no table for dead letters")

// Readable returns an error if dead letters cannot be read. Call it early to find such problems.
func (b *Box) Readable(ctx context.Context) error {
	var state, by string
	err := b.db.QueryRowContext(ctx, b.look, key("")).Scan(&state, &by)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return missing("reading", err)
}

// Writable returns an error if dead letters cannot be written, read or marked. Call it at the
// start, before a record depends on the table. It writes a row in a transaction and rolls the
// transaction back.
func (b *Box) Writable(ctx context.Context) (err error) {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return missing("beginning a transaction", err)
	}
	defer func() {
		if undone := tx.Rollback(); err == nil {
			err = missing("rolling back a test row", undone)
		}
	}()
	id := key(rand.Text()) // concurrent checks then do not wait for each other
	if _, err := tx.ExecContext(ctx, b.put, id, []byte("{}")); err != nil {
		return missing("writing a row", err)
	}
	if _, err := tx.ExecContext(ctx, b.mark, "dropped", 0, b.by, id); err != nil {
		return missing("changing a row", err)
	}
	var state, by string
	return missing("reading a row", tx.QueryRowContext(ctx, b.look, id).Scan(&state, &by))
}

// missing returns [ErrNoTable] if one of the databases reports that the table does not exist.
func missing(what string, err error) error {
	if err == nil {
		return nil
	}
	for _, text := range []string{"SQLSTATE 42P01", "Error 1146", "no such table"} {
		if strings.Contains(err.Error(), text) {
			return fmt.Errorf("%w: %w", ErrNoTable, err)
		}
	}
	return fmt.Errorf("sqlletters: %s: %w", what, err)
}
