package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-go/weir/internal/sqltable"
	"github.com/weir-go/weir/lease"
)

// The table of the schema's version has one row.
const (
	makeVersions  = "CREATE TABLE IF NOT EXISTS {schema} (version INTEGER NOT NULL PRIMARY KEY)"
	probeVersions = "SELECT version FROM {schema} WHERE 1 = 0"
	readVersion   = "SELECT version FROM {schema}"
	setVersion    = "UPDATE {schema} SET version = "
	insertVersion = "INSERT INTO {schema} (version) VALUES (0)"
)

// Schema returns the statements that make the tables of the current version in an empty database,
// for people who let nobody but themselves change a schema. On SQLite, also run PRAGMA journal_mode
// = WAL.
func (s *Store) Schema() string {
	var b strings.Builder
	for _, step := range s.dialect.schema {
		for _, statement := range step {
			b.WriteString(s.named(statement) + ";\n")
		}
	}
	fmt.Fprintf(&b, "%s;\n%s;\n", s.named(strings.Replace(makeVersions, " IF NOT EXISTS", "", 1)),
		s.named(strings.Replace(insertVersion, "(0)", fmt.Sprintf("(%d)", s.version()), 1)))
	return b.String()
}

// SchemaSince returns the statements that bring tables of an older version, from 1 on, up to date,
// for the same people as Schema. To run them once more does no harm, though the database may say
// that a column is there. Workers that run need not stop.
func (s *Store) SchemaSince(version int) (string, error) {
	if version < 1 || int64(version) >= s.version() {
		return "", fmt.Errorf("sqlstore: there are no tables of version %d that could be brought to version %d: want 1 to %d", version, s.version(), s.version()-1)
	}
	var b strings.Builder
	for _, step := range s.dialect.schema[version:] {
		for _, statement := range step {
			b.WriteString(s.named(statement) + ";\n")
		}
	}
	fmt.Fprintf(&b, "%s%d;\n", s.named(setVersion), s.version())
	return b.String(), nil
}

// version is that of the schema which this code knows.
func (s *Store) version() int64 { return int64(len(s.dialect.schema)) }

// generation is how many versions get on with each other: programs that know one of 1 to 99 work
// with the tables of any later one of these, as an older worker has to that starts again in the
// middle of an upgrade. So a step within a generation only adds, and what it adds has a default
// that suits rows of programs that do not know it.
const generation = 100

// suits says that tables of a version have all that a program needs which knows another.
func suits(tables, known int64) bool { return tables >= known && tables/generation == known/generation }

// Migrate makes the tables, or brings those of an older version up to date, in one transaction; the
// table of the version is made before. It is never run unasked. Where there is nothing to do it
// does nothing; several may run it at once.
// It fails with an error that wraps [lease.ErrSetup] if tables of these names belong to somebody
// else, or were made by a version of weir that is so much newer that the two cannot share them.
// Tables that are newer and suit this version stay as they are.
func (s *Store) Migrate(ctx context.Context) error {
	if err := s.insist(ctx, s.makeVersions); err != nil {
		return err
	}
	err := s.transact(ctx, "", true, func(t *tx) error {
		done, err := t.migrateAlone()
		if err != nil {
			return err
		}
		defer done()
		version, there, err := t.schemaVersion()
		if err != nil {
			return err
		}
		if version > s.version() && !suits(version, s.version()) {
			return s.tooNew(version)
		}
		if !there {
			if _, err := t.exec(insertVersion); err != nil {
				return err
			}
		}
		for i := version; i < s.version(); i++ {
			for _, statement := range s.dialect.schema[i] {
				_, err := t.exec(statement)
				if err != nil && s.dialect.repeated != nil && s.dialect.repeated(err) {
					continue
				}
				if err != nil {
					return fmt.Errorf("sqlstore: while making version %d of the tables: %w", i+1, err)
				}
			}
		}
		if _, err = t.exec(setVersion + fmt.Sprint(max(version, s.version()))); err != nil || !s.dialect.server {
			return err
		}
		return t.probe()
	})
	if sqltable.Mentions(err, "already exists") {
		err = fmt.Errorf("%w: the database has tables of these names that weir did not make: choose another Options.Prefix than %q (%w)",
			lease.ErrSetup, s.prefix, err)
	}
	return err
}

// makeVersions makes the table of the schema's version. It is outside of the transaction of
// Migrate, because in Postgres one of several that make a table at once gets an error.
func (s *Store) makeVersions(ctx context.Context) error {
	if s.file != nil {
		if err := s.file.look(); err != nil {
			return err
		}
	}
	return s.onConn(ctx, func(c *sql.Conn) error {
		if s.dialect.prepare != nil {
			if err := s.dialect.prepare(ctx, c); err != nil {
				return err
			}
		}
		return sqltable.Make(ctx, c, s.named(makeVersions), s.named(probeVersions))
	})
}

// migrateAlone makes others who migrate these tables wait until done.
func (t *tx) migrateAlone() (done func(), err error) {
	none := func([]any) error { return nil }
	if t.dialect.migrating != "" {
		err = t.query(t.dialect.migrating, 1, func(values []any) error {
			if d := (decoder{row: values}); t.dialect.migrated != "" && d.integer("lock") != 1 {
				return errors.New("sqlstore: somebody else is migrating these tables and does not come to an end")
			}
			return nil
		}, t.prefix)
	}
	return func() {
		if t.dialect.migrated != "" {
			_ = t.query(t.dialect.migrated, 1, none, t.prefix)
		}
	}, err
}

// probe makes sure that the tables are those that were made, and not ones of somebody else that
// were there before.
func (t *tx) probe() error {
	for _, q := range [...]string{
		"SELECT " + leaseColumns + ", app, place FROM {leases} WHERE 1 = 0",
		"SELECT " + sessionColumns + ", app FROM {sessions} WHERE 1 = 0",
		"SELECT app, leader, term, revision, token, paused FROM {applications} WHERE 1 = 0",
	} {
		if err := t.query(q, strings.Count(q, ",")+1, func([]any) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// schemaVersion reads the version of the tables, 0 if there is none.
func (t *tx) schemaVersion() (version int64, there bool, err error) {
	err = t.query(readVersion, 1, func(values []any) error {
		d := decoder{row: values}
		version, there = max(version, d.integer("version")), true
		if d.err == nil && version < 0 {
			d.fail("version", fmt.Errorf("%d is below zero", version))
		}
		if d.err != nil {
			return fmt.Errorf("%w: the row of %s is not to be understood: %w", lease.ErrSetup, t.named("{schema}"), d.err)
		}
		return nil
	})
	return version, there, err
}

// checkVersion makes sure that the tables are those that this code knows, or newer ones that suit
// it.
func (t *tx) checkVersion() error {
	version, _, err := t.schemaVersion()
	switch {
	case err != nil:
		return err
	case suits(version, t.version()):
		return nil
	case version > t.version():
		return t.tooNew(version)
	default:
		return fmt.Errorf("%w: the tables have version %d, this program needs %d: call Migrate once%s", lease.ErrSetup, version, t.version(), t.byHand(version))
	}
}

// byHand says what to do instead of calling Migrate.
func (s *Store) byHand(version int64) string {
	if version < 1 {
		return ", or run the statements that Schema returns"
	}
	return fmt.Sprintf(", or run the statements that SchemaSince(%d) returns", version)
}

func (s *Store) tooNew(version int64) error {
	return fmt.Errorf("sqlstore: %w", lease.NewerFormat(fmt.Sprintf("the tables have version %d, and this program works with versions %d to %d",
		version, s.version(), s.version()/generation*generation+generation-1)))
}
