package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// The limits of the printed output. The log file contains all output.
const (
	maxLines     = 80 // lines of output of one failed test or package
	maxDumpLines = 20 // lines of a goroutine dump
	maxNamed     = 7  // failures in the summary
)

// event is one line of go test -json.
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// unit is a package, one of its tests, or a build.
type unit struct{ pkg, test string }

// report prints the results of a test run as they arrive and sums them up.
type report struct {
	out  io.Writer // the output for the user
	full io.Writer // the complete output

	output  map[unit][]string
	passed  int
	failed  int
	names   []string          // failed tests and packages, in the order of their failures
	skipped map[string]int    // number of skipped tests by reason
	reasons map[unit]string   // last line that a test printed, which is the reason if the test is skipped
	builds  map[string]bool   // packages that do not build
	tests   map[string]int    // number of tests that ended, by package
	running map[unit]struct{} // tests that have begun and not ended
	times   map[unit]float64  // duration of each test in seconds, with its subtests
}

func newReport(out, full io.Writer) *report {
	return &report{
		out: out, full: full,
		output: map[unit][]string{}, skipped: map[string]int{}, reasons: map[unit]string{},
		builds: map[string]bool{}, tests: map[string]int{}, running: map[unit]struct{}{},
		times: map[unit]float64{},
	}
}

// line processes one line of go test -json. It prints other lines unchanged.
func (r *report) line(s string) {
	var e event
	if !strings.HasPrefix(s, "{") || json.Unmarshal([]byte(s), &e) != nil {
		fmt.Fprintln(r.out, s)
		fmt.Fprintln(r.full, s)
		return
	}
	fmt.Fprint(r.full, e.Output)
	u := unit{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		b := unit{e.ImportPath, ""}
		r.output[b] = append(r.output[b], strings.TrimSuffix(e.Output, "\n"))
	case "build-fail":
		r.fail(unit{e.ImportPath, ""}, e.ImportPath+" (does not build)")
		r.builds[e.ImportPath] = true
	case "run":
		r.running[u] = struct{}{}
	case "output":
		r.output[u] = append(r.output[u], strings.TrimSuffix(e.Output, "\n"))
		if text := strings.TrimSpace(e.Output); text != "" && !strings.HasPrefix(text, "---") && !strings.HasPrefix(text, "===") {
			r.reasons[u] = text
		}
	case "pass", "fail", "skip":
		delete(r.running, u)
		if e.Test == "" {
			r.packageEnded(e)
		} else {
			r.testEnded(u, e.Action)
			if !strings.Contains(e.Test, "/") {
				r.times[u] = e.Elapsed
			}
		}
		delete(r.output, u)
		delete(r.reasons, u)
	}
}

func (r *report) testEnded(u unit, action string) {
	r.tests[u.pkg]++
	switch action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped[reason(r.reasons[u])]++
	case "fail":
		r.failed++
		r.fail(u, short(u.pkg)+" "+u.test)
	}
}

func (r *report) packageEnded(e event) {
	switch {
	case e.Action == "pass" && r.tests[e.Package] == 0, e.Action == "skip":
		// The package has no tests.
	case e.Action == "pass":
		fmt.Fprintf(r.out, "ok  \t%s\t%.1fs\n", e.Package, e.Elapsed)
	case e.FailedBuild != "" && r.builds[e.FailedBuild]:
		fmt.Fprintf(r.out, "FAIL\t%s [build failed]\n", e.Package)
	default:
		fmt.Fprintf(r.out, "FAIL\t%s\t%.1fs\n", e.Package, e.Elapsed)
		r.packageFailed(e.Package)
	}
}

// packageFailed reports a failed package. Tests that were still running failed too: the package
// panicked or timed out. If no test failed, packageFailed names the package itself, which has left
// goroutines behind, for example.
func (r *report) packageFailed(pkg string) {
	for u := range r.running {
		if u.pkg == pkg && u.test != "" {
			r.fail(u, short(pkg)+" "+u.test+" (did not end)")
			delete(r.running, u)
		}
	}
	if !slices.ContainsFunc(r.names, func(n string) bool { return strings.HasPrefix(n, short(pkg)+" ") }) {
		r.fail(unit{pkg, ""}, short(pkg)+" (the package failed outside of its tests)")
	} else {
		r.print(unit{pkg, ""})
	}
}

