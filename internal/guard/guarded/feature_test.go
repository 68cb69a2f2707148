package guarded

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

// planted returns two features. If required is set, the options need the second one.
func planted(required bool) []Feature {
	return []Feature{
		{Name: "watching", Needs: lease.WatchHeartbeats},
		{Name: "resigning", Needs: lease.WatchHeartbeats | lease.ResignByHeartbeat, Required: required},
	}
}

func TestWhatAStoreCannotDo(t *testing.T) {
	for name, c := range map[string]struct {
		has           lease.Abilities
		all           []Feature
		missing, idle []string
	}{
		"nothing is asked for":                               {0, nil, nil, nil},
		"it can do everything":                               {lease.AllAbilities, planted(true), nil, nil},
		"what is required fails, what is not is off":         {0, planted(true), []string{"watch heartbeats, resign by heartbeat, which is needed for resigning"}, []string{"watching"}},
		"one ability of two is missing":                      {lease.WatchHeartbeats, planted(true), []string{": resign by heartbeat, which is needed for resigning"}, nil},
		"what other options would require is off":            {0, planted(false), nil, []string{"watching", "resigning"}},
		"an ability that nobody asked for helps nobody":      {1 << 40, planted(false), nil, []string{"watching", "resigning"}},
		"every feature there is does with what memstore has": {memstore.New().Abilities(), Features, nil, nil},
	} {
		missing, off := Judge(c.has, c.all)
		var names []string
		for _, f := range off {
			names = append(names, f.Name)
		}
		if !slices.Equal(names, c.idle) {
			t.Errorf("%s: off are %q, want %q", name, names, c.idle)
		}
		if !slices.EqualFunc(missing, c.missing, func(err error, want string) bool { return strings.Contains(err.Error(), want) }) {
			t.Errorf("%s: missing are %q, want %q", name, missing, c.missing)
		}
	}
}
