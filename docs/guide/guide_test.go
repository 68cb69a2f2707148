// Package guide contains the code on the pages of the guide, as tests.
package guide

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/proof/leaktest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

// sources are the files whose code the pages show: tests, and programs that need drivers.
var sources = []string{"*_test.go", "../../cmd/weir/internal/first/main.go", "../../cmd/weir/internal/ledger/ledger.go", "../../cmd/weir/internal/account/main.go", "../../sink/s3sink/example_test.go", "../../otelweir/example_test.go", "../../promweir/example_test.go", "../../emfweir/example_test.go"}

// Each Go block on a page must occur unchanged in code that runs.
func TestThePagesShowCodeThatRuns(t *testing.T) {
	var code strings.Builder
	for _, pattern := range sources {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: there is no such file: %v", pattern, err)
		}
		for _, name := range names {
			code.WriteString("\n" + read(t, name))
		}
	}
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, page := range pages {
		blocks := strings.Split(read(t, page), "\n```go\n")[1:]
		for i, block := range blocks {
			block, _, closed := strings.Cut(block, "```")
			if !closed || !strings.Contains(code.String(), "\n"+block) {
				t.Errorf("block %d of %s is in no code that runs:\n%s", i+1, page, block)
			}
		}
		shown += len(blocks)
	}
	if shown < 10 {
		t.Errorf("the pages have %d blocks of Go, there are more", shown)
	}
}

// The index must link to each page.
func TestTheIndexNamesEachPage(t *testing.T) {
	index := read(t, "README.md")
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if page != "README.md" && !strings.Contains(index, "]("+page+")") {
			t.Errorf("README.md does not name %s", page)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
