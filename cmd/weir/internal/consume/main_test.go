package consume

import (
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/cmd/weir/internal/dead"
	"github.com/weir-go/weir/cmd/weir/internal/fanout"
	"github.com/weir-go/weir/cmd/weir/internal/group"
	"github.com/weir-go/weir/cmd/weir/internal/put"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/stream"
	"github.com/weir-go/weir/cmd/weir/internal/tail"
)

// otherRole runs the test program as another program if the environment asks for it. Test files
// that need this set it; otherwise it is nil.
var otherRole func()

func TestMain(m *testing.M) {
	if otherRole != nil {
		otherRole()
	}
	clitest.Main(m, clitest.Weir(Command, dead.Command, fanout.Command, group.Command, put.Command, stores.Command, stream.Command, tail.Command))
}
