package doctor

import (
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/consume"
	"github.com/weir-go/weir/cmd/weir/internal/group"
	"github.com/weir-go/weir/cmd/weir/internal/put"
)

func TestMain(m *testing.M) {
	clitest.Main(m, clitest.Weir(Command, group.Command, put.Command, consume.Command))
}
