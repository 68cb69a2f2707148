package filter

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mostPrefixes limits how many prefixes of a pattern's wildcards for one field may match a string
// at the same time. event-ruler, the library that Amazon published for EventBridge patterns, counts
// these prefixes. Its README mentions 300 as an example of a limit. The service's limit is not
// published, and this limit was not verified against the service.
const mostPrefixes = 300

// checkWildcards returns an error if a pattern's wildcards for one field are too complex.
func checkWildcards(all []clause) error {
	counts := map[string]int{}
	seen := map[*values]bool{}      // clauses from $or share values
	counted := map[[2]string]bool{} // pairs of a field and one of its wildcards
	add := func(field string, v *values) {
		if v == nil || seen[v] {
			return
		}
		seen[v] = true
		for parts := range v.wildcards {
			if id := [2]string{field, fmt.Sprintf("%q", parts)}; !counted[id] {
				counted[id] = true
				counts[field] += prefixesAtOnce(parts)
			}
		}
	}
	for _, c := range all {
		for _, d := range c.data {
			add("data."+strings.Join(d.path, "."), d.values)
		}
		for _, v := range c.key {
			add("partitionKey", v)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[field]; n > mostPrefixes {
			return fmt.Errorf("the wildcards of %.200s are too complex: a string could match %d of their prefixes at once, at most %d are allowed", field, n, mostPrefixes)
		}
	}
	return nil
}

// wildcards yields the parts of each wildcard in v, including those in anything-but.
func (v *values) wildcards(yield func(parts []string) bool) {
	for _, t := range v.tests {
		switch t.op {
		case wildcard:
			if !yield(t.parts) {
				return
			}
		case anythingBut:
			for _, not := range t.not.tests {
				if not.op == wildcard && !yield(not.parts) {
					return
				}
			}
		}
	}
}

// prefixesAtOnce returns an upper bound for the number of prefixes of a wildcard that match a
// string at the same time. Each star counts once, because a prefix that ends with a star matches
// every continuation. The text after a star adds the maximum number of its own prefixes that can
// end at the same character.
func prefixesAtOnce(parts []string) int {
	n := 0
	for _, part := range parts[1:] {
		n += 1 + endsAtOnce(part)
	}
	return max(n, 1)
}

// endsAtOnce returns how many prefixes of s can end at the same character of a text that contains
// s.
func endsAtOnce(s string) int {
	most := 0
	border := make([]int, len(s)+1) // longest proper prefix of s[:i] that is also its suffix
	count := make([]int, len(s)+1)  // number of prefixes that end where s[:i] ends
	for i := 1; i <= len(s); i++ {
		if i > 1 {
			b := border[i-1]
			for b > 0 && s[b] != s[i-1] {
				b = border[b]
			}
			if s[b] == s[i-1] {
				b++
			}
			border[i] = b
		}
		count[i] = count[border[i]] + 1
		most = max(most, count[i])
	}
	return most
}
