package weirtest_test

import (
	"os"
	"strings"
	"testing"
)

// The code in docs/testing.md is the code of these tests.
func TestThePageShowsTheseTests(t *testing.T) {
	page, err := os.ReadFile("../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, name := range []string{"till_test.go", "four_test.go", "queue_test.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	blocks := strings.Split(string(page), "```go\n")[1:]
	for i, block := range blocks {
		block, _, closed := strings.Cut(block, "```")
		_, block, _ = strings.Cut(block, "\n)\n\n") // skip the imports
		if !closed || !strings.Contains(code.String(), "\n"+block) {
			t.Errorf("block %d of the page is not in this package's tests:\n%s", i+1, block)
		}
	}
	if tests := strings.Count(code.String(), "\nfunc Test"); len(blocks) != tests+1 {
		t.Errorf("the page has %d blocks, want what is tested and its %d tests", len(blocks), tests)
	}
}
