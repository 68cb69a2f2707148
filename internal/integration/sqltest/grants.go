package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/integration/servers"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/sqlstore"
)

// securityPage has the grants that are documented. Tests run in the folders of their packages.
const securityPage = "../../../docs/security.md"

var sqlBlock = regexp.MustCompile("(?s)```sql\n-- ([^\n]*)\n(.*?)```")

// Documented are the statements of the block of docs/security.md whose first line is this comment.
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

// The users that the page names, and what each has to be able to do.
const (
	migrating = "weir_migrate"
	working   = "weir_worker"
	changing  = "weir_operator"
	looking   = "weir_look"
)

// grants holds the documented grants to be enough for each user, and none of them to be one too many.
func grants(t *testing.T, s Server, _ *servers.Database) {
	d := s.Start(t) // whose users are this test's alone
	_, admin := s.Open(t, s.DSN(d, s.Home), sqlstore.Options{})
	admin.SetMaxOpenConns(1) // whoever was let in before users counted may make them
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

	n := 0 // each time there are other tables to make, or another application
	can := func(user, what string) error {
		n++
		name := fmt.Sprintf("%s%d", what, n)
		st, db := as(user) // a new connection: what was revoked counts
		defer db.Close()
		switch what {
		case working:
			return work(t.Context(), st, name)
		case changing:
			return change(t.Context(), st, name)
		case looking:
			return look(t.Context(), st, name)
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

// apart is a grant as grants of one privilege on one thing to one user.
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

// work is what a worker does, which may lead: every method of the contract, and every kind of action that a leader plans.
func work(ctx context.Context, st *sqlstore.Store, app string) error {
	do := func(actions ...lease.Action) error {
		done, err := st.Apply(ctx, app, actions)
		if i := slices.Index(done, false); err == nil && i >= 0 {
			err = fmt.Errorf("%s did not take effect", actions[i])
		}
		return err
	}
	beat := func(r lease.Report) error { _, err := st.Beat(ctx, app, r); return err }
	fresh := func(id string) lease.Action {
		return lease.Action{Kind: lease.Create, Lease: lease.Lease{Key: Key(id), Epoch: 1, Position: shard.Oldest}}
	}
	of := func(kind lease.Kind, id string, epoch uint64, session string) lease.Action {
		return lease.Action{Kind: kind, Key: Key(id), Epoch: epoch, Session: session}
	}
	seq, err := shard.After("17")
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { _, err := st.View(ctx, app, ""); return err },
		func() error { return beat(lease.Report{Session: "a", First: true}) },
		func() error { return beat(lease.Report{Session: "b", First: true}) },
		func() error { return beat(lease.Report{Session: "c", First: true}) },
		func() error { _, err := st.Lead(ctx, app, "a", 0); return err },
		func() error { return do(fresh("1"), fresh("2"), fresh("3"), fresh("4")) },
		func() error {
			return do(of(lease.Assign, "1", 1, "a"), of(lease.Assign, "2", 1, "a"), of(lease.Assign, "3", 1, "a"), of(lease.Handoff, "2", 2, "b"))
		},
		func() error {
			return beat(lease.Report{Session: "a", Progress: []lease.Progress{{Key: Key("1"), Epoch: 2, Position: seq, Load: 9}, {Key: Key("2"), Epoch: 2, Release: true}}})
		},
		func() error {
			return beat(lease.Report{Session: "a", Progress: []lease.Progress{{Key: Key("1"), Epoch: 2, Position: seq, Load: 7}}})
		},
		func() error {
			return beat(lease.Report{Session: "a", Progress: []lease.Progress{{Key: Key("3"), Epoch: 2, Position: shard.End, Children: []shard.Shard{{ID: "5", Parents: []string{"3"}}}}}})
		},
		func() error {
			return do(of(lease.Revoke, "1", 2, ""), of(lease.Delete, "4", 1, ""), lease.Action{Kind: lease.Replace, Key: Key("5"), Epoch: 1, Lease: lease.Lease{Key: Key("5"), Epoch: 2}},
				lease.Action{Kind: lease.Birth, Key: Key("5"), Epoch: 2, Born: 1}, lease.Action{Kind: lease.EndSession, Session: "c", Beat: 1}, lease.Action{Kind: lease.Forget, Session: "c"})
		},
		func() error { return st.Leave(ctx, app, lease.Report{Session: "a"}) },
		func() error { return st.Leave(ctx, app, lease.Report{Session: "b"}) },
		func() error { _, err := st.View(ctx, app, ""); return err },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// change is what an operator does.
func change(ctx context.Context, st *sqlstore.Store, app string) error {
	if err := look(ctx, st, app); err != nil {
		return err
	}
	for _, a := range []lease.Action{
		{Kind: lease.Create, Lease: lease.Lease{Key: Key("1"), Epoch: 1}}, {Kind: lease.Move, Key: Key("1"), Epoch: 1, Position: shard.Oldest},
		{Kind: lease.Pause, Stream: "orders", On: true}, {Kind: lease.Drain, Session: "a", On: true},
	} {
		if _, err := st.Apply(ctx, app, []lease.Action{a}); err != nil {
			return err
		}
	}
	return st.Remove(ctx, app)
}

// look is what an operator does who may not change anything.
func look(ctx context.Context, st *sqlstore.Store, app string) error {
	if _, err := st.Apps(ctx); err != nil {
		return err
	}
	_, err := st.View(ctx, app, "")
	return err
}
