package sqlletters

import (
	"database/sql"
	"strings"
	"testing"
)

func TestWhatNewRefuses(t *testing.T) {
	db := new(sql.DB)
	for want, row := range map[string]struct {
		db    *sql.DB
		d     Dialect
		table string
	}{
		"the database is nil":       {nil, SQLite, ""},
		"there is no dialect 0":     {db, 0, ""},
		"there is no dialect 4":     {db, 4, ""},
		`named "a b": use a-z`:      {db, MySQL, "a b"},
		`named "s.letters"`:         {db, Postgres, "s.letters"},
		`named "1"`:                 {db, SQLite, "1"},
		"48 characters at most":     {db, SQLite, strings.Repeat("x", 49)},
		`named "a\"; DROP TABLE b"`: {db, SQLite, `a"; DROP TABLE b`},
	} {
		if b, err := New(row.db, row.d, row.table); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", want, b, err)
		}
	}
}

func TestStatements(t *testing.T) {
	for d, want := range map[Dialect]string{SQLite: "ON CONFLICT (id)", Postgres: "VALUES ($1, 'kept', 0, '', $2) ON CONFLICT (id)", MySQL: "ON DUPLICATE KEY"} {
		for _, table := range []string{"", "mine"} {
			b, err := New(new(sql.DB), d, table)
			if err != nil {
				t.Fatal(err)
			}
			if table == "" {
				table = DefaultTable
			}
			if !strings.HasPrefix(b.Schema(), "CREATE TABLE IF NOT EXISTS "+table+" (") || !strings.Contains(b.put, "INSERT INTO "+table+" (") || !strings.Contains(b.put, want) {
				t.Errorf("%s\n%s", b.Schema(), b.put)
			}
		}
	}
}
