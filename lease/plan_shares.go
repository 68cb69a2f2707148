package lease

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// setShares distributes n leases over the holders. Shares are whole numbers, in proportion to the
// weights and within the caps. Their sum is n unless the caps allow less. holders must be sorted by
// session.
func setShares(holders []*holder, n int) {
	if len(holders) == 0 {
		return
	}
	// Weights are scaled so that the highest is 1. No sum of weights overflows, and no weight is
	// zero.
	heaviest := slices.MaxFunc(holders, func(a, b *holder) int { return cmp.Compare(a.weight, b.weight) }).weight
	weight := func(h *holder) float64 { return max(h.weight/heaviest, 1e-12) }

	// Sort by the order in which holders reach their cap if all shares grow together. Holders that
	// reach their cap before the leases are used up get their cap. The others share the rest.
	byCap := slices.SortedStableFunc(slices.Values(holders), func(a, b *holder) int {
		return cmp.Compare(float64(a.cap)/weight(a), float64(b.cap)/weight(b))
	})
	weights := make([]float64, len(byCap)+1) // weights[i] is the sum from i on
	for i := len(byCap) - 1; i >= 0; i-- {
		weights[i] = weights[i+1] + weight(byCap[i])
	}
	first, rest := 0, n
	for ; first < len(byCap); first++ {
		h := byCap[first]
		if float64(h.cap) > float64(rest)*weight(h)/weights[first] {
			break
		}
		h.share = min(h.cap, rest)
		rest -= h.share
	}
	divide(byCap[first:], rest, func(h *holder) float64 { return weight(h) / weights[first] })
}

// divide distributes n leases by largest remainder. part returns a holder's fraction of n. That
// part of n must be below the holder's cap.
func divide(holders []*holder, n int, part func(*holder) float64) {
	type remainder struct {
		*holder
		millionths int // rounded, so that a rounding error does not make remainders different
	}
	remainders := make([]remainder, len(holders))
	left := n
	for i, h := range holders {
		due := float64(n) * part(h)
		whole := math.Floor(due)
		h.share = int(whole)
		left -= h.share
		remainders[i] = remainder{h, int(math.Round((due - whole) * 1e6))}
	}
	// Among equal remainders, prefer the holder that already has the lease, which saves a move.
	// Withdrawing a handoff is cheaper than taking a lease.
	slices.SortFunc(remainders, func(a, b remainder) int {
		if c := cmp.Compare(b.millionths, a.millionths); c != 0 {
			return c
		}
		if c := cmp.Compare(b.claims-b.share, a.claims-a.share); c != 0 {
			return c
		}
		if c := cmp.Compare(len(a.incoming), len(b.incoming)); c != 0 {
			return c
		}
		return strings.Compare(a.session, b.session)
	})
	for left > 0 {
		given := false
		for _, r := range remainders {
			if left > 0 && r.share < r.cap {
				r.share++
				left--
				given = true
			}
		}
		if !given {
			return
		}
	}
}
