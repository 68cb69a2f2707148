package deadletter_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/weir-go/weir/deadletter"
)

// remembered returns the number of entries in all maps of a box.
func remembered(b deadletter.Box) int {
	var count func(v reflect.Value) int
	count = func(v reflect.Value) (n int) {
		switch v.Kind() {
		case reflect.Map:
			return v.Len()
		case reflect.Struct:
			for i := range v.NumField() {
				n += count(v.Field(i))
			}
		}
		return n
	}
	return count(reflect.ValueOf(b).Elem())
}

// A box that exists for a long time must not remember every dead letter that it has put or yielded.
func TestAFileRemembersNoMoreThanTheMarksInIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters")
	b := deadletter.File(path)
	var ns []int
	for n := range 100 {
		ns = append(ns, n)
	}
	for round := range 3 {
		put(t, b, ns...)
		items(t, b)
		if n := remembered(b); n != 0 && round == 0 {
			t.Errorf("%d dead letters are remembered, none of which is marked", n)
		}
		mark(t, b, deadletter.Begun, ns[:10]...)
		mark(t, b, deadletter.Done, ns[:10]...)
		mark(t, deadletter.File(path), deadletter.Dropped, ns[10:20]...)
		if all, _ := items(t, b); len(all) != len(ns) {
			t.Errorf("%d letters", len(all))
		}
		if n := remembered(b); n > 20 {
			t.Errorf("%d dead letters are remembered, of which 20 are marked", n)
		}
		if err := os.Rename(path, path+".old"); err != nil { // the dead letters are moved away
			t.Fatal(err)
		}
		for i := range ns {
			ns[i] += 100
		}
		if round == 2 {
			put(t, b, ns[0])
			items(t, b)
			if n := remembered(b); n != 0 {
				t.Errorf("%d dead letters of files that were put away are remembered", n)
			}
		}
	}
}

// If two boxes have yielded a dead letter without a mark, only one of them can mark it. This must
// work although boxes do not remember such dead letters individually.
func TestAMarkByAnotherBoxIsNoticedForALetterThatWasYieldedUnmarked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters")
	b, other := deadletter.File(path), deadletter.File(path)
	put(t, b, 1, 2, 3, 4)
	items(t, b)
	mark(t, other, deadletter.Begun, 1, 2)
	for i, err := range b.Items(t.Context()) {
		if err != nil || i.ID != letter(1).ID {
			t.Errorf("%+v, %v", i, err)
		}
		break // the box yields no further dead letter
	}
	mark(t, b, deadletter.Dropped, 1)
	for range 2 {
		err := b.Mark(t.Context(), deadletter.Begun, letter(2).ID)
		if !errors.Is(err, deadletter.ErrChanged) {
			t.Errorf("%v", err)
		}
	}
	mark(t, b, deadletter.Begun, 3)
	put(t, other, 3) // dead-lettered again while it is handled
	items(t, other)
	mark(t, other, deadletter.Begun, 3)
	mark(t, other, deadletter.Kept, 3)
	if err := b.Mark(t.Context(), deadletter.Done, letter(3).ID); !errors.Is(err, deadletter.ErrChanged) {
		t.Errorf("%v", err)
	}
	items(t, b)
	mark(t, b, deadletter.Begun, 2, 3)
}

// A box detects that the file was edited, even if the file did not get smaller.
func TestItemsOfAFileThatWasChangedByHand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters")
	b := deadletter.File(path)
	put(t, b, 1)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mark(t, b, deadletter.Dropped, 1)
	items(t, b)
	if err := os.WriteFile(path, append(before, "\n\n\n"+string(make([]byte, 300))+"\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, _ := items(t, b); len(all) != 1 || all[0] != "1 kept" {
		t.Errorf("%q", all)
	}
}
