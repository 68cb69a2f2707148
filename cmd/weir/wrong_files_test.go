package main

import (
	"database/sql"

	"github.com/weir-go/weir/internal/wronginput"
)

// wrongFiles are SQLite files that are not what they should be.
func wrongFiles(p *wrongPlace) []wronginput.Input {
	use := func(path string) string { return "group describe --no-lag --watch 0 --app a --store sqlite:" + path }
	work := func(path string) string {
		return "consume --stream s --app a --store sqlite:" + path + " " + p.endpoint
	}

	foreign := p.path("foreign.db")
	p.sqlite(foreign, "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT)", "INSERT INTO customers VALUES (1, 'x')")
	return under("SQLite",
		fails("a file that is not there", use(p.path("none.db")), "there is no SQLite file", "none.db"),
		fails("a directory that is not there", work(p.path("none/x.db")), "there is no directory"),
		fails("a directory", work(p.dir), "is a directory"),
		fails("a file in a file", work(p.records+"/x.db"), "records"),
		fails("an empty file", use(p.file("empty.db", "")), "has no tables", "weir store create"),
		fails("a file with other tables", use(foreign), "foreign.db", "no tables"),
	)
}

// sqlite makes a SQLite file that weir did not make.
func (p *wrongPlace) sqlite(path string, statements ...string) {
	p.t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(p.t.Context(), s); err != nil {
			p.t.Fatal(err)
		}
	}
}
