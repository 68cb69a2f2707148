package doctor

import (
	"strings"
	"testing"

	"github.com/weir-go/weir/lease"
)

// The doctor does not ask the leader to give out leases of a stream that no live worker reads. If
// the stream is paused, it finds no fault with them.
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
