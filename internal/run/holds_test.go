package run

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/internal/mono"
	"github.com/weir-go/weir/internal/pull"
	"github.com/weir-go/weir/lease"
)

// Held checkpoints are listed after the troubles. A shard that already has a trouble is not listed
// again.
func TestHeldCheckpointsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := func(n int) lease.Key { return lease.Key{Stream: "s", Shard: string(rune('a' + n))} }
		for name, c := range map[string]struct {
			held int
			wait time.Duration
			bad  []lease.Trouble
			want int
			sum  bool
		}{
			"none":                          {0, time.Minute, nil, 0, false},
			"not for long":                  {3, holdTold - time.Millisecond, nil, 0, false},
			"a few":                         {holdsByShard, holdTold, nil, holdsByShard, false},
			"many":                          {holdsByShard + 1, time.Minute, nil, 1, true},
			"of a shard that is not well":   {1, time.Minute, []lease.Trouble{{Key: key(0), State: "x"}}, 0, false},
			"beside a shard that fails too": {1, time.Minute, []lease.Trouble{{Key: key(9), State: "x"}}, 1, false},
		} {
			h := holds{}
			for n := range c.held {
				h[key(n)] = pull.Hold{Why: "by an open window", Since: mono.Now()}
			}
			time.Sleep(c.wait)
			told := h.tell(c.bad, time.Now())[len(c.bad):]
			if len(told) != c.want {
				t.Errorf("%s: %v", name, told)
			}
			for _, tr := range told {
				if tr.State != lease.OnPurpose || tr.Why != "by an open window" || tr.For != c.wait || (tr.Key == lease.Key{}) != c.sum {
					t.Errorf("%s: %+v", name, tr)
				}
			}
		}
	})
}
