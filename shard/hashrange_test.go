package shard_test

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/shard"
)

const maxKey = "340282366920938463463374607431768211455" // 2^128-1

func hashKey(s string) shard.HashKey {
	k, err := shard.ParseHashKey(s)
	if err != nil {
		panic(err)
	}
	return k
}

func hashRange(start, end string) shard.HashRange {
	return shard.HashRange{Start: hashKey(start), End: hashKey(end)}
}

func TestHashOf(t *testing.T) {
	t.Parallel()
	// The digests are from RFC 1321, appendix A.5.
	for key, digest := range map[string]string{
		"":               "d41d8cd98f00b204e9800998ecf8427e",
		"a":              "0cc175b9c0f1b6a831c399e269772661",
		"abc":            "900150983cd24fb0d6963f7d28e17f72",
		"message digest": "f96b697d7cb7938d525a2f31aaf161d0",
	} {
		n, _ := new(big.Int).SetString(digest, 16)
		if got := shard.HashOf(key); got.String() != n.String() {
			t.Errorf("HashOf(%q) = %s, want %s", key, got, n)
		}
	}
	if a, b := shard.HashOf("ä"), shard.HashOf("a\u0308"); a == b {
		t.Error("keys that look alike are hashed as bytes, not as what they look like")
	}
}

func TestHashKeys(t *testing.T) {
	t.Parallel()
	inOrder := []string{"0", "1", "18446744073709551615", "18446744073709551616", "18446744073709551617", maxKey}
	for i, a := range inOrder {
		if got := hashKey(a).String(); got != a {
			t.Errorf("%s becomes %s", a, got)
		}
		for j, b := range inOrder {
			if got := hashKey(a).Compare(hashKey(b)); got != cmp.Compare(i, j) {
				t.Errorf("%s compares to %s as %d", a, b, got)
			}
		}
	}
	for a, b := range map[string]string{"0": "1", "18446744073709551615": "18446744073709551616", maxKey: "0"} {
		if got := hashKey(a).Next(); got != hashKey(b) {
			t.Errorf("after %s comes %s", a, got)
		}
	}
	if hashKey(maxKey) != shard.MaxHashKey {
		t.Error("MaxHashKey is not 2^128-1")
	}
	for _, bad := range []string{
		"", "-1", "+1", "00", "01", "1.0", "1e3", " 1", "0x10", "１", "340282366920938463463374607431768211456",
		strings.Repeat("9", 39), strings.Repeat("1", 40), strings.Repeat("1", 100_000),
	} {
		if got, err := shard.ParseHashKey(bad); err == nil || len(err.Error()) > 200 {
			t.Errorf("ParseHashKey(%.50q) = %s, %v", bad, got, err)
		}
	}
}

func TestParseHashRange(t *testing.T) {
	t.Parallel()
	r, err := shard.ParseHashRange("5", "7")
	if err != nil || r != hashRange("5", "7") || r.String() != "5-7" {
		t.Errorf("the range from 5 to 7 is %s, %v", r, err)
	}
	for k, want := range map[string]bool{"4": false, "5": true, "6": true, "7": true, "8": false, maxKey: false} {
		if got := r.Contains(hashKey(k)); got != want {
			t.Errorf("%s contains %s: %v", r, k, got)
		}
	}
	if r, err := shard.ParseHashRange("7", "7"); err != nil || !r.Contains(hashKey("7")) {
		t.Errorf("the range of one key: %s, %v", r, err)
	}
	for _, bad := range [][2]string{{"8", "7"}, {"x", "7"}, {"5", ""}} {
		if r, err := shard.ParseHashRange(bad[0], bad[1]); err == nil {
			t.Errorf("ParseHashRange(%q, %q) = %s", bad[0], bad[1], r)
		}
	}
}

func TestMiddle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ start, end, want string }{
		{"0", maxKey, "170141183460469231731687303715884105728"}, // 2^127
		{"170141183460469231731687303715884105728", maxKey, "255211775190703847597530955573826158592"},
		{"0", "9", "5"},
		{"0", "10", "5"}, // the upper half is larger
		{"0", "1", "1"},
		{"7", "7", "7"},
		{maxKey, maxKey, maxKey},
		{"18446744073709551615", "18446744073709551616", "18446744073709551616"},
	} {
		r := hashRange(c.start, c.end)
		if got := r.Middle(); got.String() != c.want {
			t.Errorf("the middle of %s is %s, want %s", r, got, c.want)
		}
	}
}

