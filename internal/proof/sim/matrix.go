package sim

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// matrix sums up how long each pair of features was enabled together.
type matrix struct {
	hours map[pair]time.Duration
	seeds map[pair]int // number of times the pair was chosen, even if no worker lived
}

func newMatrix() *matrix { return &matrix{hours: map[pair]time.Duration{}, seeds: map[pair]int{}} }

// add adds the features of one application.
func (m *matrix) add(c Crossed) {
	for _, p := range c.On.pairs() {
		m.hours[p] += c.Lived
		m.seeds[p]++
	}
}

// missing returns the legal pairs that were never enabled together.
func (m *matrix) missing() (ps []pair) {
	for _, p := range legalPairs() {
		if m.seeds[p] == 0 {
			ps = append(ps, p)
		}
	}
	return ps
}

// print writes the number of pairs, and the pairs with the fewest hours. If whole is true, it
// writes all pairs, in whole worker hours. "-" marks a pair that weir refuses, and "." a pair that
// the API cannot express.
func (m *matrix) print(to io.Writer, whole bool) {
	legal := legalPairs()
	refused, unsaid := 0, 0
	for a := range features {
		for b := a + 1; b < features; b++ {
			switch legality(a, b) {
			case "-":
				refused++
			case ".":
				unsaid++
			}
		}
	}
	fmt.Fprintf(to, "           pairs of features: %d of %d legal ones had worker hours; weir refuses %d, the API cannot express %d\n",
		len(legal)-len(m.missing()), len(legal), refused, unsaid)
	slices.SortStableFunc(legal, func(a, b pair) int { return int(m.hours[a] - m.hours[b]) })
	var least []string
	for _, p := range legal[:min(8, len(legal))] {
		least = append(least, fmt.Sprintf("%s with %s %.2f", p[0], p[1], m.hours[p].Hours()))
	}
	fmt.Fprintf(to, "           the fewest worker hours: %s\n", strings.Join(least, ", "))
	if !whole {
		return
	}
	line := fmt.Sprintf("%-19s", "")
	for f := range features {
		line += fmt.Sprintf("%4s", featureNames[f].short)
	}
	fmt.Fprintln(to, line)
	for a := range features {
		line = fmt.Sprintf("%-16s %s", a, featureNames[a].short)
		for b := range a {
			cell := legality(b, a)
			if cell == "" {
				cell = fmt.Sprintf("%.0f", m.hours[pair{b, a}].Hours())
			}
			line += fmt.Sprintf("%4s", cell)
		}
		fmt.Fprintln(to, line)
	}
}

// legality returns "" for a pair that can be combined, "-" for a pair that weir refuses, and "."
// for a pair that the API cannot express.
func legality(a, b feature) string {
	if setOf(a, b).legal() {
		return ""
	}
	all := setOf(a, b).implied().all()
	for i, x := range all {
		for _, y := range all[i+1:] {
			if _, refused := apart(x, y); refused {
				return "-"
			}
		}
	}
	return "."
}
