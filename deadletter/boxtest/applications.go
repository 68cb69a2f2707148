package boxtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/weir-go/weir/deadletter"
)

// ofApp returns the dead letter of an application about record n.
func ofApp(app string, n int) deadletter.Letter {
	l := letter(n)
	l.App, l.ID, l.Error = app, deadletter.ID(app, l.RecordID()), "refused by "+app
	return l
}

// ofTwo returns dead letters of two applications about the same records. It also returns a dead
// letter of the old form, whose ID contains no application.
func ofTwo() []deadletter.Letter {
	old := letter(1)
	old.App = "one"
	return []deadletter.Letter{old, ofApp("one", 1), ofApp("one", 3), ofApp("two", 1), ofApp("two", 3)}
}

// Applications tests an empty destination. The destination must keep the dead letters of two
// applications about the same records separate, and accept a dead letter of the old form.
// Applications is for destinations that are not Boxes; [Run] includes this test. read returns the
// dead letters of the destination in any order. Dead letters that were put again may occur twice.
func Applications(t *testing.T, to deadletter.Destination, read func(context.Context) ([]deadletter.Item, error)) {
	t.Helper()
	want := map[string]deadletter.Letter{}
	for _, l := range ofTwo() {
		want[l.ID] = l
	}
	for _, some := range [][]deadletter.Letter{ofTwo(), ofTwo()[3:]} {
		if err := to.Put(t.Context(), some); err != nil {
			t.Fatal(err)
		}
	}
	items, err := read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, i := range items {
		if l := want[i.ID]; fmt.Sprintf("%+v", i.Letter) != fmt.Sprintf("%+v", l) {
			t.Errorf("%+v\nwant\n%+v", i.Letter, l)
		}
		got[i.ID] = true
	}
	if len(got) != len(want) {
		t.Errorf("%d letters, want %d: %v", len(got), len(want), got)
	}
}

// Two applications dead-letter the same records. Each has its own dead letters. A dead letter of
// one application does not change those of the other.
func applications(t *testing.T, open func() deadletter.Box) {
	Applications(t, open(), func(ctx context.Context) (items []deadletter.Item, err error) {
		return all(t, open()), nil
	})
	b, letters, states := open(), ofTwo(), map[string]deadletter.State{}
	read := func() {
		t.Helper()
		clear(states)
		for _, i := range all(t, b) {
			states[i.ID] = i.State
		}
		if len(states) != len(letters) {
			t.Errorf("%d letters, want %d: %v", len(states), len(letters), states)
		}
	}
	read()
	if err := b.Mark(t.Context(), begun, letters[1].ID); err != nil {
		t.Fatal(err)
	}
	// While the first application's dead letter is handled, those of the other application are put
	// again.
	if err := open().Put(t.Context(), letters[3:]); err != nil {
		t.Fatal(err)
	}
	if err := b.Mark(t.Context(), done, letters[1].ID); err != nil {
		t.Fatal(err)
	}
	read()
	for i, l := range letters {
		if want := map[bool]deadletter.State{true: done, false: kept}[i == 1]; states[l.ID] != want {
			t.Errorf("%s is %q, want %q", l.ID, states[l.ID], want)
		}
	}
}
