package polling

import (
	"testing"

	"github.com/weir-go/weir/internal/proof/pooled"
)

// A reused object equals a new one.
func TestWhatIsUsedAgainIsAsGoodAsNew(t *testing.T) {
	p, fresh := new(part), new(part)
	pooled.Fill(p, "wire") // package codec tests its own reset
	p.reset()
	fresh.wire.Reset()
	for _, d := range pooled.Differences(p, fresh) {
		t.Errorf("%s of a part is not reset", d)
	}
	s, w := new(Scheduler), new(wave)
	pooled.Fill(w)
	s.land(w)
	for _, d := range pooled.Differences(w, new(wave)) {
		t.Errorf("%s of a wave is not reset", d)
	}
	l := new(conn)
	keeps := []string{"line", "calls", "ctx", "end"} // a conn exists to keep these
	pooled.Fill(l, keeps...)
	l.reset(3)
	for _, d := range pooled.Differences(l, &conn{used: 3}, keeps...) {
		t.Errorf("%s of a conn is not reset", d)
	}
}
