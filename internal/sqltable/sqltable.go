// Package sqltable contains the common code of stores, sinks and dead letters in SQL databases. It
// creates tables, even while other processes create the same tables. It numbers parameters and
// reads the codes of errors.
package sqltable

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// tries is the maximum number of attempts to create a table after collisions. Each collision means
// that another process made progress.
const tries = 5

// Database is a [*sql.DB] or a [*sql.Conn].
type Database interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Make creates a table with the statement create, which is a CREATE TABLE IF NOT EXISTS. It returns
// nil if probe then finds the table. probe is a query that returns no rows.
//
// Make ignores an error of create if probe succeeds. If several connections create a table at the
// same time, Postgres may return an error to some of them (SQLSTATE 42P07 or 23505). A user who may
// not create tables can also use an existing table. Make is safe to call concurrently. db must not
// be in a transaction, because in Postgres a failure of create would abort it.
func Make(ctx context.Context, db Database, create, probe string) error {
	var err error
	for range tries {
		_, made := db.ExecContext(ctx, create)
		var found error
		if found = query(ctx, db, probe); found == nil {
			return nil
		}
		if made == nil {
			return found // the table belongs to another program
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
