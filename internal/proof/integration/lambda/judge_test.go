//go:build unix

package lambda_test

import (
	"fmt"
	"slices"
	"testing"
)

// put is a flight in the stream. The number of a flight is its index in a list. The flights of one
// key were put in the order of the list.
type put struct{ key, sequence string }

// effect is a handled flight, as the function recorded it.
type effect struct {
	flight        int
	key, sequence string
}

// judge returns the problems of the handled flights, which must be in the order of handling. Each
// flight must be handled, unless it has a dead letter. A flight that was handled may be handled
// again, together with all later ones. So the last handling of each flight must come after the last
// handling of earlier flights of its key. If stops is true, the function stops at the first failing
// flight. Then the first handlings must be in order too.
func judge(flights []put, effects []effect, letters []int, stops bool) (problems []string) {
	problem := func(format string, args ...any) {
		if len(problems) < 10 {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	first, last := map[int]int{}, map[int]int{}
	for i, e := range effects {
		if e.flight < 0 || e.flight >= len(flights) {
			problem("flight %d was never put", e.flight)
			continue
		}
		if p := flights[e.flight]; p.key != e.key || p.sequence != e.sequence {
			problem("flight %d was handled as %s of %s, and put as %s of %s", e.flight, e.sequence, e.key, p.sequence, p.key)
		}
		if _, again := first[e.flight]; !again {
			first[e.flight] = i
		}
		last[e.flight] = i
	}
	for i, flight := range letters {
		if slices.Contains(letters[:i], flight) {
			problem("flight %d has two dead letters", flight)
		}
	}
	before := map[string]int{} // the previous flight by key
	for i, p := range flights {
		_, handled := last[i]
		if letter := slices.Contains(letters, i); letter == handled {
			problem("flight %d: handled %v, in a dead letter %v", i, handled, letter)
		}
		if !handled {
			continue
		}
		if j, found := before[p.key]; found {
			if last[i] < last[j] {
				problem("flight %d of %s was last handled before flight %d", i, p.key, j)
			}
			if stops && first[i] < first[j] {
				problem("flight %d of %s was first handled before flight %d", i, p.key, j)
			}
		}
		before[p.key] = i
	}
	return problems
}

func TestTheJudgeSeesWhatIsWrong(t *testing.T) {
	flights := []put{{"a", "s0"}, {"b", "s1"}, {"a", "s2"}, {"a", "s3"}}
	did := func(numbers ...int) (effects []effect) {
		for _, n := range numbers {
			effects = append(effects, effect{n, flights[n].key, flights[n].sequence})
		}
		return effects
	}
	for _, c := range []struct {
		name    string
		effects []effect
		letters []int
		stops   bool
		want    []string
	}{
		{name: "each once", effects: did(0, 1, 2, 3), stops: true},
		{name: "keys in another order", effects: did(0, 2, 3, 1), stops: true},
		{name: "some again, with all behind them", effects: did(0, 1, 2, 1, 2, 3), stops: true},
		{name: "one in a dead letter", effects: did(0, 1, 3), letters: []int{2}, stops: true},
		{name: "one that failed at first, by a function that goes on", effects: did(0, 1, 3, 2, 3)},
		{
			name: "one that failed at first, by a function that should have stopped", effects: did(0, 1, 3, 2, 3), stops: true,
			want: []string{"flight 3 of a was first handled before flight 2"},
		},
		{name: "lost", effects: did(0, 1, 3), want: []string{"flight 2: handled false, in a dead letter false"}},
		{name: "handled and dead-lettered", effects: did(0, 1, 2, 3), letters: []int{1}, want: []string{"flight 1: handled true, in a dead letter true"}},
		{name: "given up twice", effects: did(0, 1, 2), letters: []int{3, 3}, want: []string{"flight 3 has two dead letters"}},
		{name: "out of order", effects: did(2, 0, 1, 3), want: []string{"flight 2 of a was last handled before flight 0"}},
		{name: "again, without what is behind it", effects: did(0, 1, 2, 3, 2), want: []string{"flight 3 of a was last handled before flight 2"}},
		{name: "as another", effects: append(did(0, 1, 2), effect{3, "b", "s3"}), want: []string{"flight 3 was handled as s3 of b, and put as s3 of a"}},
		{name: "never put", effects: append(did(0, 1, 2, 3), effect{4, "a", "s4"}), want: []string{"flight 4 was never put"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := judge(flights, c.effects, c.letters, c.stops); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
