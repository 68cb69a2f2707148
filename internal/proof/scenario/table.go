package scenario

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Table collects numbers and prints them next to their targets. The zero Table is empty. It is safe
// for concurrent use.
type Table struct {
	mu   sync.Mutex
	rows []row
}

type row struct {
	what, median, worst, target string
	count                       int
	missed                      bool
}

// Add adds measured values, one for each run or shard. bound is their maximum, and a negative value
// means no maximum. Add reports whether no value exceeds the bound.
func (t *Table) Add(what string, each []time.Duration, bound time.Duration) bool {
	return add(t, what, each, bound, func(d time.Duration) string {
		if d < 10*time.Millisecond {
			return d.Round(10 * time.Microsecond).String()
		}
		return d.Round(time.Millisecond).String()
	})
}

// Count adds counts, as Add adds durations.
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

// Write prints the table, unless it is empty.
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
