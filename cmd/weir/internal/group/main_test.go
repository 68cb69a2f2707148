package group

import (
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/consume"
	"github.com/weir-go/weir/cmd/weir/internal/doctor"
	"github.com/weir-go/weir/cmd/weir/internal/put"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/tail"
)

func TestMain(m *testing.M) {
	clitest.Main(m, clitest.Weir(Command, put.Command, tail.Command, consume.Command, doctor.Command, stores.Command))
}
