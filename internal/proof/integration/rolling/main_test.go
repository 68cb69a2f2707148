package rolling_test

import (
	"flag"
	"os"
	"testing"

	"github.com/weir-go/weir/internal/proof/integration/worker"
	"github.com/weir-go/weir/internal/proof/leaktest"
	"github.com/weir-go/weir/internal/proof/scenario"
)

const stream = "orders"

var (
	full  = flag.Bool("full", false, "a million records, as in the documentation")
	table scenario.Table
)

func TestMain(m *testing.M) {
	worker.Main()
	flag.Parse()
	code := leaktest.Run(m)
	table.Write(os.Stdout)
	os.Exit(code)
}
