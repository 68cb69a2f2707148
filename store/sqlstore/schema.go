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

// The schema's version is stored in a table with one row.
const (
	makeVersions  = "CREATE TABLE IF NOT EXISTS {schema} (version INTEGER NOT NULL PRIMARY KEY)"
	probeVersions = "SELECT version FROM {schema} WHERE 1 = 0"
	readVersion   = "SELECT version FROM {schema}"
	setVersion    = "UPDATE {schema} SET version = "
	insertVersion = "INSERT INTO {schema} (version) VALUES (0)"
)

// Schema returns the statements that create the tables of the current version in an empty database.
// They are for administrators who do not allow programs to change a schema. On SQLite, also run
// PRAGMA journal_mode = WAL.
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

// SchemaSince returns the statements that upgrade tables of an older version, for the same purpose
// as Schema. The first version is 1. It is harmless to run the statements again, though the
// database may report an existing column. Running workers need not stop.
func (s *Store) SchemaSince(version int) (string, error) {
	if version < 1 || int64(version) >= s.version() {
		return "", fmt.Errorf("sqlstore: tables of version %d cannot be upgraded to version %d: want 1 to %d", version, s.version(), s.version()-1)
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

// version returns the version of the schema that this code uses.
func (s *Store) version() int64 { return int64(len(s.dialect.schema)) }

// generation is the number of compatible versions. Programs that use one of the versions 1 to 99
// work with the tables of any later version in that range. This is necessary because an older
// worker may restart during an upgrade. A step within a generation only adds columns or tables. The
// defaults of new columns must be right for rows that older programs write.
const generation = 100

// suits reports whether tables of one version are sufficient for a program of another version.
func suits(tables, known int64) bool { return tables >= known && tables/generation == known/generation }

// Migrate creates the tables, or upgrades tables of an older version, in one transaction. Before
// that transaction, it creates the table that contains the version. It does nothing if the tables
// are up to date.
//
// It may be repeated, and any number of processes may call it at the same time. No other function
// of the library calls it. It needs permissions to create and change tables, which workers and
// operators do not need: call it when a program is deployed, as a separate user.
//
// The error wraps [lease.ErrSetup] if tables with these names belong to another program. The error
// also wraps [lease.ErrSetup] if a much newer version of weir created the tables, and this version
// cannot use them. Migrate does not change newer tables that this version can use.
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

// makeVersions creates the table with the schema's version. This is not part of the transaction of
// Migrate: if several connections create a table at the same time, Postgres returns an error to one
// of them.
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

// migrateAlone makes concurrent migrations of these tables wait until done is called, or until the
// transaction ends.
func (t *tx) migrateAlone() (done func(), err error) {
	none := func([]any) error { return nil }
	if t.dialect.migrating != "" {
		err = t.query(t.dialect.migrating, 1, func(values []any) error {
			if d := (decoder{row: values}); t.dialect.migrated != "" && d.integer("lock") != 1 {
				return errors.New("sqlstore: another process is still migrating these tables")
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

// probe checks that the tables are weir's, and not tables of another program with the same names.
func (t *tx) probe() error {
	for _, q := range [...]string{
		"SELECT " + leaseColumns + ", app, place FROM {leases} WHERE 1 = 0",
		"SELECT " + sessionColumns + ", app FROM {sessions} WHERE 1 = 0",
		"SELECT app, leader, term, revision, token, paused, pause_notes FROM {applications} WHERE 1 = 0",
	} {
		if err := t.query(q, strings.Count(q, ",")+1, func([]any) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// schemaVersion reads the version of the tables. It returns 0 if there is none.
func (t *tx) schemaVersion() (version int64, there bool, err error) {
	err = t.query(readVersion, 1, func(values []any) error {
		d := decoder{row: values}
		version, there = max(version, d.integer("version")), true
		if d.err == nil && version < 0 {
			d.fail("version", fmt.Errorf("%d is below zero", version))
		}
		if d.err != nil {
			return fmt.Errorf("%w: the row of %s is invalid: %w", lease.ErrSetup, t.named("{schema}"), d.err)
		}
		return nil
	})
	return version, there, err
}

// checkVersion checks that the version of the tables is the version of this code, or a newer
// version that suits this code.
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

// byHand returns a text with the alternative to calling Migrate.
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
