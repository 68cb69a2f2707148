package serverstore

import (
	"errors"
	"fmt"
	"io"

	"github.com/weir-go/weir/deadletter/sqlletters"
	"github.com/weir-go/weir/store/sqlstore"
)

// Letters contains dead letters in a table of a server. Close it after the last use.
type Letters struct {
	*sqlletters.Box
	io.Closer
}

// CheckLetters returns an error if dead letters cannot be kept at the parsed place.
func (p Place) CheckLetters() error {
	switch {
	case p.dialect == 0:
		return fmt.Errorf("%s is not a place for dead letters: use a Postgres, MySQL or MariaDB server", p.url.Scheme)
	case p.schema != "" && p.dialect == sqlstore.Postgres:
		return errors.New("weir_schema does not apply to dead letters: choose the schema of their table with search_path=SCHEMA")
	case p.schema != "":
		return errors.New("weir_schema does not apply to dead letters: name the database of their table in the path")
	}
	return nil
}

// Letters returns the dead letters in the table weir_letters. If weir_prefix is set, it
// replaces weir_ in the name. Letters does not call the server.
func (p Place) Letters() (*Letters, error) {
	if err := p.CheckLetters(); err != nil {
		return nil, err
	}
	db, err := p.openSQL()
	if err != nil {
		return nil, err
	}
	dialect, table := sqlletters.MySQL, ""
	if p.dialect == sqlstore.Postgres {
		dialect = sqlletters.Postgres
	}
	if p.prefix != "" {
		table = p.prefix + "letters"
	}
	box, err := sqlletters.New(db, dialect, table)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Letters{box, db}, nil
}
