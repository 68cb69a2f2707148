// Package sqltable makes tables, safely while other processes make the same ones.
package sqltable

import (
	"context"
	"database/sql"
	"errors"
)

// tries bounds how often a table is made again after a collision. Each collision means that another
// process made progress.
const tries = 5

// Make makes a table with create, a CREATE TABLE IF NOT EXISTS. It returns nil if probe, a query
// that returns no rows, finds the table afterwards, even if create failed: Postgres can refuse it
// while another process makes the table (SQLSTATE 42P07 or 23505), and users without the right to
// make tables may find one. It is safe to call concurrently.
func Make(ctx context.Context, db *sql.DB, create, probe string) error {
	var err error
	for range tries {
		_, made := db.ExecContext(ctx, create)
		var found error
		if found = query(ctx, db, probe); found == nil {
			return nil
		}
		if err = errors.Join(made, found); ctx.Err() != nil || made == nil {
			break // the table is another program's
		}
	}
	return err
}

func query(ctx context.Context, db *sql.DB, probe string) error {
	rows, err := db.QueryContext(ctx, probe)
	if err != nil {
		return err
	}
	return errors.Join(rows.Err(), rows.Close())
}
