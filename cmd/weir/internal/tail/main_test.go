package tail

import (
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/fanout"
	"github.com/weir-go/weir/cmd/weir/internal/put"
)

func TestMain(m *testing.M) {
	clitest.Main(m, clitest.Weir(Command, put.Command, fanout.Command))
}
