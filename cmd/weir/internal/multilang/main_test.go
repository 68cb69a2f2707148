package multilang

import (
	"os"
	"testing"

	"github.com/weir-go/weir/internal/proof/leaktest"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv("MULTILANG_PROGRAM"); mode != "" {
		runProgram(mode)
		return
	}
	os.Exit(leaktest.Run(m))
}
