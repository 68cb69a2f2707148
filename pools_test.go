package weir

import (
	"testing"

	"github.com/weir-go/weir/internal/proof/pooled"
)

// A handler that keeps no records gets a slice that is reused. A reused slice equals a new one.
func TestWhatIsUsedAgainIsAsGoodAsNew(t *testing.T) {
	d := new(handed)
	pooled.Fill(&d.copies)
	memory := d.copies
	d.release(false)
	for _, difference := range pooled.Differences(memory, new([]Record)) {
		t.Errorf("%s is not reset", difference)
	}
	if d.copies != nil {
		t.Error("two deliveries would share the records")
	}
}
