package sim

import (
	"testing"
)

// TestWhereItDiverges searches for seeds that do not replay, and shows where two runs first differ.
// -sim.seeds sets the number of seeds.
func TestWhereItDiverges(t *testing.T) {
	if *flagSeed == 0 {
		t.Skip("only with -sim.seed and -sim.seeds")
	}
	for _, p := range Profiles {
		if *flagProfile != "" && p.Name != *flagProfile {
			continue
		}
		for seed := *flagSeed; seed < *flagSeed+uint64(*flagSeeds); seed++ {
			first := Run(t, seed, p, Options{})
			if again := Run(t, seed, p, Options{}); first.Hash == again.Hash {
				continue
			}
			t.Errorf("seed %d of %s does not replay", seed, p.Name)
			a := Run(t, seed, p, Options{Whole: true})
			for range 5 {
				b := Run(t, seed, p, Options{Whole: true})
				if at := firstDifference(a.History, b.History); at >= 0 {
					for _, line := range a.History[max(0, at-12):at] {
						t.Log("  ", line)
					}
					for i := at; i < min(at+4, len(a.History), len(b.History)); i++ {
						t.Logf("A: %s\n              B: %s", a.History[i], b.History[i])
					}
					break
				}
			}
		}
	}
}

func firstDifference(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}
