package queuecmd

import (
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, clitest.Weir(Command))
}
