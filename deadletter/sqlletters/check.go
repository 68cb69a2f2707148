package sqlletters

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// ErrNoTable is returned by [Box.Readable] and [Box.Writable] if the table does not exist or is not
// visible to this user: [Box.Create] creates it.
var ErrNoTable = errors.New("sqlletters: there is no table for letters")

// Readable returns why letters cannot be read, so that the problem is found before they are needed.
func (b *Box) Readable(ctx context.Context) error {
	var state, by string
	err := b.db.QueryRowContext(ctx, b.look, key("")).Scan(&state, &by)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return missing("reading", err)
}

// Writable returns why letters cannot be written, read or marked, so that the problem is found
// before a record is at stake. It writes a row in a transaction, and rolls that back.
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
	id := key(rand.Text()) // a concurrent check does not wait for it
	if _, err := tx.ExecContext(ctx, b.put, id, []byte("{}")); err != nil {
		return missing("writing a row", err)
	}
	if _, err := tx.ExecContext(ctx, b.mark, "dropped", 0, b.by, id); err != nil {
		return missing("changing a row", err)
	}
	var state, by string
	return missing("reading a row", tx.QueryRowContext(ctx, b.look, id).Scan(&state, &by))
}

// missing returns [ErrNoTable] if an error of one of the three databases is about the table.
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
