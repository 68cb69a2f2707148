//go:build lockranks

package lock

import (
	"strings"
	"sync"
	"testing"
)

// TestAnInversionIsReported takes locks in the wrong order. From then on violations are collected,
// so no other test of this package may check for them.
func TestAnInversionIsReported(t *testing.T) {
	Violations()
	var term Mutex[Term]
	var runner, other Mutex[Runner]
	for _, tt := range []struct {
		name string
		does func()
		want string // "" if there is no violation
	}{
		{"in order", func() {
			term.Lock()
			runner.Lock()
			runner.Unlock()
			term.Unlock()
		}, ""},
		{"one after the other", func() {
			runner.Lock()
			runner.Unlock()
			term.Lock()
			term.Unlock()
		}, ""},
		{"unlocked in the order in which they were locked", func() {
			term.Lock()
			runner.Lock()
			term.Unlock()
			runner.Unlock()
			term.Lock()
			term.Unlock()
		}, ""},
		{"inverted", func() {
			runner.Lock()
			term.Lock()
			term.Unlock()
			runner.Unlock()
		}, "term (28) is taken by a goroutine that holds runner (26)"},
		{"two of one rank", func() {
			runner.Lock()
			other.Lock()
			other.Unlock()
			runner.Unlock()
		}, "runner (26) is taken by a goroutine that holds runner (26)"},
		{"one was tried", func() {
			if !runner.TryLock() {
				t.Error("a free mutex is not locked")
			}
			term.Lock()
			term.Unlock()
			runner.Unlock()
		}, "term (28) is taken by a goroutine that holds runner (26)"},
		{"a call without a mutex", func() { Free("the store") }, ""},
		{"a call with a mutex", func() {
			term.Lock()
			defer term.Unlock()
			Free("the store")
		}, "the store is called by a goroutine that holds term (28)"},
		{"another goroutine holds the other", func() {
			runner.Lock()
			defer runner.Unlock()
			var other sync.WaitGroup
			other.Go(func() {
				term.Lock()
				term.Unlock()
			})
			other.Wait()
		}, ""},
	} {
		tt.does()
		found := strings.Join(Violations(), "\n")
		if tt.want == "" && found != "" || !strings.Contains(found, tt.want) {
			t.Errorf("%s: found %q, want %q", tt.name, found, tt.want)
		}
	}
}

// Concurrent goroutines do not disturb each other's records.
func TestGoroutinesAreToldApart(t *testing.T) {
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			var term Mutex[Term]
			var runner Mutex[Runner]
			for range 200 {
				term.Lock()
				runner.Lock()
				if lowest() != (Runner{}).Number() {
					t.Error("a goroutine is not known to hold what it locked")
				}
				runner.Unlock()
				term.Unlock()
				if lowest() >= 0 {
					t.Error("a goroutine is said to hold what it unlocked")
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkLock(b *testing.B) {
	var m Mutex[Term]
	for b.Loop() {
		m.Lock()
		m.Unlock()
	}
}
