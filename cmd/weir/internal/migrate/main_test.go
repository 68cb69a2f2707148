package migrate

import (
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/consume"
	"github.com/weir-go/weir/cmd/weir/internal/doctor"
	"github.com/weir-go/weir/cmd/weir/internal/group"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
)

func TestMain(m *testing.M) {
	lookEvery = 50 * time.Millisecond
	clitest.Main(m, clitest.Weir(Command, group.Command, consume.Command, stores.Command, doctor.Command))
}