func TestHoles(t *testing.T) {
	t.Parallel()
	const half, beforeHalf = "170141183460469231731687303715884105728", "170141183460469231731687303715884105727"
	for name, c := range map[string]struct{ ranges, want []shard.HashRange }{
		"no range covers nothing": {nil, []shard.HashRange{hashRange("0", maxKey)}},
		"one range covers all":    {[]shard.HashRange{hashRange("0", maxKey)}, nil},
		"two halves in any order": {
			[]shard.HashRange{hashRange(half, maxKey), hashRange("0", beforeHalf)}, nil,
		},
		"the lower half is missing": {
			[]shard.HashRange{hashRange(half, maxKey)}, []shard.HashRange{hashRange("0", beforeHalf)},
		},
		"the upper half is missing": {
			[]shard.HashRange{hashRange("0", beforeHalf)}, []shard.HashRange{hashRange(half, maxKey)},
		},
		"single keys are missing": {
			[]shard.HashRange{hashRange("1", "9"), hashRange("11", "340282366920938463463374607431768211454")},
			[]shard.HashRange{hashRange("0", "0"), hashRange("10", "10"), hashRange(maxKey, maxKey)},
		},
		"ranges may overlap, contain each other and come twice": {
			[]shard.HashRange{
				hashRange("0", "100"), hashRange("10", "20"), hashRange("50", "200"), hashRange("50", "200"),
				hashRange("300", maxKey), hashRange("400", maxKey), hashRange("500", "600"),
			},
			[]shard.HashRange{hashRange("201", "299")},
		},
		"a range that ends before it starts covers nothing": {
			[]shard.HashRange{hashRange("0", "99"), hashRange("300", "200"), hashRange("400", maxKey)},
			[]shard.HashRange{hashRange("100", "399")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ranges := slices.Clone(c.ranges)
			if got := shard.Holes(c.ranges); !slices.Equal(got, c.want) {
				t.Errorf("holes %v, want %v", got, c.want)
			}
			if !slices.Equal(ranges, c.ranges) {
				t.Error("the ranges were changed")
			}
		})
	}
}

// TestHolesCoverTheRest checks that every key is either in a range or in a hole. Holes must not
// touch each other.
func TestHolesCoverTheRest(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	// Use few distinct keys, close to a carry or to the end of the space.
	random := func() shard.HashKey {
		near := func() uint64 { return [...]uint64{0, 1, 2, math.MaxUint64 - 1, math.MaxUint64}[rng.IntN(5)] }
		return shard.HashKey{Hi: near(), Lo: near()}
	}
	contains := func(rs []shard.HashRange, k shard.HashKey) bool {
		return slices.ContainsFunc(rs, func(r shard.HashRange) bool { return r.Contains(k) })
	}
	for range 3000 {
		var ranges []shard.HashRange
		for range rng.IntN(5) {
			ranges = append(ranges, shard.HashRange{Start: random(), End: random()})
		}
		holes := shard.Holes(ranges)
		for range 20 {
			if k := random(); contains(ranges, k) == contains(holes, k) {
				t.Fatalf("seed %d: %s is in both or neither of %v and the holes %v", seed, k, ranges, holes)
			}
		}
		for i, h := range holes {
			if h.End.Compare(h.Start) < 0 || i > 0 && holes[i-1].End.Next().Compare(h.Start) >= 0 {
				t.Fatalf("seed %d: the holes %v of %v are not apart and in order", seed, holes, ranges)
			}
		}
	}
}

func FuzzParseHashKey(f *testing.F) {
	for _, s := range []string{"0", "1", maxKey, "340282366920938463463374607431768211456", "-1", "01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := shard.ParseHashKey(s)
		if err == nil && k.String() != s {
			t.Errorf("%q is read as %s", s, k)
		}
	})
}

// Sinks store positions of partitions, so a key must never move to another partition.
func TestPartitionsOfKeysStay(t *testing.T) {
	for i, want := range []int{11, 9, 4, 6, 1, 5} {
		if got := shard.Partition(fmt.Sprint("k", 9+i), 16); got != want {
			t.Errorf("Partition of k%d of 16 is %d, was %d", 9+i, got, want)
		}
	}
	const n, keys = 64, 64_000
	counts := make([]int, n)
	for i := range keys {
		counts[shard.Partition(fmt.Sprint("customer-", i), n)]++
	}
	if least, most := slices.Min(counts), slices.Max(counts); least < keys/n*8/10 || most > keys/n*12/10 {
		t.Errorf("the partitions have %d to %d keys, of %d", least, most, keys)
	}
	for n := range 2 {
		if got := shard.Partition("k", n); got != 0 {
			t.Errorf("Partition of %d = %d", n, got)
		}
	}
}
