package s3letters_test

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/fakes3"
	"github.com/weir-go/weir/internal/proof/oldletters"
)

// A worker and a command of an earlier version write to the same bucket as this version.
func TestABucketThatAnEarlierVersionWritesToAsWell(t *testing.T) {
	bucket := fakes3.New()
	b := box(t, bucket)
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
	bucket.Put("dead/"+oldletters.Key, []byte(oldletters.Text))
	states(oldletters.ID + " kept")
	if err := b.Put(t.Context(), []deadletter.Letter{now}); err != nil {
		t.Fatal(err)
	}
	states(now.ID+" kept", oldletters.ID+" kept")
	if err := b.Mark(t.Context(), deadletter.Begun, oldletters.ID, now.ID); err != nil {
		t.Error(err)
	}
	states(now.ID+" begun", oldletters.ID+" begun")
	bucket.Put("dead/"+oldletters.Key, []byte(oldletters.Text)) // dead-lettered again
	if err := b.Mark(t.Context(), deadletter.Done, now.ID); err != nil {
		t.Error(err)
	}
	states(now.ID+" done", oldletters.ID+" kept")
	// The command of the earlier version marks a dead letter in the new format, and keeps its key.
	bucket.Put("dead/"+now.ID+".json", []byte(strings.TrimSuffix(strings.Replace(oldletters.Text, oldletters.ID, now.ID, 1), "}")+
		`,"state":"dropped","since":"2026-11-23T01:02:06Z","marked_by":"old"}`))
	states(now.ID+" dropped", oldletters.ID+" kept")
}
