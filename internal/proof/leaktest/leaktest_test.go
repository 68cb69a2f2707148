package leaktest

import (
	"strings"
	"testing"
	"time"
)

func lingers(until <-chan struct{}) { <-until }

func TestAGoroutineThatLingersIsFound(t *testing.T) {
	before := Left(0)
	end := make(chan struct{})
	go lingers(end)
	if left := Left(50 * time.Millisecond); !strings.Contains(left, "leaktest.lingers") || strings.Contains(before, "leaktest.lingers") {
		t.Errorf("found %q", left)
	}
	go func() { close(end) }()
	for late := time.After(time.Minute); strings.Contains(Left(0), "leaktest.lingers"); {
		select {
		case <-late:
			t.Fatal("it is still found")
		default:
		}
	}
}
