package lease

import (
	"cmp"
	"maps"
	"slices"
)

// Waiting returns the leases that may not be assigned yet. Each one is mapped to the sorted parents
// that it waits for. gone is [Facts.Gone].
//
// A parent with a lease is done if the lease is finished and not revoked. If an operator moved a
// held lease to its end, the shard is still being read until the old owner has acknowledged.
//
// A parent without a lease is done if gone contains it, or if the child has had an owner before. In
// the latter case the parents were done when the child was assigned, and removing their leases
// later does not change that. A failover of shards whose parents expired long ago therefore waits
// for no listing. Any other parent without a lease blocks the child, because its lease may simply
// not exist yet.
func Waiting(leases []Lease, gone map[Key]bool) map[Key][]Key {
	waiting := map[Key][]Key{}
	all := newLineage(leases, gone)
	for _, l := range all.sorted {
		if l.Finished() {
			continue
		}
		var parents []Key
		for _, parent := range l.Parents {
			if k := (Key{l.Stream, parent}); !all.done(k, l) {
				parents = append(parents, k)
			}
		}
		if len(parents) > 0 {
			slices.SortFunc(parents, Key.Compare)
			waiting[l.Key] = slices.Compact(parents)
		}
	}
	return waiting
}

// Unknown returns the parents without a lease that other leases wait for, sorted. gone is
// [Facts.Gone]. A leader must list the streams of these parents. If a listing contains such a
// parent, the parent gets a lease. If not, it has left the stream and belongs in gone.
func Unknown(leases []Lease, gone map[Key]bool) []Key {
	all := newLineage(leases, gone)
	unknown := map[Key]bool{}
	for _, parents := range Waiting(leases, gone) {
		for _, k := range parents {
			if all.byKey[k] == nil {
				unknown[k] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(unknown), Key.Compare)
}

// lineage decides which leases of a set wait for their parents.
type lineage struct {
	sorted []*Lease // by key, without duplicates
	byKey  map[Key]*Lease
	gone   map[Key]bool
	// stillValid reports whether the lease may still be valid for the session in Lease.Revoked. If
	// stillValid is nil, the lease counts as valid for as long as Revoked is set.
	stillValid func(*Lease) bool
}

// newLineage sorts leases. A key may occur twice if a view was read in pages while leases changed.
// Then the lease with the higher epoch counts.
func newLineage(leases []Lease, gone map[Key]bool) lineage {
	sorted := make([]*Lease, len(leases))
	lineal := false
	for i := range leases {
		sorted[i] = &leases[i]
		lineal = lineal || len(leases[i].Parents) > 0
	}
	slices.SortFunc(sorted, compareLeases)
	sorted = slices.CompactFunc(sorted, func(a, b *Lease) bool { return a.Key == b.Key })
	all := lineage{sorted: sorted, gone: gone}
	if lineal {
		all.byKey = make(map[Key]*Lease, len(sorted))
		for _, l := range sorted {
			all.byKey[l.Key] = l
		}
	}
	return all
}

// done reports whether child need not wait for its parent.
func (a *lineage) done(parent Key, child *Lease) bool {
	if l := a.byKey[parent]; l != nil {
		return l.Finished() && (l.Revoked == "" || a.stillValid != nil && !a.stillValid(l))
	}
	return a.gone[parent] || child.Last != "" || child.Owner != "" || child.Revoked != ""
}

// waits reports whether at least one parent of l is not done.
func (a *lineage) waits(l *Lease) bool {
	for _, parent := range l.Parents {
		if !a.done(Key{l.Stream, parent}, l) {
			return true
		}
	}
	return false
}

// compareLeases sorts leases by key, and leases of the same key by descending epoch. The other
// fields only make the order total.
func compareLeases(a, b *Lease) int {
	if c := a.Key.Compare(b.Key); c != 0 {
		return c
	}
	return cmp.Or(
		cmp.Compare(b.Epoch, a.Epoch),
		cmp.Compare(a.Owner, b.Owner),
		cmp.Compare(a.Heir, b.Heir),
		cmp.Compare(a.Revoked, b.Revoked),
		cmp.Compare(a.Last, b.Last),
		a.Position.Compare(b.Position),
		slices.Compare(a.Parents, b.Parents),
	)
}
