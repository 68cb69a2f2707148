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
var sources = []string{
	"*_test.go", "../moving/*_test.go", "../../weirtest/*_test.go",
	"../../cmd/weir/internal/example/main.go", "../../cmd/weir/internal/first/main.go", "../../cmd/weir/internal/firstqueue/main.go",
	"../../cmd/weir/internal/ledger/*.go", "../../cmd/weir/internal/account/main.go",
	"../../internal/proof/integration/sinks/windows.go", "../../sink/s3sink/example_test.go", "../../otelweir/example*_test.go",
	"../../promweir/example_test.go", "../../emfweir/example_test.go", "../../payload/example_test.go", "../../payload/s3payload/example_test.go",
}

// Each declaration in the Go blocks of the guide must occur unchanged in code that runs. Tests on a
// page run by themselves.
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
	for page := range pages(t) {
		for i, block := range goBlocks(t, page) {
			if isTest(block) {
				continue
			}
			for _, declaration := range declarations(t, block) {
				if !strings.Contains(code.String(), "\n"+declaration+"\n") {
					t.Errorf("block %d of %s has code that does not run:\n%s", i+1, page, declaration)
				}
			}
		}
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
