package clitest

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/shard"
)

// Eventually waits until a condition holds.
func Eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	every := time.NewTicker(10 * time.Millisecond)
	defer every.Stop()
	for !holds() {
		select {
		case <-every.C:
		case <-late:
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// Stop interrupts a worker and requires that it ends without an error.
func Stop(t *testing.T, c *Command) {
	t.Helper()
	if code := c.Interrupt(t); code != cli.ExitDone {
		t.Errorf("exit code %d, %s", code, c.Err)
	}
}

// CheckOrder fails the test unless got contains exactly the lines of want. The lines of each key
// must be in order.
func CheckOrder(t *testing.T, got, want []string) {
	t.Helper()
	number := func(line string) (key string, n int) {
		var v struct {
			Key string
			N   int
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		return v.Key, v.N
	}
	last := map[string]int{}
	for _, line := range got {
		key, n := number(line)
		if before, any := last[key]; any && n <= before {
			t.Fatalf("%d of key %s comes after %d", n, key, before)
		}
		last[key] = n
	}
	if sorted, wanted := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want)); !slices.Equal(sorted, wanted) {
		t.Fatalf("%d lines came, %d were put, and they are not the same", len(got), len(want))
	}
}

// Position parses a position of a checkpoint.
func Position(t *testing.T, s string) shard.Position {
	t.Helper()
	p, err := shard.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
