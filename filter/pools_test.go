package filter

import (
	"testing"

	"github.com/weir-go/weir/internal/proof/pooled"
)

// A reused machine behaves like a new one.
func TestAMachineThatIsUsedAgainIsAsGoodAsNew(t *testing.T) {
	m := new(machine)
	pooled.Fill(m)
	m.forget()
	for _, d := range pooled.Differences(m, new(machine)) {
		t.Errorf("%s is not reset", d)
	}
}
