// Package sinktest tests implementations of sink.Rows, and has one in memory for other tests.
package sinktest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/sink"
)

// Place is a database with an implementation of [sink.Rows].
type Place[T any] struct {
	// Open returns the rows of an application in a new and empty database.
	Open func(t testing.TB) sink.Rows[T]
	// Add adds an effect in a transaction.
	Add func(ctx context.Context, tx T, effect string) error
	// Effects returns the effects of the database that Open returned last.
	Effects func(t testing.TB) []string
}

var (
	of      = sink.Key{Stream: "orders", Shard: "shardId-000000000000"}
	errOops = errors.New("oops")
)

// part returns the key of a partition of the shard.
func part(partition, count int) sink.Key {
	k := of
	k.Partition, k.Of = partition, count
	return k
}

// at returns the position after a record.
func at(n int) weir.Position { return weir.Record{SequenceNumber: fmt.Sprint(n)}.Position() }

// Run tests an implementation.
func Run[T any](t *testing.T, p Place[T]) {
	for name, test := range map[string]func(*testing.T, Place[T]){
		"rows are made once":                    testMake[T],
		"every field is stored":                 testFields[T],
		"shards and partitions are apart":       testKeys[T],
		"nothing is stored after an error":      testErrors[T],
		"effects and row are committed as one":  testCommit[T],
		"a row is locked until the end":         testLock[T],
		"a context that has ended rolls back":   testContext[T],
		"prune removes other partitions only":   testPrune[T],
		"rows of partitions are made under way": testInsert[T],
	} {
		t.Run(name, func(t *testing.T) { test(t, p) })
	}
}

// read returns the rows of the shard.
func read[T any](t *testing.T, rows sink.Rows[T]) map[sink.Key]sink.Row {
	t.Helper()
	all, err := rows.Read(t.Context(), of.Stream, of.Shard)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// same fails the test if the shard has other rows.
func same[T any](t *testing.T, rows sink.Rows[T], want map[sink.Key]sink.Row) {
	t.Helper()
	if got := read(t, rows); !reflect.DeepEqual(got, want) {
		t.Errorf("the rows are %v, want %v", got, want)
	}
}

func made[T any](t *testing.T, p Place[T], all map[sink.Key]sink.Row) sink.Rows[T] {
	t.Helper()
	rows := p.Open(t)
	for k, r := range all {
		if err := rows.Make(t.Context(), k, r); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

func testMake[T any](t *testing.T, p Place[T]) {
	rows := p.Open(t)
	same(t, rows, map[sink.Key]sink.Row{})
	if err := rows.Make(t.Context(), of, sink.Row{Epoch: 1, At: weir.Oldest}); err != nil {
		t.Fatal(err)
	}
	if err := rows.Make(t.Context(), of, sink.Row{Epoch: 2, At: at(5)}); err != nil {
		t.Fatal(err)
	}
	same(t, rows, map[sink.Key]sink.Row{of: {Epoch: 1, At: weir.Oldest}})
}

func testFields[T any](t *testing.T, p Place[T]) {
	rows := made(t, p, map[sink.Key]sink.Row{of: {}})
	for _, r := range []sink.Row{
		{}, {Epoch: 1, At: weir.Oldest}, {Epoch: 1<<63 - 1, At: at(7)}, {At: at(7), Ended: true}, {At: at(7), Split: true},
		{Epoch: 3, At: at(8), Ended: true, Split: true}, {Epoch: 4, At: at(9)},
	} {
		if err := rows.Update(t.Context(), of, func(sink.Row, bool) (*sink.Row, error) { return &r, nil }, nil); err != nil {
			t.Fatal(err)
		}
		same(t, rows, map[sink.Key]sink.Row{of: r})
	}
}

func testKeys[T any](t *testing.T, p Place[T]) {
	want := map[sink.Key]sink.Row{of: {At: at(1)}, part(0, 2): {At: at(2)}, part(1, 2): {At: at(3)}, part(1, 16): {At: at(4)}, part(11, 16): {At: at(5)}, part(1, 1024): {At: at(6)}}
	rows := made(t, p, want)
	for _, k := range []sink.Key{
		{Stream: "orders", Shard: "shardId-0000000000000"}, {Stream: "orders", Shard: "shardId-00000000000"}, {Stream: "orders2", Shard: of.Shard}, {Stream: "Orders", Shard: of.Shard},
		{Stream: "orders", Shard: "ShardId-000000000000"},
	} {
		if err := rows.Make(t.Context(), k, sink.Row{At: at(9)}); err != nil {
			t.Fatal(err)
		}
	}
	same(t, rows, want)
}

func testErrors[T any](t *testing.T, p Place[T]) {
	want := map[sink.Key]sink.Row{of: {At: at(1)}}
	rows := made(t, p, want)
	next := &sink.Row{At: at(2)}
	for name, c := range map[string]struct {
		next    *sink.Row
		decided error
		effect  error
		want    error
	}{
		"decide fails":     {next, errOops, nil, errOops},
		"decide says nil":  {nil, nil, nil, nil},
		"the effects fail": {next, nil, errOops, errOops},
	} {
		err := rows.Update(t.Context(), of, func(sink.Row, bool) (*sink.Row, error) { return c.next, c.decided }, func(ctx context.Context, tx T) error {
			return errors.Join(p.Add(ctx, tx, "x"), rows.Insert(ctx, tx, part(0, 2), sink.Row{}), c.effect)
		})
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: Update = %v, want %v", name, err, c.want)
		}
		same(t, rows, want)
	}
	func() {
		defer func() { _ = recover() }()
		_ = rows.Update(t.Context(), of, func(sink.Row, bool) (*sink.Row, error) { return next, nil }, func(ctx context.Context, tx T) error {
			_ = p.Add(ctx, tx, "x")
			panic(errOops) //nolint:forbidigo // the test needs it
		})
	}()
	same(t, rows, want)
	if got := p.Effects(t); len(got) > 0 {
		t.Errorf("transactions that failed have the effects %q", got)
	}
	found := true
	if err := rows.Update(t.Context(), part(1, 2), func(_ sink.Row, there bool) (*sink.Row, error) { found = there; return nil, nil }, nil); err != nil || found {
		t.Errorf("a row that does not exist: found %t, %v", found, err)
	}
}

func testCommit[T any](t *testing.T, p Place[T]) {
	rows := made(t, p, map[sink.Key]sink.Row{of: {At: at(1)}})
	err := rows.Update(t.Context(), of, func(was sink.Row, found bool) (*sink.Row, error) {
		if !found || was.At != at(1) {
			t.Errorf("the row is %+v, %t", was, found)
		}
		return &sink.Row{Epoch: 1, At: at(2)}, nil
	}, func(ctx context.Context, tx T) error { return errors.Join(p.Add(ctx, tx, "a"), p.Add(ctx, tx, "b")) })
	if err != nil {
		t.Fatal(err)
	}
	same(t, rows, map[sink.Key]sink.Row{of: {Epoch: 1, At: at(2)}})
	if got := p.Effects(t); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the effects are %q", got)
	}
}

func testLock[T any](t *testing.T, p Place[T]) {
	rows := made(t, p, map[sink.Key]sink.Row{of: {At: at(0)}})
	const writers, each = 4, 10
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for done := 0; done < each; {
				n := 0
				err := rows.Update(t.Context(), of, func(was sink.Row, _ bool) (*sink.Row, error) {
					n = int(was.Epoch) + 1
					return &sink.Row{Epoch: uint64(n), At: at(n)}, nil
				}, func(ctx context.Context, tx T) error { return p.Add(ctx, tx, fmt.Sprint(n)) })
				if err == nil {
					done++
				} else if t.Context().Err() != nil {
					return
				}
			}
		})
	}
	all.Wait()
	var want []string
	for n := range writers * each {
		want = append(want, fmt.Sprint(n+1))
	}
	if got := p.Effects(t); !slices.Equal(got, want) {
		t.Errorf("the effects of writers that lock the same row are %q", got)
	}
}

