package leaktest

import (
	"strings"
	"testing"
	"time"
)

func lingers(began chan<- struct{}, until <-chan struct{}) {
	close(began)
	<-until
}

func TestAGoroutineThatLingersIsFound(t *testing.T) {
	before := Left(0)
	began, end := make(chan struct{}), make(chan struct{})
	go lingers(began, end)
	<-began // before it runs, its stack does not contain the function
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
