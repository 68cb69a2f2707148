package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/internal/jitter"
)

// Run runs one simulation. It needs GOMAXPROCS=1, and no other work in the process.
func Run(t *testing.T, seed uint64, p Profile, o Options) (r Result) {
	restore := jitter.Replace(func(of string, n uint64) uint64 {
		h := unnamed
		if n > 0 {
			h = numbered(h, n)
		}
		d := rolled(seed, named(h, of), uint64(time.Now().UnixNano()))
		return d.next()
	})
	defer restore()
	synctest.Test(t, func(*testing.T) { r = simulate(seed, p, o) })
	return r
}
