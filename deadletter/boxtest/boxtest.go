// Package boxtest tests the contract of [deadletter.Box]. It is for weir's boxes and for custom
// boxes.
package boxtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/deadletter"
)

// Run tests boxes. open returns a Box with the given name. The first call for a name must return an
// empty Box. Later calls for the same name must return another Box for the same dead letters, like
// another process.
func Run(t *testing.T, open func(t *testing.T, name string) deadletter.Box) {
	for name, test := range map[string]func(t *testing.T, open func() deadletter.Box){
		"dead letters and their states":     states,
		"every field comes back":            fields,
		"whatever is in a record":           contents,
		"two applications":                  applications,
		"records of queues":                 queues,
		"put again":                         again,
		"somebody else":                     changed,
		"one of two takes a dead letter":    contest,
		"a mark to the same state":          repeated,
		"many at once":                      many,
		"wrong calls":                       wrong,
		"left early":                        left,
		"a marked dead letter is put again": revived,
	} {
		t.Run(name, func(t *testing.T) {
			key := strings.ReplaceAll(name, " ", "-")
			test(t, func() deadletter.Box { return open(t, key) })
		})
	}
}

// letter returns dead letter n. It belongs to one of two shards.
func letter(n int) deadletter.Letter {
	shard, at := fmt.Sprintf("shardId-%012d", n%2), time.Date(2026, 11, 23, 1, 2, 3, 456_000_000, time.UTC).Add(time.Duration(n)*time.Second)
	return deadletter.Letter{
		Version: deadletter.Version, ID: fmt.Sprintf("s/%s/%056d", shard, n), Stream: "s", Shard: shard,
		SequenceNumber: fmt.Sprintf("%056d", n), Position: fmt.Sprintf("%056d", n), PartitionKey: "key", Data: fmt.Append(nil, "record ", n),
		GivenUp: at, FirstFailure: at, LastFailure: at, Reason: deadletter.Attempts, Attempts: 3, Error: "refused", Together: 1,
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

// all returns the dead letters of a box.
func all(t *testing.T, b deadletter.Box) (items []deadletter.Item) {
	t.Helper()
	for i, err := range b.Items(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if i.Since.IsZero() != (i.State == deadletter.Kept) {
			t.Errorf("%s is %s since %v", i.ID, i.State, i.Since)
		}
		items = append(items, i)
	}
	return items
}

// want checks the dead letters and their states.
func want(t *testing.T, b deadletter.Box, states map[int]deadletter.State) {
	t.Helper()
	got := map[string]deadletter.State{}
	for _, i := range all(t, b) {
		if _, twice := got[i.ID]; twice {
			t.Errorf("%s comes twice", i.ID)
		}
		got[i.ID] = i.State
	}
	for n, state := range states {
		if id := letter(n).ID; got[id] != state {
			t.Errorf("%s is %q, want %q", id, got[id], state)
		}
	}
	if len(got) != len(states) {
		t.Errorf("%d letters, want %d", len(got), len(states))
	}
}

const (
	kept    = deadletter.Kept
	begun   = deadletter.Begun
	done    = deadletter.Done
	dropped = deadletter.Dropped
)

func states(t *testing.T, open func() deadletter.Box) {
	b := open()
	want(t, b, nil)
	put(t, b, 1, 3)
	put(t, b, 2, 4, 6)
	mark(t, b, begun, 1)
	mark(t, b, done, 1)
	mark(t, b, begun, 2)
	mark(t, b, begun, 3)
	mark(t, b, kept, 3)
	mark(t, b, dropped, 4, 6)
	for _, b := range []deadletter.Box{b, open()} {
		want(t, b, map[int]deadletter.State{1: done, 2: begun, 3: kept, 4: dropped, 6: dropped})
		last := map[string]string{}
		for _, i := range all(t, b) { // the records of a shard must be in order
			if i.ID < last[i.Shard] {
				t.Errorf("%s comes behind %s", i.ID, last[i.Shard])
			}
			last[i.Shard] = i.ID
		}
	}
}

// A box keeps every field. It keeps times at least to the millisecond.
func fields(t *testing.T, open func() deadletter.Box) {
	l := letter(1)
	l.Arrived, l.App, l.Worker, l.Epoch, l.Reason = l.GivenUp.Add(-time.Hour), "app", "worker", 1<<63, deadletter.Rejected
	l.ErrorType, l.Stack, l.Together, l.Position = "*fs.PathError", "one\n\ttwo", 17, l.Position+"+2"
	b := open()
	if err := b.Put(t.Context(), []deadletter.Letter{l}); err != nil {
		t.Fatal(err)
	}
	for _, b := range []deadletter.Box{b, open()} {
		got := all(t, b)
		if len(got) != 1 || fmt.Sprintf("%+v", got[0].Letter) != fmt.Sprintf("%+v", l) {
			t.Errorf("%+v\nwant\n%+v", got, l)
		}
	}
}

// A box keeps any content that users and Kinesis put into records.
func contents(t *testing.T, open func() deadletter.Box) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	b, put := open(), map[string]deadletter.Letter{}
	for n, key := range []string{"", strings.Repeat("ä", 128), "a\x00b", "'; DROP TABLE letters; --", "\U0001f30a/..\\%_*", "tab\tline\nend\r"} {
		l := letter(n)
		l.PartitionKey, l.Data, l.Error = key, every, "failed at\x00"+key
		if n == 1 {
			l.Data = slices.Repeat(every, 4<<10) // 1 MiB
		}
		if n == 2 {
			l.Data = []byte{}
		}
		if err := b.Put(t.Context(), []deadletter.Letter{l}); err != nil {
			t.Fatalf("key %q: %v", key, err)
		}
		put[l.ID] = l
	}
	items := all(t, b)
	if len(items) != len(put) {
		t.Errorf("%d letters, want %d", len(items), len(put))
	}
	for _, i := range items {
		if l := put[i.ID]; i.PartitionKey != l.PartitionKey || i.Error != l.Error || string(i.Data) != string(l.Data) {
			t.Errorf("%s: key %q, want %q; %d bytes, want %d; error %q", i.ID, i.PartitionKey, l.PartitionKey, len(i.Data), len(l.Data), i.Error)
		}
	}
}

// A later dead letter replaces an earlier one with the same ID.
func again(t *testing.T, open func() deadletter.Box) {
	b := open()
	put(t, b, 1)
	l := letter(1)
	l.Attempts, l.Worker = 9, "another"
	for range 2 { // the answer to the first call was lost
		if err := open().Put(t.Context(), []deadletter.Letter{l}); err != nil {
			t.Fatal(err)
		}
	}
	if got := all(t, b); len(got) != 1 || got[0].Attempts != 9 || got[0].Worker != "another" {
		t.Errorf("%+v", got)
	}
}

// In any state, a dead letter is Kept again when its record is dead-lettered again.
func revived(t *testing.T, open func() deadletter.Box) {
	b, by := open(), map[int]deadletter.State{1: begun, 3: done, 5: dropped}
	put(t, b, 1, 3, 5)
	for n, state := range by {
		mark(t, b, state, n)
	}
	put(t, open(), 1, 3, 5)
	want(t, b, map[int]deadletter.State{1: kept, 3: kept, 5: kept})
}

// A box that has seen a dead letter can mark it only if the dead letter has not changed since then.
func changed(t *testing.T, open func() deadletter.Box) {
	one, other := open(), open()
	put(t, one, 1, 3, 5)
	all(t, one)
	all(t, other)
	mark(t, one, begun, 1)
	err := other.Mark(t.Context(), begun, letter(1).ID, letter(3).ID)
	if !errors.Is(err, deadletter.ErrChanged) || !strings.Contains(err.Error(), letter(1).ID) || strings.Contains(err.Error(), letter(3).ID) {
		t.Errorf("taken twice: %v", err)
	}
	if err := other.Mark(t.Context(), done, letter(1).ID); !errors.Is(err, deadletter.ErrChanged) {
		t.Errorf("marked by a box that has not taken it: %v", err)
	}
	want(t, open(), map[int]deadletter.State{1: begun, 3: begun, 5: kept})
	mark(t, one, done, 1)
	all(t, other)
	mark(t, other, kept, 1) // this box has seen it now
	want(t, open(), map[int]deadletter.State{1: kept, 3: begun, 5: kept})

	for _, by := range []deadletter.Box{open(), other} {
		put(t, by, 3) // dead-lettered again while it is handled
		if err := other.Mark(t.Context(), done, letter(3).ID); !errors.Is(err, deadletter.ErrChanged) {
			t.Errorf("done, though given up again: %v", err)
		}
	}
	want(t, open(), map[int]deadletter.State{1: kept, 3: kept, 5: kept})
}

// A box repeats a mark if the answer of the store was lost. The repetition must succeed.
func repeated(t *testing.T, open func() deadletter.Box) {
	b := open()
	put(t, b, 1)
	all(t, b)
	mark(t, b, begun, 1)
	mark(t, b, begun, 1)
	mark(t, b, done, 1)
	mark(t, b, done, 1)
	want(t, open(), map[int]deadletter.State{1: done})
}

// Several processes handle the same dead letters while workers put others. Each dead letter is
// handled once.
func contest(t *testing.T, open func() deadletter.Box) {
	const letters, takers = 12, 4
	ns := make([]int, letters)
	for i := range ns {
		ns[i] = i
	}
	put(t, open(), ns...)
	var everybody sync.WaitGroup
	var mu sync.Mutex
	handled, taken := map[string]int{}, 0
	var boxes [takers]deadletter.Box
	var seen [takers][]deadletter.Item
	for w := range takers { // all boxes have seen them before one takes any
		boxes[w] = open()
		seen[w] = all(t, boxes[w])
	}
	for w := range takers {
		everybody.Go(func() {
			o, err := deadletter.Retry(t.Context(), boxes[w], seen[w], func(_ context.Context, i deadletter.Item) error {
				mu.Lock()
				defer mu.Unlock()
				handled[i.ID]++
				return nil
			})
			if err != nil || o.Failed > 0 || o.Done+o.Taken != letters {
				t.Errorf("%+v, %v", o, err)
			}
			mu.Lock()
			defer mu.Unlock()
			taken += o.Taken
			if err := open().Put(t.Context(), []deadletter.Letter{letter(100 + w)}); err != nil {
				t.Error(err)
			}
		})
	}
	everybody.Wait()
	for id, n := range handled {
		if n != 1 {
			t.Errorf("%s was handled %d times", id, n)
		}
	}
	if len(handled) != letters || taken != letters*(takers-1) {
		t.Errorf("%d dead letters were handled, and %d left to others", len(handled), taken)
	}
	states := map[int]deadletter.State{}
	for n := range letters {
		states[n] = done
	}
	for w := range takers {
		states[100+w] = kept
	}
	want(t, open(), states)
}

// Workers put dead letters at the same time. Some of these dead letters are equal.
func many(t *testing.T, open func() deadletter.Box) {
	var everybody sync.WaitGroup
	states := map[int]deadletter.State{}
	for w := range 6 {
		b := open()
		for i := range 10 {
			states[w*8+i] = kept
		}
		everybody.Go(func() {
			for i := range 10 {
				if err := b.Put(t.Context(), []deadletter.Letter{letter(w*8 + i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	everybody.Wait()
	got := map[string]bool{}
	for _, i := range all(t, open()) {
		if i.State != kept || got[i.ID] {
			t.Errorf("%s is %s, twice: %v", i.ID, i.State, got[i.ID])
		}
		got[i.ID] = true
	}
	if len(got) != len(states) {
		t.Errorf("%d letters, want %d", len(got), len(states))
	}
}

func wrong(t *testing.T, open func() deadletter.Box) {
	b := open()
	put(t, b, 1)
	if err := b.Mark(t.Context(), "lost", letter(1).ID); err == nil {
		t.Error("an unknown state")
	}
	if err := errors.Join(b.Put(t.Context(), nil), b.Mark(t.Context(), done)); err != nil {
		t.Errorf("nothing: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if err := b.Put(ctx, []deadletter.Letter{letter(3)}); err == nil {
		t.Error("put after the end")
	}
	if err := b.Mark(ctx, done, letter(1).ID); err == nil {
		t.Error("marked after the end")
	}
	failed := 0
	for _, err := range b.Items(ctx) {
		if err != nil {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("reading after the end: %d errors", failed)
	}
	want(t, b, map[int]deadletter.State{1: kept})
}

// A reader may stop after any dead letter and start again.
func left(t *testing.T, open func() deadletter.Box) {
	b := open()
	put(t, b, 1, 3, 5)
	for i, err := range b.Items(t.Context()) {
		if err != nil || i.ID != letter(1).ID {
			t.Errorf("%+v, %v", i, err)
		}
		break
	}
	want(t, b, map[int]deadletter.State{1: kept, 3: kept, 5: kept})
}
