package consume

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/cmd/weir/internal/clitest"
	"github.com/weir-go/weir/kinesistest"
)

// If the service stops answering, the command reports this and keeps running. This also applies to
// reads over the library's own connections.
func TestLaterSilenceIsTold(t *testing.T) {
	t.Parallel()
	for args, action := range map[string]string{
		"tail --stream s": "GetRecords",
		"consume --stream s --app a --store memory:": "GetRecords",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			server, endpoint := clitest.Kinesis(t)
			server.CreateStream("s", 2)
			server.Control(action, func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{Delay: 5 * time.Minute} })
			c := clitest.Start(t, "", append(strings.Fields(args), endpoint, "--connect-timeout=1s")...)
			c.Err.Await(t, "a word", func(s string) bool { return strings.Contains(s, "waiting for Kinesis at "+server.URL()+", ") })
			select {
			case <-c.Done:
				t.Errorf("it ended with %d: %s", c.Code, c.Err)
			default:
			}
			c.Interrupt(t)
		})
	}
}
