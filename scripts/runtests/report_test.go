package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// play reports the events. It returns the output, and whether there were no failures.
func play(events ...string) (string, bool) {
	var out, full strings.Builder
	r := newReport(&out, &full)
	for _, e := range events {
		r.line(e)
	}
	ok := r.close(time.Minute, "/tmp/log", "0.5")
	return out.String(), ok
}

const m = "github.com/weir-go/weir"

func TestFailuresAreNamedInTheLastTenLines(t *testing.T) {
	t.Parallel()
	events := []string{
		`{"Action":"build-output","ImportPath":"` + m + `/b","Output":"b.go:3: undefined: x\n"}`,
		`{"Action":"build-fail","ImportPath":"` + m + `/b"}`,
		`{"Action":"fail","Package":"` + m + `/b","FailedBuild":"` + m + `/b"}`,
	}
	for i := range 20 {
		name := fmt.Sprintf("Test%d", i)
		events = append(events,
			`{"Action":"run","Package":"`+m+`/a","Test":"`+name+`"}`,
			`{"Action":"output","Package":"`+m+`/a","Test":"`+name+`","Output":"a.go:1: wrong\n"}`,
			`{"Action":"fail","Package":"`+m+`/a","Test":"`+name+`"}`)
	}
	events = append(events,
		`{"Action":"fail","Package":"`+m+`/a","Elapsed":1}`,
		`{"Action":"run","Package":"`+m+`/c","Test":"TestC"}`,
		`{"Action":"pass","Package":"`+m+`/c","Test":"TestC"}`,
		`{"Action":"pass","Package":"`+m+`/c","Elapsed":2}`)
	got, ok := play(events...)
	if ok {
		t.Error("reported as passed")
	}
	lines := strings.Split(strings.TrimSpace(got), "\n")
	last := strings.Join(lines[len(lines)-10:], "\n")
	for _, want := range []string{"b (does not build)", "a Test0", "and 15 more", "1 passed, 21 failed, 0 skipped"} {
		if !strings.Contains(last, want) {
			t.Errorf("%q is not in the last ten lines:\n%s", want, last)
		}
	}
	if !strings.Contains(got, "undefined: x") || !strings.Contains(got, "a.go:1: wrong") || !strings.Contains(got, "ok  \t"+m+"/c\t2.0s") {
		t.Errorf("the output lacks the failures or the package that passed:\n%s", got)
	}
}

func TestATestThatDidNotEndIsNamed(t *testing.T) {
	t.Parallel()
	events := []string{
		`{"Action":"run","Package":"` + m + `/a","Test":"TestHangs"}`,
		`{"Action":"output","Package":"` + m + `/a","Test":"TestHangs","Output":"panic: test timed out after 1m0s\n"}`,
	}
	for range 800 {
		events = append(events, `{"Action":"output","Package":"`+m+`/a","Test":"TestHangs","Output":"goroutine 7 [select]:\n"}`)
	}
	got, ok := play(append(events, `{"Action":"fail","Package":"`+m+`/a","Elapsed":60}`)...)
	if ok || !strings.Contains(got, "a TestHangs (did not end)") || !strings.Contains(got, "test timed out") {
		t.Errorf("ok %v:\n%s", ok, got)
	}
	if n := strings.Count(got, "\n"); n > 40 {
		t.Errorf("%d lines for one goroutine dump:\n%s", n, got)
	}
}

func TestWhatIsPrintedOfAGoodRun(t *testing.T) {
	t.Parallel()
	got, ok := play(
		`{"Action":"run","Package":"`+m+`/a","Test":"TestA"}`,
		`{"Action":"output","Package":"`+m+`/a","Test":"TestA","Output":"noise\n"}`,
		`{"Action":"pass","Package":"`+m+`/a","Test":"TestA"}`,
		`{"Action":"run","Package":"`+m+`/a","Test":"TestB"}`,
		`{"Action":"output","Package":"`+m+`/a","Test":"TestB","Output":"    x_test.go:9: long form: at night\n"}`,
		`{"Action":"output","Package":"`+m+`/a","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}`,
		`{"Action":"skip","Package":"`+m+`/a","Test":"TestB"}`,
		`{"Action":"pass","Package":"`+m+`/a","Elapsed":1}`,
		`{"Action":"skip","Package":"`+m+`/notests"}`)
	want := "ok  \t" + m + "/a\t1.0s\nskipped: 1 long form: at night\ntook 1m0s, load 0.5\n1 passed, 0 failed, 1 skipped\n"
	if !ok || got != want {
		t.Errorf("ok %v, printed\n%s\nwant\n%s", ok, got, want)
	}
}

func TestARunWithoutTestsFails(t *testing.T) {
	t.Parallel()
	if got, ok := play(); ok || !strings.Contains(got, "no test ran") {
		t.Errorf("ok %v: %s", ok, got)
	}
}

func TestLeaves(t *testing.T) {
	t.Parallel()
	got := leaves([]string{"a TestX/one", "a TestX", "a TestXY"})
	if strings.Join(got, ",") != "a TestX/one,a TestXY" {
		t.Errorf("%q", got)
	}
}

func TestTheSlowestTestsAreListedWithTheSlowestFirst(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	r := newReport(&out, io.Discard)
	for name, seconds := range map[string]string{"TestA": "1.5", "TestB": "20", "TestC": "3", "TestC/part": "2.9", "TestD": "0"} {
		r.line(`{"Action":"pass","Package":"` + m + `/a","Test":"` + name + `","Elapsed":` + seconds + `}`)
	}
	r.listSlowest(3)
	if want := "   20.0 s  a TestB\n    3.0 s  a TestC\n    1.5 s  a TestA\n"; out.String() != want {
		t.Errorf("it printed\n%s, want\n%s", out.String(), want)
	}
	r.listSlowest(9) // there are fewer tests than that
}
