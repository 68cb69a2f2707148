package deadletter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/filled"
)

func letter(n int) deadletter.Letter {
	return deadletter.Letter{
		Version: deadletter.Version, ID: fmt.Sprintf("s/shardId-000000000000/%d", n), Stream: "s", Shard: "shardId-000000000000",
		Data: fmt.Append(nil, "record ", n), Reason: deadletter.Attempts, Attempts: 3, Error: "refused",
		GivenUp: time.Date(2026, 11, 23, 1, 2, n, 0, time.UTC),
	}
}

func put(t *testing.T, b deadletter.Box, ns ...int) {
	t.Helper()
	var letters []deadletter.Letter
	for _, n := range ns {
		letters = append(letters, letter(n))
	}
	if err := b.Put(t.Context(), letters); err != nil {
		t.Fatal(err)
	}
}

func mark(t *testing.T, b deadletter.Box, to deadletter.State, ns ...int) {
	t.Helper()
	var ids []string
	for _, n := range ns {
		ids = append(ids, letter(n).ID)
	}
	if err := b.Mark(t.Context(), to, ids...); err != nil {
		t.Fatal(err)
	}
}

// items returns the dead letters of a box, each as its number and state, and the errors.
func items(t *testing.T, b deadletter.Box) (all, failed []string) {
	t.Helper()
	for i, err := range b.Items(t.Context()) {
		if err != nil {
			failed = append(failed, err.Error())
			continue
		}
		all = append(all, strings.TrimPrefix(i.ID, "s/shardId-000000000000/")+" "+string(i.State))
		if string(i.Data) != "record "+i.ID[strings.LastIndex(i.ID, "/")+1:] || i.Since.IsZero() != (i.State == deadletter.Kept) {
			t.Errorf("%+v", i)
		}
	}
	return all, failed
}

func TestAFileKeepsLettersAndWhatBecameOfThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters")
	b := deadletter.File(path)
	if all, failed := items(t, b); len(all)+len(failed) > 0 {
		t.Errorf("at first: %q, %q", all, failed)
	}
	put(t, b, 1, 2)
	put(t, b, 3)
	mark(t, b, deadletter.Begun, 1)
	mark(t, b, deadletter.Done, 1)
	mark(t, b, deadletter.Dropped, 3)
	put(t, b, 2) // again, by a worker that did not know about the mark
	put(t, b, 4)
	mark(t, b, deadletter.Begun, 4)
	if all, failed := items(t, b); !slices.Equal(all, []string{"1 done", "3 dropped", "2 kept", "4 begun"}) || len(failed) > 0 {
		t.Errorf("%q, %q", all, failed)
	}
	put(t, b, 1) // dead-lettered again
	if all, _ := items(t, deadletter.File(path)); !slices.Equal(all, []string{"3 dropped", "2 kept", "4 begun", "1 kept"}) {
		t.Errorf("%q", all)
	}
	if i, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && i.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", i.Mode(), err)
	}
	if err := b.Mark(t.Context(), "lost", "x"); err == nil {
		t.Error("a state that there is not")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if err := errors.Join(b.Put(ctx, nil), b.Mark(ctx, deadletter.Done)); err == nil || strings.Count(err.Error(), "enough") != 2 {
		t.Errorf("after the end: %v", err)
	}
	for _, err := range b.Items(ctx) {
		if err == nil || err.Error() != "enough" {
			t.Errorf("after the end: %v", err)
		}
	}
}

// The form of a dead letter is documented. The test converts every field to JSON and back.
func TestALetterAsJSON(t *testing.T) {
	all := filled.Value[deadletter.Letter](t)
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	var back deadletter.Letter
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if again, _ := json.Marshal(back); string(again) != string(text) {
		t.Errorf("%s\n%s", text, again)
	}
	for _, name := range []string{
		"weir_letter", "id", "stream", "shard", "sequence_number", "position", "partition_key", "arrived", "data", "app", "worker", "epoch",
		"given_up", "reason", "attempts", "first_failure", "last_failure", "error", "error_type", "stack", "together",
	} {
		if !strings.Contains(string(text), `"`+name+`":`) {
			t.Errorf("no %s in %s", name, text)
		}
	}
}

