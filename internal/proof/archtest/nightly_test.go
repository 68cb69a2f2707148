package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The page about the complete proof must have one row for each stage of the script, in the same
// order, and no other rows.
func TestTheNightlyPageHasEachStage(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(filepath.Join(root, "scripts", "nightly.sh"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "internal", "proof", "NIGHTLY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(script), "stages='")
	list, _, _ = strings.Cut(list, "'")
	var stages, rows []string
	for line := range strings.Lines(list) {
		stages = append(stages, strings.Fields(line)[0])
	}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && !strings.HasPrefix(line, "| --- ") && !strings.HasPrefix(line, "| Stage ") {
			rows = append(rows, strings.TrimSpace(cells[1]))
		}
	}
	if len(stages) < 15 || !slices.Equal(stages, rows) {
		t.Errorf("the script has the stages\n%q\nthe page has rows for\n%q", stages, rows)
	}
}
