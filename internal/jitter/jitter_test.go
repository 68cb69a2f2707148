package jitter

import (
	"testing"
	"time"
)

func TestChanceStaysWithinItsBounds(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 1000 {
		d := N(10)
		if d < 0 || d >= 10 {
			t.Fatalf("N(10) = %d", d)
		}
		seen[d] = true
	}
	if len(seen) != 10 {
		t.Errorf("of 10 durations %d came in 1,000 draws", len(seen))
	}
	if a, b := Name("w"), Name("w"); a == b || len(a) != 20 {
		t.Errorf("two names are %q and %q", a, b)
	}
}

func TestASourceDecides(t *testing.T) {
	restore := Replace(func(of string, n uint64) uint64 { return uint64(len(of)) + n/3 + 20 })
	if d := N(25); d != 3 {
		t.Errorf("N(25) = %d, want 28 modulo 25", d)
	}
	if a, b := Of("one", 25), Of("another", 25); a != 6 || b != 10 {
		t.Errorf("two that do it at one instant get %d and %d, want 31 and 35 modulo 25", a, b)
	}
	if a, b := Name("w"), Name("v"); a != b || a != "00000000000000150000" {
		t.Errorf("two names are %q and %q", a, b)
	}
	restore()
	if a, b := Name("w"), Name("w"); a == b {
		t.Error("the source still decides")
	}
}