func testContext[T any](t *testing.T, p Place[T]) {
	want := map[sink.Key]sink.Row{of: {At: at(1)}}
	rows := made(t, p, want)
	ctx, cancel := context.WithCancelCause(t.Context())
	err := rows.Update(ctx, of, func(sink.Row, bool) (*sink.Row, error) { return &sink.Row{At: at(2)}, nil }, func(ctx context.Context, tx T) error {
		err := p.Add(ctx, tx, "x")
		cancel(errOops)
		return err
	})
	if err == nil {
		t.Error("Update succeeded although its context had ended")
	}
	for bound := time.Now().Add(10 * time.Second); !reflect.DeepEqual(read(t, rows), want) && time.Now().Before(bound); {
	}
	same(t, rows, want)
	if got := p.Effects(t); len(got) > 0 {
		t.Errorf("the effects are %q", got)
	}
}

func testPrune[T any](t *testing.T, p Place[T]) {
	other := sink.Key{Stream: of.Stream, Shard: "shardId-000000000001", Partition: 1, Of: 2}
	rows := made(t, p, map[sink.Key]sink.Row{of: {At: at(1)}, part(0, 2): {}, part(1, 2): {}, part(0, 16): {}, part(15, 16): {}, part(6, 116): {}, other: {At: at(9)}})
	prune := func(keep int) {
		t.Helper()
		err := rows.Update(t.Context(), of, func(was sink.Row, _ bool) (*sink.Row, error) { return &was, nil }, func(ctx context.Context, tx T) error {
			return rows.Prune(ctx, tx, of.Stream, of.Shard, keep)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	prune(16)
	same(t, rows, map[sink.Key]sink.Row{of: {At: at(1)}, part(0, 16): {}, part(15, 16): {}})
	prune(0)
	same(t, rows, map[sink.Key]sink.Row{of: {At: at(1)}})
	if all, err := rows.Read(t.Context(), other.Stream, other.Shard); err != nil || len(all) != 1 {
		t.Errorf("the rows of another shard are %v, %v", all, err)
	}
}

func testInsert[T any](t *testing.T, p Place[T]) {
	rows := made(t, p, map[sink.Key]sink.Row{of: {At: at(1)}})
	for epoch := range uint64(2) {
		err := rows.Update(t.Context(), of, func(was sink.Row, _ bool) (*sink.Row, error) {
			return &sink.Row{Epoch: epoch, At: was.At, Split: true}, nil
		}, func(ctx context.Context, tx T) error {
			return rows.Insert(ctx, tx, part(1, 2), sink.Row{Epoch: epoch, At: at(1)})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	same(t, rows, map[sink.Key]sink.Row{of: {Epoch: 1, At: at(1), Split: true}, part(1, 2): {At: at(1)}})
}
