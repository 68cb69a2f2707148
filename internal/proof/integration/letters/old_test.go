package letters_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/deadletter/sqlletters"
	"github.com/weir-go/weir/internal/proof/oldletters"
)

// These are the exact statements of versions whose dead letter IDs did not contain the application.
const (
	oldPut     = "INSERT INTO shared (id, state, since, marked_by, letter) VALUES (?, 'kept', 0, '', ?) "
	oldUpsert  = "ON CONFLICT (id) DO UPDATE SET state = excluded.state, since = 0, marked_by = '', letter = excluded.letter"
	oldMySQL   = "ON DUPLICATE KEY UPDATE state = VALUES(state), since = 0, marked_by = '', letter = VALUES(letter)"
	oldPage    = "SELECT seq, state, since, marked_by, letter FROM shared WHERE seq > ? ORDER BY seq LIMIT 8"
	oldLook    = "SELECT state, marked_by FROM shared WHERE id = ?"
	oldMark    = "UPDATE shared SET state = ?, since = ?, marked_by = ? WHERE id = ?"
	oldMarkIf  = "UPDATE shared SET state = ?, since = ?, marked_by = ? WHERE id = ? AND (marked_by = ? OR marked_by = ?)"
	oldMarker  = "OLDOLDOLDOLDOLDOLDOLDOLDOL"
	oldInstant = 1795395726000000
)

// oldWorker runs the old statements in the dialect of a database.
type oldWorker struct {
	db *sql.DB
	d  sqlletters.Dialect
}

func (w *oldWorker) statement(text string) string {
	if text == oldPut && w.d == sqlletters.MySQL {
		text += oldMySQL
	} else if text == oldPut {
		text += oldUpsert
	}
	if w.d != sqlletters.Postgres {
		return text
	}
	parts := strings.Split(text, "?")
	for i := range parts[1:] {
		parts[i] += fmt.Sprintf("$%d", i+1)
	}
	return strings.Join(parts, "")
}

func (w *oldWorker) do(t *testing.T, rows int64, statement string, args ...any) {
	t.Helper()
	done, err := w.db.ExecContext(t.Context(), w.statement(statement), args...)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if n, err := done.RowsAffected(); err != nil || rows >= 0 && n != rows {
		t.Errorf("%s: %d rows, want %d, %v", statement, n, rows, err)
	}
}

// page returns the number of dead letters that a command of the old version lists.
func (w *oldWorker) page(t *testing.T) (n int) {
	t.Helper()
	rows, err := w.db.QueryContext(t.Context(), w.statement(oldPage), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var seq, since int64
		var state, by string
		var letter []byte
		if err := rows.Scan(&seq, &state, &since, &by, &letter); err != nil {
			t.Fatal(err)
		}
		n++
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// earlierVersion uses the table of a box like a worker and a command of an earlier version.
func earlierVersion(t *testing.T, b *sqlletters.Box, db *sql.DB, d sqlletters.Dialect) {
	w := oldWorker{db, d}
	now, err := deadletter.Parse([]byte(oldletters.Text))
	if err != nil {
		t.Fatal(err)
	}
	now.ID = deadletter.ID(now.App, now.RecordID())
	states := func(want ...string) {
		t.Helper()
		var got []string
		for i, err := range b.Items(t.Context()) {
			if err != nil || i.App != oldletters.App || i.RecordID() != oldletters.ID || string(i.Data) != "record 1" {
				t.Errorf("%+v, %v", i, err)
			}
			got = append(got, i.ID+" "+string(i.State))
		}
		if strings.Join(got, ", ") != strings.Join(want, ", ") || w.page(t) != len(want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	w.do(t, 1, oldPut, oldletters.Hash, []byte(oldletters.Text))
	if err := b.Put(t.Context(), []deadletter.Letter{now}); err != nil {
		t.Fatal(err)
	}
	states(oldletters.ID+" kept", now.ID+" kept")
	if err := b.Mark(t.Context(), deadletter.Begun, oldletters.ID, now.ID); err != nil {
		t.Fatal(err)
	}
	w.do(t, 0, oldMarkIf, "begun", oldInstant, oldMarker, oldletters.Hash, "", oldMarker) // takes the dead letter
	w.do(t, -1, oldPut, oldletters.Hash, []byte(oldletters.Text))                         // dead-lettered again
	if err := b.Mark(t.Context(), deadletter.Done, oldletters.ID, now.ID); !errors.Is(err, deadletter.ErrChanged) ||
		strings.Contains(err.Error(), deadletter.ID(now.App, "")) {
		t.Errorf("%v", err)
	}
	states(oldletters.ID+" kept", now.ID+" done")
	w.do(t, 1, oldMark, "dropped", oldInstant, oldMarker, oldletters.Hash)
	var state, by string
	if err := db.QueryRowContext(t.Context(), w.statement(oldLook), oldletters.Hash).Scan(&state, &by); err != nil || state != "dropped" || by != oldMarker {
		t.Errorf("%q by %q, %v", state, by, err)
	}
	states(oldletters.ID+" dropped", now.ID+" done")
}
