// Package sqltable contains the code that stores, sinks and dead letters in SQL databases share. It
// creates tables, safely while other processes create the same ones, numbers parameters, and reads
// the codes of errors.
package sqltable

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// tries limits how often a table is created again after a collision. Each collision means that
// another process made progress.
const tries = 5

// Database is a [*sql.DB] or a [*sql.Conn].
type Database interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Make creates a table with create, a CREATE TABLE IF NOT EXISTS. It returns nil if probe, a query
// that returns no rows, finds the table afterwards. An error of create alone is ignored: if several
// connections create a table at once, Postgres returns an error to one of them (SQLSTATE 42P07 or
// 23505), and a user without the permission can still find the table. It is safe to call
// concurrently. db must not be in a transaction, which a failure of create would end.
func Make(ctx context.Context, db Database, create, probe string) error {
	var err error
	for range tries {
		_, made := db.ExecContext(ctx, create)
		var found error
		if found = query(ctx, db, probe); found == nil {
			return nil
		}
		if made == nil {
			return found // the table is another program's
		}
		if err = fmt.Errorf("%w; %w", made, found); ctx.Err() != nil {
			break
		}
	}
	return err
}

func query(ctx context.Context, db Database, probe string) error {
	rows, err := db.QueryContext(ctx, probe)
	if err != nil {
		return err
	}
	return errors.Join(rows.Err(), rows.Close())
}
