package dashboard

import (
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/consume"
	"github.com/weir-go/weir/cmd/weir/internal/group"
	"github.com/weir-go/weir/cmd/weir/internal/put"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
)

func TestMain(m *testing.M) {
	clitest.Main(m, clitest.Weir(Command, consume.Command, put.Command, group.Command, stores.Command))
}
