package behaviour

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/weir-go/weir/internal/proof/leaktest"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // little live memory, and much garbage
	os.Exit(leaktest.Run(m))
}
