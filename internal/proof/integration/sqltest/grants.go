package sqltest

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/roles"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/sqlstore"
)

// securityPage is the path of the page with the documented grants. Tests run in the folders of
// their packages.
const securityPage = "../../../../docs/security.md"

var sqlBlock = regexp.MustCompile("(?s)```sql\n-- ([^\n]*)\n(.*?)```")

// Documented returns the statements of a block in docs/security.md. The first line of the block is
// the title as a comment.
func Documented(t testing.TB, title string) []string {
	t.Helper()
	page, err := os.ReadFile(securityPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range sqlBlock.FindAllStringSubmatch(string(page), -1) {
		if block[1] != title {
			continue
		}
		var statements []string
		for s := range strings.SplitSeq(block[2], ";") {
			if s = strings.TrimSpace(s); s != "" {
				statements = append(statements, s)
			}
		}
		return statements
	}
	t.Fatalf("%s has no block of SQL that begins with -- %s", securityPage, title)
	return nil
}

// The users on the page. Each must be able to make certain calls.
const (
	migrating = "weir_migrate"
	working   = "weir_worker"
	changing  = "weir_operator"
	looking   = "weir_look"
)

// grants checks that the documented grants are sufficient for each user, and that all of them are
// needed.
func grants(t *testing.T, s Server, _ *servers.Database) {
	d := s.Start(t) // the users of this server belong only to this test
	_, admin := s.Open(t, s.DSN(d, s.Home), sqlstore.Options{})
	admin.SetMaxOpenConns(1) // one connection only: one opened before the users exist may create them
	for _, statement := range s.Admin {
		Exec(t, admin, statement)
	}
	for _, user := range []string{migrating, working, changing, looking} {
		Exec(t, admin, "CREATE USER "+user)
	}
	dsn := s.Fresh(t, d)
	database := dsn[strings.LastIndex(dsn, "/")+1 : strings.LastIndex(dsn, "?")]
	_, owner := s.Open(t, dsn, sqlstore.Options{})
	for _, statement := range s.Closed {
		Exec(t, owner, statement)
	}
	as := func(user string) (*sqlstore.Store, *sql.DB) {
		return s.Open(t, strings.Replace(dsn, "weir@", user+"@", 1), sqlstore.Options{})
	}
	carryOut := func(title string) (granted []string) {
		for _, statement := range Documented(t, s.Page+", "+title) {
			statement = strings.ReplaceAll(statement, "shop.", database+".")
			Exec(t, owner, statement)
			granted = append(granted, apart(statement)...)
		}
		return granted
	}

	migrate, _ := as(migrating)
	if err := migrate.Migrate(t.Context()); !errors.Is(err, lease.ErrSetup) || !strings.Contains(err.Error(), "grant it") {
		t.Errorf("migrating without a grant: %v", err)
	}
	forMigrating := carryOut("who migrates")
	if err := migrate.Migrate(t.Context()); err != nil {
		t.Fatalf("migrating: %v", err)
	}
	given := carryOut("after \"weir store create\"")

	n := 0 // number of new tables or applications
	can := func(user, what string) error {
		n++
		name := fmt.Sprintf("%s%d", what, n)
		st, db := as(user) // a new connection sees the revocation
		defer db.Close()
		switch what {
		case working:
			return roles.Work(t.Context(), st, name)
		case changing:
			return roles.Change(t.Context(), st, name)
		case looking:
			return roles.Look(t.Context(), st, name)
		}
		st, err := sqlstore.New(db, sqlstore.Options{Dialect: s.Dialect, Prefix: fmt.Sprintf("m%d_", n)})
		if err != nil {
			return err
		}
		return st.Migrate(t.Context())
	}
	for user, less := range map[string][]string{migrating: nil, working: {changing}, changing: {working}, looking: {working, changing}} {
		if err := can(user, user); err != nil {
			t.Errorf("%s: %v", user, err)
		}
		for _, other := range less {
			if err := can(user, other); !errors.Is(err, lease.ErrSetup) {
				t.Errorf("%s may do what %s does: %v", user, other, err)
			}
		}
	}

	for _, grant := range slices.Concat(forMigrating, given) {
		fields := strings.Fields(grant)
		user := fields[len(fields)-1]
		Exec(t, owner, strings.Replace(strings.Replace(grant, "GRANT ", "REVOKE ", 1), " TO "+user, " FROM "+user, 1))
		if err := can(user, user); err == nil {
			t.Errorf("%q is one too many: %s needs no such thing", grant, user)
		}
		Exec(t, owner, grant)
	}
	for _, user := range []string{migrating, working, changing, looking} {
		if err := can(user, user); err != nil {
			t.Errorf("%s, when everything is granted again: %v", user, err)
		}
	}
}

var grantForm = regexp.MustCompile(`(?s)^GRANT\s+(.*?)\s+ON\s+(SCHEMA\s+)?(.*?)\s+TO\s+(.*)$`)

// apart splits a grant into grants of one privilege on one object to one user.
func apart(statement string) (each []string) {
	m := grantForm.FindStringSubmatch(statement)
	if m == nil {
		return nil
	}
	list := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(", \n", r) })
	}
	for _, user := range list(m[4]) {
		for _, on := range list(m[3]) {
			for _, privilege := range list(m[1]) {
				each = append(each, fmt.Sprintf("GRANT %s ON %s%s TO %s", privilege, m[2], on, user))
			}
		}
	}
	return each
}
