package main

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir/kinesistest"
)

// A service that falls silent after its first answers is told of, though nothing ends by it: also
// where the library reads over connections of its own.
func TestLaterSilenceIsTold(t *testing.T) {
	t.Parallel()
	for args, action := range map[string]string{
		"tail --stream s": "GetRecords",
		"consume --stream s --app a --store memory:": "GetRecords",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			server, endpoint := kinesisServer(t)
			server.CreateStream("s", 2)
			server.Control(action, func(*kinesistest.Call) kinesistest.Fault { return kinesistest.Fault{Delay: 5 * time.Minute} })
			c := start(t, "", append(strings.Fields(args), endpoint, "--connect-timeout=1s")...)
			c.err.await(t, "a word", func(s string) bool { return strings.Contains(s, "waiting for Kinesis at "+server.URL()+", ") })
			select {
			case <-c.done:
				t.Errorf("it ended with %d: %s", c.code, c.err)
			default:
			}
			c.interrupt(t)
		})
	}
}
