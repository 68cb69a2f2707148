package lease

import (
	"math/bits"
	"testing"
)

func TestAbilities(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		has, wanted Abilities
		missing     Abilities
		text        string // of has
	}{
		{"nothing is missing where nothing is wanted", 0, 0, 0, "none"},
		{"a store that has none lacks what is wanted", 0, WatchHeartbeats, WatchHeartbeats, "none"},
		{"what is there is not missing", WatchHeartbeats, WatchHeartbeats, 0, "watch heartbeats"},
		{"of two that are wanted one is missing", ResignByHeartbeat, WatchHeartbeats | ResignByHeartbeat, WatchHeartbeats, "resign by heartbeat"},
		{"more than is wanted", AllAbilities, ResignByHeartbeat, 0, "watch heartbeats, resign by heartbeat, note failures, note deaths, keep history, note streams, note rates, note pauses, note numbers"},
		{"what this version does not know has a number", WatchHeartbeats | 1<<63, WatchHeartbeats, 0, "watch heartbeats, ability 63"},
	} {
		if got := c.has.Missing(c.wanted); got != c.missing || c.has.Has(c.wanted) != (c.missing == 0) {
			t.Errorf("%s: Missing is %v, Has %t, want %v", c.name, got, c.has.Has(c.wanted), c.missing)
		}
		if got := c.has.String(); got != c.text {
			t.Errorf("%s: String is %q, want %q", c.name, got, c.text)
		}
	}
}

func TestEveryAbilityHasAName(t *testing.T) {
	t.Parallel()
	if n := bits.OnesCount64(uint64(AllAbilities)); n != len(abilityNames) || bits.Len64(uint64(AllAbilities)) != n {
		t.Errorf("%d abilities have %d names", n, len(abilityNames))
	}
}
