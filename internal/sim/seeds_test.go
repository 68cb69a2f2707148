package sim

import "testing"

// TestSeedsThatBrokeAPromise runs seeds that showed what nothing else had. Any change to the code makes another story of a seed, so what a story taught has
// a test of its own beside the code; these cost little and keep what is rare from being tried by chance only.
func TestSeedsThatBrokeAPromise(t *testing.T) {
	if raced {
		t.Skip("nothing replays under the race detector")
	}
	for _, c := range []struct {
		profile string
		seed    uint64
		what    string
	}{
		{"retention", 1796343560074, "two parents' ends were handled by a worker that was cut off from the store, and they had left the stream before another could save that: " +
			"it had the listing that named their child, and the child waited for the leader's, which was slow"},
	} {
		p, ok := ProfileNamed(c.profile)
		if !ok {
			t.Fatalf("there is no profile %q", c.profile)
		}
		if r := Run(t, c.seed, p, Options{}); r.Wrong != "" {
			t.Errorf("profile %s, seed %d: %s\n(before: %s)", c.profile, c.seed, r.Wrong, c.what)
		}
	}
}
