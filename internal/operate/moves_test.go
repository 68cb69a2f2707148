package operate

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-go/weir/store/memstore"
)

func TestMovesAreRememberedByApplicationAndTable(t *testing.T) {
	store, ctx := memstore.New(), t.Context()
	at := time.UnixMilli(1_770_000_000_000)
	for _, m := range []struct {
		app string
		Move
	}{
		{"a", Move{"kcl", "t2", 5, at}}, {"a", Move{"kcl", "t1", 1 << 63, at}}, {"b", Move{"kcl", "t1", 7, at}},
		{"a", Move{"kcl", "t2", 6, at.Add(time.Second)}}, // once more
	} {
		if err := Remember(ctx, store, m.app, m.Move); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Moves(ctx, store, "a")
	if want := []Move{{"kcl", "t1", 0, at}, {"kcl", "t2", 6, at.Add(time.Second)}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if err := Forget(ctx, store, "a", "kcl", "t1"); err != nil {
		t.Fatal(err)
	}
	if got, _ = Moves(ctx, store, "a"); len(got) != 1 || got[0].Table != "t2" {
		t.Errorf("after one is forgotten: %v", got)
	}
	if err := Forget(ctx, store, "a", "", ""); err != nil {
		t.Fatal(err)
	}
	if got, _ = Moves(ctx, store, "a"); len(got) != 0 {
		t.Errorf("after all are forgotten: %v", got)
	}
	if got, _ = Moves(ctx, store, "b"); len(got) != 1 {
		t.Errorf("of another application: %v", got)
	}
	if names, err := store.Apps(ctx); err != nil || !slices.Equal(Apps(names), []string{}) {
		t.Errorf("%v, %v", names, err)
	}
}
