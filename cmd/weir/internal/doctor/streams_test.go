package doctor

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
)

// If no live worker reads a stream, the doctor does not expect the leader to assign its leases. If
// the stream is paused, the doctor reports only that.
func TestAStreamThatNoLiveWorkerReads(t *testing.T) {
	f := healthy(t)
	for _, session := range []string{"A", "B"} {
		f.worker(session, func(w *lease.Worker) { w.Streams = "1:logs" })
	}
	for _, id := range []string{"1", "2", "3"} {
		f.lease(id, free)
	}
	only := func(severity Severity, code string) Finding {
		t.Helper()
		found := Diagnose(*f)
		if len(found) != 1 || found[0].Severity != severity || found[0].Code != code || found[0].About != "s" {
			t.Fatalf("%+v, want one finding: %v %s s", found, severity, code)
		}
		return found[0]
	}
	said := only(Error, "streams-differ")
	if !strings.Contains(said.Text, "no live worker reads the stream s, although the application has 3 leases") || !strings.Contains(said.Do, "weir group pause --stream s") {
		t.Errorf("%+v", said)
	}
	f.First.Paused, f.Second.Paused = []string{"s"}, []string{"s"}
	only(Intended, "paused")
}
