package main

import (
	"os"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/demo"
)

// asCommand is an environment variable that makes the test program run as the command weir, in a
// separate process. All output of libraries is then visible.
const asCommand = "WEIR_TEST_AS_COMMAND"

// TestMain lets the demo start this test program as a worker, and other tests start it as the
// command.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == demo.WorkerName {
		main()
	}
	if os.Getenv(asCommand) != "" {
		main()
	}
	clitest.Main(m, newRoot)
}
