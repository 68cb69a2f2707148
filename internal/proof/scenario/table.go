package scenario

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Table collects numbers and prints them beside what they should be. The zero Table is empty; it
// may be used concurrently.
type Table struct {
	mu   sync.Mutex
	rows []row
}

type row struct {
	what, median, worst, target string
	count                       int
	missed                      bool
}

// Add takes in what was measured, a value for each run or shard. bound is what none of them should
// exceed; below zero there is no such promise. It reports whether the bound holds.
func (t *Table) Add(what string, each []time.Duration, bound time.Duration) bool {
	return add(t, what, each, bound, func(d time.Duration) string {
		if d < 10*time.Millisecond {
			return d.Round(10 * time.Microsecond).String()
		}
		return d.Round(time.Millisecond).String()
	})
}

// Count is Add for numbers of something.
func (t *Table) Count(what string, each []int, bound int) bool {
	return add(t, what, each, bound, func(n int) string { return fmt.Sprint(n) })
}

func add[T int | time.Duration](t *Table, what string, each []T, bound T, text func(T) string) bool {
	r := row{what: what, count: len(each), median: "-", worst: "-"}
	if n := len(each); n > 0 {
		sorted := slices.Sorted(slices.Values(each))
		r.median, r.worst = text(sorted[n/2]), text(sorted[n-1])
		r.missed = bound >= 0 && sorted[n-1] > bound
	} else {
		r.missed = true // nothing was measured
	}
	if bound >= 0 {
		r.target = "≤ " + text(bound)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, r)
	return !r.missed
}

// Write prints the table, if there is anything in it.
func (t *Table) Write(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%-78s %6s %10s %10s   %s\n", "", "values", "median", "worst", "target")
	for _, r := range t.rows {
		missed := ""
		if r.missed {
			missed = "  missed"
		}
		fmt.Fprintf(w, "%-78s %6d %10s %10s   %s%s\n", r.what, r.count, r.median, r.worst, r.target, missed)
	}
}
