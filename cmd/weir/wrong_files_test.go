package main

import (
	"bytes"
	"database/sql"
	"os"
	"strings"

	"github.com/weir-go/weir/internal/proof/wronginput"
)

// wrongFiles returns inputs with SQLite files that weir did not create.
func wrongFiles(p *wrongPlace) []wronginput.Input {
	use := func(path string) string { return "group describe --no-lag --look 0 --app a --store sqlite:" + path }
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

// sqlite creates a SQLite file with the given statements.
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

// damagedFiles returns inputs with damaged SQLite files.
func damagedFiles(p *wrongPlace) []wronginput.Input {
	t := p.t
	use := func(path string) string { return "group describe --no-lag --look 0 --app a --store sqlite:" + path }
	work := func(path string) string {
		return "consume --stream s --app a --store sqlite:" + path + " " + p.endpoint
	}
	clashing := p.path("clashing.db")
	p.sqlite(clashing, "CREATE TABLE weir_leases (colour TEXT)", "INSERT INTO weir_leases VALUES ('red')")
	content, err := os.ReadFile(p.leases("whole.db"))
	if err != nil {
		t.Fatal(err)
	}
	cut := p.file("cut.db", string(content[:len(content)/2]))
	short := p.file("short.db", string(content[:50]))
	damaged := bytes.Clone(content)
	// Damage all pages except the first, which contains the names of the tables.
	for i := 4096; i < len(damaged); i++ {
		damaged[i] ^= 0x5a
	}
	pages := p.file("damaged.db", string(damaged))
	header := bytes.Clone(content)
	copy(header, "SQLite format 9\x00")
	text := p.file("text.db", strings.Repeat("no database at all\n", 500))
	return under("SQLite",
		fails("a file of text", work(text), "text.db", "not a SQLite database"),
		fails("a file of text that is looked at", use(text), "text.db", "not a SQLite database"),
		fails("a file of another version", work(p.file("header.db", string(header))), "header.db", "not a SQLite database"),
		fails("a table of others with our name", work(clashing), "clashing.db", "name another file"),
		fails("a file that was cut", work(cut), "cut.db", "damaged"),
		fails("a file that was cut and is looked at", use(cut), "cut.db", "damaged"),
		fails("a file that was cut in its first page", work(short), "short.db"),
		fails("a file with damaged pages", work(pages), "damaged.db", "damaged"),
		fails("a file with damaged pages that is looked at", use(pages), "damaged.db", "damaged"),
	)
}
