package sim

import (
	"fmt"
	"testing"
)

func TestCoveringListHoldsEveryLegalPair(t *testing.T) {
	list := covering()
	seen := map[pair]int{}
	sizes := 0
	for _, s := range list {
		if !s.legal() || s != s.whole() {
			t.Errorf("%v is not a whole legal set", s.all())
		}
		sizes += s.size()
		for _, p := range s.pairs() {
			seen[p]++
		}
	}
	for _, p := range legalPairs() {
		if seen[p] == 0 {
			t.Errorf("%s with %s is in no set", p[0], p[1])
		}
	}
	fmt.Println(len(list), len(legalPairs()), float64(sizes)/float64(len(list)))
}
