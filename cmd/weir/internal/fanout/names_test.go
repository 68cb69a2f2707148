package fanout

import (
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

// Names of consumers must not break lines or control the terminal.
func TestNamesOfConsumersDoNothingToTheTerminal(t *testing.T) {
	clitest.CheckShown(t, "fanout", consumersText(clitest.Evil, []Consumer{{Name: clitest.Evil, Status: clitest.Evil, ARN: clitest.Evil}}), 2)
	clitest.CheckShown(t, "nobody", consumersText(clitest.Evil, nil), 1)
}
