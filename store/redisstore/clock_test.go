package redisstore

import (
	"regexp"
	"testing"
)

// The clocks of servers may jump, so no script for leases uses a clock, and no key of leases
// expires. Only the keys of the history expire.
func TestNoScriptAsksAClock(t *testing.T) {
	clock := regexp.MustCompile(`(?i)'(time|p?expire(at)?|[gp]?setex|lastsave)'|os\.(time|clock)`)
	for name, script := range map[string]string{"common": common, "beat": beat, "view": view, "apply": apply, "lead": lead, "leave": leave} {
		if found := clock.FindString(script); found != "" || len(script) < 50 {
			t.Errorf("%s asks %s", name, found)
		}
	}
}
