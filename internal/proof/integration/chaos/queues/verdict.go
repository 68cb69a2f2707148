package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// handling is one line of a journal.
type handling struct {
	number     int
	life       string
	began, end time.Time
}

// readAll reads the journals. The last line of a killed process may be cut.
func readAll(pattern string) (all []handling, err error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		life := strings.TrimSuffix(filepath.Base(file), ".journal")
		lines := strings.SplitAfter(string(text), "\n")
		for _, line := range lines {
			var n int
			var began, end int64
			if _, err := fmt.Sscanf(line, "%d %d %d\n", &n, &began, &end); err != nil || !strings.HasSuffix(line, "\n") {
				continue
			}
			all = append(all, handling{n, life, time.UnixMilli(began), time.UnixMilli(end)})
		}
	}
	return all, nil
}

// missing returns how many of the numbers below puts were not handled.
func missing(all []handling, puts int) int {
	seen := map[int]bool{}
	for _, h := range all {
		seen[h.number] = true
	}
	n := 0
	for i := range puts {
		if !seen[i] {
			n++
		}
	}
	return n
}

// verdict is the result of all journals.
type verdict struct {
	puts, lost, again, unexplained int
	reasons                        map[string]int // records that were handled again, by fault
	examples                       []string
}

// judge explains each record that was handled again by a fault during the handling before, or
// before its acknowledgement could be repeated.
func judge(all []handling, puts int, past []event) verdict {
	v := verdict{puts: puts, lost: missing(all, puts), reasons: map[string]int{}}
	by := map[int][]handling{}
	for _, h := range all {
		by[h.number] = append(by[h.number], h)
	}
	for n, same := range by {
		slices.SortFunc(same, func(a, b handling) int { return a.end.Compare(b.end) })
		for i := 1; i < len(same); i++ {
			v.again++
			why := ""
			for _, e := range past {
				if why == "" && (e.explains(same[i-1]) || e.explains(same[i])) {
					why = e.kind
				}
			}
			if why == "" {
				v.unexplained++
				v.examples = append(v.examples, fmt.Sprintf("record %d: %s, then %s after %v%s", n, same[i-1].life, same[i].life, same[i].began.Sub(same[i-1].end), near(past, same[i-1])))
				continue
			}
			v.reasons[why]++
		}
	}
	return v
}

// explains reports whether a fault may be the reason that a record was handled again: it hit the
// process while it had the record, or while its acknowledgement waited. Orderly restarts, short
// freezes and lost answers repeat nothing: an acknowledgement whose answer is lost has its effect.
func (e *event) explains(h handling) bool {
	switch e.kind {
	case "SIGTERM and restart", "a short SIGSTOP", lostReceives, lostAcks:
		return false
	}
	if e.life != "" && e.life != h.life {
		return false
	}
	return e.began.Before(h.end.Add(hold)) && !e.end.Before(h.began)
}

// near returns the faults around a handling, with their times after its begin.
func near(past []event, h handling) (text string) {
	for _, e := range past {
		if e.began.Before(h.end.Add(3*hold)) && e.end.After(h.began.Add(-3*hold)) {
			text += fmt.Sprintf("; %s %s from %v to %v", e.kind, e.life, e.began.Sub(h.began).Round(time.Millisecond), e.end.Sub(h.began).Round(time.Millisecond))
		}
	}
	return fmt.Sprintf(" (it took %v%s)", h.end.Sub(h.began), text)
}

func (v *verdict) print(past []event) {
	times := map[string]int{}
	for _, e := range past {
		times[e.kind]++
	}
	fmt.Printf("%-34s %6s %14s\n", "fault", "times", "handled again")
	for _, k := range kinds {
		fmt.Printf("%-34s %6d %14d\n", k.name, times[k.name], v.reasons[k.name])
	}
	for _, text := range v.examples[:min(len(v.examples), 10)] {
		fmt.Println("unexplained:", text)
	}
	fmt.Printf("%d records put, %d lost, %d handled again, %d of them without an explanation\n", v.puts, v.lost, v.again, v.unexplained)
}
