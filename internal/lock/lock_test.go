package lock

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/leaktest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

// docs/architecture.md lists the same ranks in the same order.
func TestRanksAreListed(t *testing.T) {
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	last := len(Ranks) + 1
	for _, r := range Ranks {
		if n := r.Number(); n != last-1 {
			t.Errorf("%s has the rank %d after %d", Name(r), n, last)
		}
		last = r.Number()
		if row := fmt.Sprintf("\n| %d | %s | ", last, Name(r)); !strings.Contains(string(text), row) {
			t.Errorf("docs/architecture.md has no row that begins with %q", strings.TrimSpace(row))
		}
	}
}
