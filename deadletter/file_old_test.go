package deadletter_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/oldletters"
)

// A worker and a command of an earlier version write to the file together with this version.
func TestAFileThatAnEarlierVersionWritesToAsWell(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters")
	b := deadletter.File(path)
	old := func(line string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
		if err == nil {
			_, err = f.WriteString(line + "\n")
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
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
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("%q, want %q", got, want)
		}
	}
	old(oldletters.Text)
	states(oldletters.ID + " kept")
	if err := b.Put(t.Context(), []deadletter.Letter{now}); err != nil {
		t.Fatal(err)
	}
	old(`{"weir_letter":1,"state":"begun","since":"2026-11-23T01:02:06.000000001Z","by":"old","ids":["` + now.ID + `"],"from":{"state":""}}`)
	states(oldletters.ID+" kept", now.ID+" begun")
	old(`{"weir_letter":1,"state":"done","since":"2026-11-23T01:02:07Z","by":"old","ids":["` + now.ID + `"],` +
		`"from":{"state":"begun","since":"2026-11-23T01:02:06.000000001Z","by":"old"}}`)
	if err := b.Mark(t.Context(), deadletter.Dropped, oldletters.ID); err != nil {
		t.Error(err)
	}
	if err := b.Mark(t.Context(), deadletter.Dropped, now.ID); !errors.Is(err, deadletter.ErrChanged) {
		t.Errorf("%v", err)
	}
	states(oldletters.ID+" dropped", now.ID+" done")
	old(oldletters.Text) // dead-lettered again
	states(now.ID+" done", oldletters.ID+" kept")
}