// fail prints the output of a failed unit and adds its name to the failures.
func (r *report) fail(u unit, name string) {
	r.names = append(r.names, name)
	r.print(u)
}

func (r *report) print(u unit) {
	for _, s := range shorten(r.output[u]) {
		fmt.Fprintln(r.out, s)
	}
	delete(r.output, u)
}

// listSlowest prints the n slowest tests with their durations in seconds. A test that runs in
// parallel with others shares the processor with them, so it takes longer than it would alone.
func (r *report) listSlowest(n int) {
	units := slices.SortedFunc(maps.Keys(r.times), func(a, b unit) int {
		return cmp.Or(cmp.Compare(r.times[b], r.times[a]), cmp.Compare(a.pkg+a.test, b.pkg+b.test))
	})
	for _, u := range units[:min(n, len(units))] {
		fmt.Fprintf(r.out, "%7.1f s  %s %s\n", r.times[u], short(u.pkg), u.test)
	}
}

// close prints the summary. It returns false if there were failures, or if no test passed.
func (r *report) close(took time.Duration, log, load string) bool {
	if load != "" {
		load = ", load " + load
	}
	total := 0
	var why []string
	for reason, n := range r.skipped {
		total += n
		why = append(why, fmt.Sprintf("%d %s", n, reason))
	}
	slices.Sort(why)
	if len(why) > 0 {
		fmt.Fprintf(r.out, "skipped: %s\n", strings.Join(why, "; "))
	}
	fmt.Fprintf(r.out, "took %s%s\n", took.Round(time.Second), load)
	ok := len(r.names) == 0 && r.passed > 0
	if r.passed == 0 && len(r.names) == 0 {
		fmt.Fprintln(r.out, "no test ran")
	}
	// A test and its failed subtests are one failure. Name only the innermost subtests.
	names := leaves(r.names)
	if len(names) > 0 {
		fmt.Fprintf(r.out, "Failed (everything that was printed is in %s):\n", log)
	}
	for i, n := range names {
		if i == maxNamed-1 && len(names) > maxNamed {
			fmt.Fprintf(r.out, "  and %d more\n", len(names)-i)
			break
		}
		fmt.Fprintln(r.out, " ", n)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, max(r.failed, len(names)), total)
	return ok
}

// leaves removes tests that failed only because a subtest failed.
func leaves(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, n+"/") })
	})
}

// short returns the path of a package within the project.
func short(pkg string) string {
	return strings.TrimPrefix(strings.TrimPrefix(pkg, "github.com/weir-go/weir"), "/")
}

// reason returns the text of a skip without the position in the source.
func reason(line string) string {
	if _, text, found := strings.Cut(line, ".go:"); found {
		if _, after, found := strings.Cut(text, ": "); found {
			line = after
		}
	}
	if line == "" {
		line = "without a reason"
	}
	if len(line) > 60 {
		line = line[:57] + "..."
	}
	return line
}

// shorten cuts goroutine dumps, and then the middle of output that is still too long.
func shorten(lines []string) []string {
	var kept []string
	dump := 0
	for _, s := range lines {
		if strings.HasPrefix(s, "goroutine ") && dump == 0 {
			dump = 1
		} else if dump > 0 {
			dump++
		}
		if dump <= maxDumpLines {
			kept = append(kept, s)
		}
	}
	if dump > maxDumpLines {
		kept = append(kept, fmt.Sprintf("    ... %d more lines of goroutines", dump-maxDumpLines))
	}
	if n := len(kept); n > maxLines {
		cut := fmt.Sprintf("    ... %d lines", n-maxLines)
		kept = slices.Concat(kept[:maxLines/2], []string{cut}, kept[n-maxLines/2:])
	}
	return kept
}
