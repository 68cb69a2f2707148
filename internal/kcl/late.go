package kcl

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Sum returns the sum of all counters in a table. Workers only increase counters. So the sum of a
// table that no worker uses stays the same, unless leases are deleted.
func Sum(t Table) (sum uint64) {
	for i := range t.Leases {
		sum += uint64(t.Leases[i].Counter)
	}
	return sum
}

// Owners returns the workers that own leases of a table, as a text for users.
func Owners(t Table) string {
	names := map[string]bool{}
	for i := range t.Leases {
		if w := t.Leases[i].Worker(); w != "" {
			names[w] = true
		}
	}
	list := slices.Sorted(maps.Keys(names))
	const most = 3
	if len(list) > most {
		list = append(list[:most:most], "and others")
	}
	return cmp.Or(strings.Join(list, ", "), "workers that have left")
}
