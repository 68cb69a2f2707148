package producer

import (
	"os"
	"testing"

	"github.com/weir-go/weir/internal/proof/benchserver"
	"github.com/weir-go/weir/internal/proof/leaktest"
)

func TestMain(m *testing.M) {
	benchserver.Main()
	victim()
	os.Exit(leaktest.Run(m))
}
