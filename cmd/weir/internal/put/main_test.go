package put

import (
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/tail"
)

func TestMain(m *testing.M) {
	clitest.Main(m, clitest.Weir(Command, tail.Command))
}
