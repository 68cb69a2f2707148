//go:build lockranks

package sim

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/lock"
)

// A simulation fails if mutexes are locked in the wrong order.
func TestMutexesTakenInTheWrongOrderAreNoticed(t *testing.T) {
	p, _ := ProfileNamed("calm")
	r := Run(t, 1, p, Options{Breaks: func([]string) string {
		var low lock.Mutex[lock.Queue]
		var high lock.Mutex[lock.Term]
		low.Lock()
		high.Lock()
		high.Unlock()
		low.Unlock()
		return ""
	}})
	if !strings.Contains(r.Wrong, "lock order: term") {
		t.Errorf("the simulation says %q", r.Wrong)
	}
}
