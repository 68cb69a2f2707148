package scenario

import (
	"strings"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	// note is a handled record.
	type note struct {
		key   string
		n     int
		epoch uint64
	}
	for _, c := range []struct {
		name  string
		put   map[string]int
		notes []note
		want  Verdict
	}{
		{"all well", map[string]int{"a": 2, "b": 1}, []note{{"a", 1, 1}, {"b", 1, 1}, {"a", 2, 1}}, Verdict{Put: 3, Handled: 3}},
		{"nothing handled", map[string]int{"a": 2}, nil, Verdict{Put: 2, Lost: 2}},
		{"the end is missing", map[string]int{"a": 3}, []note{{"a", 1, 1}}, Verdict{Put: 3, Handled: 1, Lost: 2}},
		{"the middle is missing", map[string]int{"a": 3}, []note{{"a", 1, 1}, {"a", 3, 1}}, Verdict{Put: 3, Handled: 2, Lost: 1, Disorder: 1}},
		{"a repetition", map[string]int{"a": 3}, []note{{"a", 1, 1}, {"a", 2, 1}, {"a", 1, 2}, {"a", 2, 2}, {"a", 3, 2}},
			Verdict{Put: 3, Handled: 5, Duplicates: 2}},
		{"a repetition that leaves one out", map[string]int{"a": 3}, []note{{"a", 1, 1}, {"a", 2, 1}, {"a", 3, 1}, {"a", 1, 2}, {"a", 3, 2}},
			Verdict{Put: 3, Handled: 5, Duplicates: 2, Disorder: 1}},
		{"the order is turned round", map[string]int{"a": 2}, []note{{"a", 2, 1}, {"a", 1, 1}}, Verdict{Put: 2, Handled: 2, Disorder: 2}},
		{"an owner that had a successor", map[string]int{"a": 1, "b": 1}, []note{{"a", 1, 2}, {"b", 1, 1}}, Verdict{Put: 2, Handled: 2, Disorder: 1}},
	} {
		var handled []Handled
		for i, n := range c.notes {
			handled = append(handled, Handled{At: int64(i), Shard: "s", Key: n.key, N: n.n, Epoch: n.epoch})
		}
		got, err := Judge(c.put, handled)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if (len(got.Complaints) == 0) != got.Clean() {
			t.Errorf("%s: complaints %q", c.name, got.Complaints)
		}
		if got.String() != c.want.String() {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
	}
	if _, err := Judge(map[string]int{"a": 1}, []Handled{{Key: "a", N: 2}}); err == nil {
		t.Error("a record that nobody put is judged")
	}
}

func TestSilences(t *testing.T) {
	at := func(seconds float64) int64 { return int64(seconds * 1e9) }
	handled := []Handled{
		{Shard: "a", At: at(0)}, {Shard: "a", At: at(5)}, // before the measured time
		{Shard: "a", At: at(12)}, {Shard: "a", At: at(12.5)}, {Shard: "a", At: at(15)},
		{Shard: "b", At: at(11)},
	}
	got := Silences(handled, time.Unix(10, 0), time.Unix(16, 0), time.Second)
	if want := (Silence{Longest: 7 * time.Second, Total: 9500 * time.Millisecond, Breaks: 2}); got["a"] != want {
		t.Errorf("a: %+v, want %+v", got["a"], want)
	}
	if want := (Silence{Longest: 5 * time.Second, Total: 5 * time.Second, Breaks: 1}); got["b"] != want {
		t.Errorf("b, which fell silent: %+v, want %+v", got["b"], want)
	}
}

func TestTableSaysWhatIsMissed(t *testing.T) {
	var table Table
	if !table.Add("met", []time.Duration{time.Second, 3 * time.Second, 2 * time.Second}, 3*time.Second) ||
		table.Add("not met", []time.Duration{4 * time.Second}, 3*time.Second) || table.Count("nothing measured", nil, 1) ||
		!table.Count("no promise", []int{7}, -1) {
		t.Error("a bound is judged wrongly")
	}
	var out strings.Builder
	table.Write(&out)
	for i, want := range []string{"3         2s         3s   ≤ 3s\n", "≤ 3s  missed\n", "≤ 1  missed\n", "7          7   \n"} {
		if line := strings.SplitAfter(out.String(), "\n")[i+2]; !strings.HasSuffix(line, want) {
			t.Errorf("%q does not end with %q", line, want)
		}
	}
}
