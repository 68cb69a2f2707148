package judge

import (
	"strings"
	"testing"
)

// script creates journals from short lines, one for each handling, in the order of time: "worker
// shard epoch seq index". All records have the same key unless a case sets others.
func script(t *testing.T, key func(int) string, lines ...string) map[string][]Handling {
	t.Helper()
	journals := map[string][]Handling{}
	for i, line := range lines {
		f := strings.Fields(line)
		if len(f) != 5 {
			t.Fatalf("line %q", line)
		}
		number := func(s string) (n int) {
			for _, c := range s {
				n = 10*n + int(c-'0')
			}
			return n
		}
		h := Handling{Shard: f[1], Epoch: uint64(number(f[2])), Sequence: f[3], Index: number(f[4]), At: int64(1000 + i)}
		h.Key = key(h.Index)
		journals[f[0]] = append(journals[f[0]], h)
	}
	return journals
}

func one(int) string { return "ATL" }

func evenOdd(i int) string { return []string{"ATL", "ORD"}[i%2] }

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		put   int
		key   func(int) string
		lines []string
		want  Verdict
	}{
		"every record once and in order": {
			put: 3, lines: []string{"A s0 1 10 0", "A s0 1 11 1", "A s0 1 12 2"},
			want: Verdict{Put: 3, Handled: 3, Distinct: 3},
		},
		"nothing was handled": {
			put: 2, want: Verdict{Put: 2, Lost: 2},
		},
		"one was lost": {
			put: 3, lines: []string{"A s0 1 10 0", "A s0 1 12 2"},
			want: Verdict{Put: 3, Handled: 2, Distinct: 2, Lost: 1},
		},
		"the last one was lost": {
			put: 3, lines: []string{"A s0 1 10 0", "A s0 1 11 1"},
			want: Verdict{Put: 3, Handled: 2, Distinct: 2, Lost: 1},
		},
		"a pair was swapped by one worker": {
			put: 4, lines: []string{"A s0 1 10 0", "A s0 1 12 2", "A s0 1 11 1", "A s0 1 13 3"},
			want: Verdict{Put: 4, Handled: 4, Distinct: 4, OrderViolations: 1},
		},
		"a pair of one key was swapped in the stream itself": {
			put: 3, lines: []string{"A s0 1 10 0", "A s0 1 11 2", "A s0 1 12 1"},
			want: Verdict{Put: 3, Handled: 3, Distinct: 3, OrderViolations: 1},
		},
		"two keys owe each other no order": {
			put: 4, key: evenOdd, lines: []string{"A s0 1 11 1", "A s1 1 10 0", "B s0 2 12 3", "A s1 1 13 2"},
			want: Verdict{Put: 4, Handled: 4, Distinct: 4},
		},
		"the next owner repeats in order": {
			put: 4, lines: []string{"A s0 1 10 0", "A s0 1 11 1", "A s0 1 12 2", "B s0 2 11 1", "B s0 2 12 2", "B s0 2 13 3"},
			want: Verdict{Put: 4, Handled: 6, Distinct: 4, Duplicates: 2},
		},
		"the next owner repeats out of order": {
			put: 4, lines: []string{"A s0 1 10 0", "A s0 1 11 1", "A s0 1 12 2", "B s0 2 12 2", "B s0 2 11 1", "B s0 2 13 3"},
			want: Verdict{Put: 4, Handled: 6, Distinct: 4, Duplicates: 2, OrderViolations: 1},
		},
		"one owner begins anew at its checkpoint": {
			put: 3, lines: []string{"A s0 1 10 0", "A s0 1 11 1", "A s0 1 10 0", "A s0 1 11 1", "A s0 1 12 2"},
			want: Verdict{Put: 3, Handled: 5, Distinct: 3, Duplicates: 2},
		},
		"a repetition that is broken off and begun again": {
			put: 4, lines: []string{"A s0 1 10 0", "A s0 1 11 1", "A s0 1 12 2", "B s0 2 10 0", "B s0 2 11 1",
				"C s0 3 10 0", "C s0 3 11 1", "C s0 3 12 2", "C s0 3 13 3"},
			want: Verdict{Put: 4, Handled: 9, Distinct: 4, Duplicates: 5},
		},
		"a repetition leaves out a record that was handled before": {
			put: 4, lines: []string{"A s0 1 10 0", "A s0 1 11 1", "A s0 1 12 2", "B s0 2 10 0", "B s0 2 12 2", "B s0 2 13 3"},
			want: Verdict{Put: 4, Handled: 6, Distinct: 4, Duplicates: 2, OrderViolations: 1},
		},
		"a lost record breaks no order": {
			put: 4, lines: []string{"A s0 1 10 0", "A s0 1 12 2", "B s0 2 12 2", "B s0 2 13 3"},
			want: Verdict{Put: 4, Handled: 4, Distinct: 3, Lost: 1, Duplicates: 1},
		},
		"the next owner skips a record that comes later": {
			put: 3, lines: []string{"A s0 1 10 0", "B s0 2 12 2", "C s0 3 11 1"},
			want: Verdict{Put: 3, Handled: 3, Distinct: 3, OrderViolations: 1},
		},
		"an owner writes after the next one began": {
			put: 3, lines: []string{"A s0 1 10 0", "B s0 2 11 1", "A s0 1 11 1", "B s0 2 12 2"},
			want: Verdict{Put: 3, Handled: 4, Distinct: 3, Duplicates: 1, OrderViolations: 1},
		},
		"a child is read before its parent is done": {
			put: 3, lines: []string{"A s0 1 10 0", "B s1 1 20 2", "A s0 1 11 1"},
			want: Verdict{Put: 3, Handled: 3, Distinct: 3, OrderViolations: 1},
		},
		"a child follows its parent": {
			put: 3, lines: []string{"A s0 1 10 0", "A s0 1 11 1", "B s1 1 20 2"},
			want: Verdict{Put: 3, Handled: 3, Distinct: 3},
		},
		"all of a key reversed": {
			put: 4, lines: []string{"A s0 1 10 3", "A s0 1 11 2", "A s0 1 12 1", "A s0 1 13 0"},
			want: Verdict{Put: 4, Handled: 4, Distinct: 4, OrderViolations: 3},
		},
		"a record that the producer put twice is a duplicate in order": {
			put: 2, lines: []string{"A s0 1 10 0", "A s0 1 11 1", "A s0 1 12 0", "A s0 1 13 1"},
			want: Verdict{Put: 2, Handled: 4, Distinct: 2, Duplicates: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.key == nil {
				c.key = one
			}
			put := make([]string, c.put)
			for i := range put {
				put[i] = c.key(i)
			}
			got, err := Judge(put, script(t, c.key, c.lines...))
			if err != nil {
				t.Fatal(err)
			}
			if want := c.want.Lost + c.want.OrderViolations; len(got.Complaints) != want {
				t.Errorf("complaints %q, want %d", got.Complaints, want)
			}
			if got.Clean() != (c.want.Lost+c.want.OrderViolations == 0) {
				t.Errorf("Clean() = %v", got.Clean())
			}
			got.Complaints = nil
			if !equal(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func equal(a, b Verdict) bool {
	return a.Put == b.Put && a.Handled == b.Handled && a.Distinct == b.Distinct && a.Lost == b.Lost &&
		a.Duplicates == b.Duplicates && a.OrderViolations == b.OrderViolations
}

func TestJudgeRefusesForeignRecords(t *testing.T) {
	for name, journal := range map[string]Handling{
		"an index that was never put": {Shard: "s", Sequence: "1", Key: "ATL", Index: 7},
		"a negative index":            {Shard: "s", Sequence: "1", Key: "ATL", Index: -1},
		"another key":                 {Shard: "s", Sequence: "1", Key: "ORD", Index: 0},
	} {
		if _, err := Judge([]string{"ATL"}, map[string][]Handling{"A": {journal}}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The order within a journal counts more than its times, because the clock may be set back while a
// journal is written.
func TestJudgeTrustsTheOrderOfTheFile(t *testing.T) {
	journal := []Handling{
		{Shard: "s", Epoch: 1, Sequence: "1", Key: "ATL", Index: 0, At: 900},
		{Shard: "s", Epoch: 1, Sequence: "2", Key: "ATL", Index: 1, At: 100},
		{Shard: "s", Epoch: 1, Sequence: "3", Key: "ATL", Index: 2, At: 100},
	}
	v, err := Judge([]string{"ATL", "ATL", "ATL"}, map[string][]Handling{"A": journal})
	if err != nil || !v.Clean() || v.Distinct != 3 {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestComplaintsAreBounded(t *testing.T) {
	v, err := Judge(make([]string, 5000), nil)
	if err != nil || v.Lost != 5000 || len(v.Complaints) != maxComplaints {
		t.Errorf("lost %d with %d complaints, %v", v.Lost, len(v.Complaints), err)
	}
}