// A line that was cut short or belongs to another program or a later version does not affect other
// lines.
func TestDamagedLinesSpoilNoOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters")
	b := deadletter.File(path)
	put(t, b, 1)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cut := whole[:len(whole)/2]
	for name, row := range map[string]struct{ line, says string }{
		"cut short":       {string(cut), "line 1: no letter: "},
		"no JSON":         {"<html>", "line 1: no letter: "},
		"another's JSON":  {`{"a":1}`, `line 1: no letter: it has no "weir_letter"`},
		"a later form":    {`{"weir_letter":2,"id":"x"}`, "line 1: no letter: it has form 2; this weir reads up to 1"},
		"without an id":   {`{"weir_letter":1}`, "line 1: no letter: it has no id"},
		"wrong types":     {`{"weir_letter":1,"id":7}`, "line 1: no letter: "},
		"not UTF-8":       {"\xff\xfe", "line 1: no letter: "},
		"a nested letter": {`[` + strings.TrimSpace(string(whole)) + `]`, "line 1: no letter: "},
	} {
		t.Run(name, func(t *testing.T) {
			b := deadletter.File(path)
			if err := os.WriteFile(path, []byte(row.line), 0o600); err != nil {
				t.Fatal(err)
			}
			put(t, b, 2)
			mark(t, b, deadletter.Begun, 2)
			all, failed := items(t, b)
			if !slices.Equal(all, []string{"2 begun"}) || len(failed) != 1 || !strings.Contains(failed[0], row.says) {
				t.Errorf("%q, %q", all, failed)
			}
		})
	}
	if err := os.WriteFile(path, []byte("\n\n"+string(whole)+"  \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, failed := items(t, b); len(all) != 1 || len(failed) > 0 {
		t.Errorf("blank lines: %q, %q", all, failed)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 17<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, failed := items(t, b); len(failed) != 1 || !strings.Contains(failed[0], "line 1: longer than 16 MiB") {
		t.Errorf("a line without an end: %q", failed)
	}
	dir := deadletter.File(t.TempDir())
	if err := dir.Put(t.Context(), []deadletter.Letter{letter(1)}); err == nil || !strings.Contains(err.Error(), "weir: dead letters: ") {
		t.Errorf("a directory: %v", err)
	}
	if _, failed := items(t, dir); len(failed) != 1 {
		t.Errorf("a directory: %q", failed)
	}
}

// However many dead letters are dropped at once, the file stays readable.
func TestManyAreMarkedAtOnce(t *testing.T) {
	b := deadletter.File(filepath.Join(t.TempDir(), "letters"))
	put(t, b, 1, 2)
	ids := []string{letter(1).ID}
	for i := range 200_000 {
		ids = append(ids, fmt.Sprintf("%s/%0100d", letter(1).ID, i))
	}
	if err := b.Mark(t.Context(), deadletter.Dropped, append(ids, letter(2).ID)...); err != nil {
		t.Fatal(err)
	}
	if all, failed := items(t, b); !slices.Equal(all, []string{"1 dropped", "2 dropped"}) || len(failed) > 0 {
		t.Errorf("%q, %q", all, failed)
	}
}

// A reader may stop after any dead letter.
func TestItemsMayBeLeft(t *testing.T) {
	b := deadletter.File(filepath.Join(t.TempDir(), "letters"))
	put(t, b, 1, 2, 3)
	for i, err := range b.Items(t.Context()) {
		if err != nil || i.ID != letter(1).ID {
			t.Errorf("%+v", i)
		}
		break
	}
}

// Several workers and several processes put dead letters into the same file at the same time.
func TestManyPutIntoOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters")
	var all sync.WaitGroup
	for w := range 8 {
		b := deadletter.File(path)
		all.Go(func() {
			for i := range 20 {
				l := letter(w*100 + i)
				l.Stack = strings.Repeat("s", 10_000)
				if err := b.Put(t.Context(), []deadletter.Letter{l}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got, failed := items(t, deadletter.File(path)); len(got) != 160 || len(failed) > 0 {
		t.Errorf("%d letters, %q", len(got), failed)
	}
}

func TestFilters(t *testing.T) {
	i := deadletter.Item{Letter: letter(7), State: deadletter.Kept}
	i.PartitionKey, i.ErrorType = "LH123", "*net.OpError"
	at := i.GivenUp
	for name, row := range map[string]struct {
		deadletter.Selection
		want bool
	}{
		"nothing":               {deadletter.Selection{}, true},
		"the id":                {deadletter.Selection{IDs: []string{"x", i.ID}}, true},
		"another id":            {deadletter.Selection{IDs: []string{"x"}}, false},
		"no id":                 {deadletter.Selection{IDs: []string{}}, false},
		"the stream":            {deadletter.Selection{Stream: "s"}, true},
		"another stream":        {deadletter.Selection{Stream: "S"}, false},
		"the shard":             {deadletter.Selection{Shard: "shardId-000000000000"}, true},
		"another shard":         {deadletter.Selection{Shard: "shardId-000000000001"}, false},
		"the key":               {deadletter.Selection{Key: "LH123"}, true},
		"a part of the key":     {deadletter.Selection{Key: "LH"}, false},
		"a part of the error":   {deadletter.Selection{Error: "fuse"}, true},
		"the type of the error": {deadletter.Selection{Error: "net.OpError"}, true},
		"another error":         {deadletter.Selection{Error: "timeout"}, false},
		"the reason":            {deadletter.Selection{Reason: deadletter.Attempts}, true},
		"another reason":        {deadletter.Selection{Reason: deadletter.Age}, false},
		"since then":            {deadletter.Selection{Since: at}, true},
		"since later":           {deadletter.Selection{Since: at.Add(1)}, false},
		"until then":            {deadletter.Selection{Until: at}, false},
		"until later":           {deadletter.Selection{Until: at.Add(1)}, true},
		"the state":             {deadletter.Selection{States: []deadletter.State{deadletter.Begun, deadletter.Kept}}, true},
		"another state":         {deadletter.Selection{States: []deadletter.State{deadletter.Done}}, false},
		"one of two":            {deadletter.Selection{Stream: "s", Key: "other"}, false},
	} {
		if got := row.Matches(&i); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Each dead letter is marked before and after it is handled. If its result is unknown, it stays
// Begun.
func TestRetryMarksBeforeAndAfter(t *testing.T) {
	b := deadletter.File(filepath.Join(t.TempDir(), "letters"))
	put(t, b, 1, 2, 3, 4)
	all := func() (all []deadletter.Item) {
		for i, err := range b.Items(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if i.State == deadletter.Kept {
				all = append(all, i)
			}
		}
		return all
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	var states [][]string
	o, err := deadletter.Retry(ctx, b, all(), func(_ context.Context, i deadletter.Item) error {
		now, _ := items(t, b)
		states = append(states, now)
		switch i.ID {
		case letter(2).ID:
			return errors.New("again")
		case letter(3).ID:
			cancel(errors.New("enough"))
			return errors.New("in the middle")
		}
		return nil
	})
	if o != (deadletter.Outcome{Done: 1, Failed: 1}) || err == nil || !strings.Contains(err.Error(), "enough") || !strings.Contains(err.Error(), letter(2).ID+": again") {
		t.Errorf("%+v, %v", o, err)
	}
	if now, _ := items(t, b); !slices.Equal(now, []string{"1 done", "2 kept", "3 begun", "4 kept"}) {
		t.Errorf("%q", now)
	}
	if want := []string{"1 begun", "2 kept", "3 kept", "4 kept"}; len(states) != 3 || !slices.Equal(states[0], want) {
		t.Errorf("%q", states)
	}
	o, err = deadletter.Retry(t.Context(), b, all(), func(context.Context, deadletter.Item) error { return nil })
	if now, _ := items(t, b); o != (deadletter.Outcome{Done: 2}) || err != nil || !slices.Equal(now, []string{"1 done", "2 done", "3 begun", "4 done"}) {
		t.Errorf("%+v, %v, %q", o, err, now)
	}
}

// If a record is dead-lettered again while its dead letter is handled, the dead letter stays Kept.
// Retry continues with the others.
func TestRetryLeavesWhatWasGivenUpAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters")
	b := deadletter.File(path)
	put(t, b, 1, 2)
	var all []deadletter.Item
	for i, err := range b.Items(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, i)
	}
	o, err := deadletter.Retry(t.Context(), b, all, func(_ context.Context, i deadletter.Item) error {
		if i.ID == letter(1).ID {
			put(t, deadletter.File(path), 1)
		}
		return nil
	})
	if o != (deadletter.Outcome{Done: 2}) || err != nil {
		t.Errorf("%+v, %v", o, err)
	}
	if now, _ := items(t, b); !slices.Equal(now, []string{"2 done", "1 kept"}) {
		t.Errorf("%q", now)
	}
}

// If a file is moved away and created again while its dead letters are handled, it counts as
// another file.
func TestMarksOfAFileThatWasPutAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "letters")
	b := deadletter.File(path)
	put(t, b, 1, 2)
	items(t, b)
	mark(t, b, deadletter.Begun, 1)
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	put(t, b, 3)
	if err := b.Mark(t.Context(), deadletter.Done, letter(1).ID); !errors.Is(err, deadletter.ErrChanged) {
		t.Errorf("%v", err)
	}
	mark(t, b, deadletter.Begun, 3)
	if now, _ := items(t, b); !slices.Equal(now, []string{"3 begun"}) {
		t.Errorf("%q", now)
	}
}

func TestDescribe(t *testing.T) {
	var l deadletter.Letter
	l.Describe(fmt.Errorf("flight: %w", &os.PathError{Op: "open", Path: "x", Err: errors.New("no\x1b[2J\nroom\xff")}), "one\n\ttwo\x00")
	if l.Error != "flight: open x: no [2J room\ufffd" || l.ErrorType != "*fs.PathError" || l.Stack != "one\n\ttwo " {
		t.Errorf("%+v", l)
	}
	l.Describe(errors.New(strings.Repeat("ä", 5000)), strings.Repeat("x", 1<<20))
	if len(l.Error) > 4<<10+3 || !strings.HasSuffix(l.Error, "ä…") || len(l.Stack) > 16<<10+3 {
		t.Errorf("%d, %d bytes", len(l.Error), len(l.Stack))
	}
}

// For any content of a file, reading ends without a panic and finds lines that were added later.
func FuzzFile(f *testing.F) {
	whole, err := json.Marshal(letter(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(append(whole, '\n'))
	f.Add([]byte(`{"weir_letter":1,"state":"done","ids":["s/shardId-000000000000/9"]}`))
	f.Add([]byte("{\n\x00"))
	nine, err := json.Marshal(letter(9))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "letters")
		if err := os.WriteFile(path, slices.Concat(content, []byte("\n"), nine), 0o600); err != nil {
			t.Fatal(err)
		}
		found := 0
		for i, err := range deadletter.File(path).Items(t.Context()) {
			if err == nil && i.ID == letter(9).ID {
				found++
				if i.State != deadletter.Kept || string(i.Data) != "record 9" {
					t.Errorf("%+v", i)
				}
			}
		}
		if found != 1 {
			t.Errorf("found %d times in %q", found, content)
		}
	})
}
