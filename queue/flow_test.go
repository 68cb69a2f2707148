package queue

import (
	"testing"
	"time"
)

func TestHowManyRecordsAreAskedFor(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, c := range []struct {
		name  string
		flow  flow
		limit int
	}{
		{"a new consumer asks for as many as it has handlers", flow{concurrency: 4}, 4},
		{"but for ten at most", flow{concurrency: 100}, 10},
		{"one receive at a time while the queue is idle", flow{concurrency: 100, calls: 1, asked: 10}, 0},
		{"several while answers are full", flow{concurrency: 100, calls: 1, asked: 10, allowed: 2}, 10},
		{"none if all handlers are busy and slow", flow{concurrency: 10, held: 10, handling: time.Hour}, 0},
		{"fast handlers have ten records waiting", flow{concurrency: 10, held: 10, handling: time.Millisecond}, 10},
		{"and more if receives are slow", flow{concurrency: 10, held: 29, handling: time.Millisecond, rate: 1000, took: 10 * time.Millisecond}, 10},
		{"slow handlers do not", flow{concurrency: 10, held: 10, handling: 30 * time.Second}, 0},
		{"a free handler gets a record at once", flow{concurrency: 10, held: 9, handling: time.Hour}, 1},
		{"a single free place waits for more", flow{concurrency: 10, held: 19, handling: time.Millisecond}, 0},
		{"nine free places wait for one more", flow{concurrency: 10, held: 11, handling: time.Millisecond}, 0},
		{"ten free places are enough", flow{concurrency: 10, held: 10, handling: time.Millisecond}, 10},
		{"one slow handler gets one record", flow{concurrency: 1, handling: time.Hour}, 1},
		{"no memory is left", flow{concurrency: 10, bytes: 127 * mib, mostBytes: 128 * mib}, 0},
		{"memory for some is left", flow{concurrency: 10, bytes: 97 * mib, mostBytes: 128 * mib}, 8},
		{"records are large", flow{concurrency: 10, largest: 10 * mib, bytes: 40 * mib, mostBytes: 128 * mib}, 6},
		{"all ten may be of the largest size", flow{concurrency: 10, largest: 10 * mib, mostBytes: 128 * mib}, 10},
		{"small records need little", flow{concurrency: 10, largest: 100, bytes: 125 * mib, mostBytes: 128 * mib}, 10},
		{"a small budget gets fewer", flow{concurrency: 10, mostBytes: 64 * mib}, 3},
		{"no more than 64 receives", flow{concurrency: 10_000, calls: 64, asked: 640, allowed: 64, mostBytes: 1 << 40}, 0},
	} {
		if c.flow.mostBytes == 0 {
			c.flow.mostBytes = defaultBytes
		}
		c.flow.hold = 30 * time.Second
		limit, bytes := c.flow.want()
		if limit != c.limit {
			t.Errorf("%s: %d, want %d", c.name, limit, c.limit)
		}
		if limit > 0 && c.flow.bytes+c.flow.reserved+bytes > c.flow.mostBytes {
			t.Errorf("%s: %d bytes exceed the budget", c.name, bytes)
		}
	}
}

func TestParallelReceivesFollowTheAnswers(t *testing.T) {
	t.Parallel()
	f := flow{}
	for _, c := range []struct{ limit, got, want int }{{10, 10, 2}, {10, 10, 4}, {10, 7, 4}, {10, 3, 3}, {10, 10, 6}, {3, 3, 12}, {10, 0, 1}, {10, 1, 1}} {
		if f.answered(c.limit, c.got, time.Millisecond); f.allowed != c.want {
			t.Fatalf("%d after %d of %d records, want %d", f.allowed, c.got, c.limit, c.want)
		}
	}
	for range 20 {
		f.answered(10, 10, time.Millisecond)
	}
	if f.allowed != mostCalls {
		t.Errorf("%d", f.allowed)
	}
	f.answered(10, 10, 20*time.Second) // it waited for its first record
	f.answered(10, 10, time.Millisecond)
	if f.took > 5*time.Millisecond {
		t.Errorf("a receive takes %v after a long wait", f.took)
	}
}
