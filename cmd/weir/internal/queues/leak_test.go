package queues

import (
	"os"
	"testing"

	"github.com/weir-go/weir/internal/proof/leaktest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }
