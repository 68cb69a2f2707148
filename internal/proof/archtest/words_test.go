package archtest

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// gone maps each obscure name that the code must not use again to the name that replaced it.
var gone = map[string]string{
	"Hears": "Listener", "Hearing": "ListenerFuncs", "aloft": "underWay", "brisk": "bringing", "frugality": "shortageWait",
	"Untold": "OutOfDate", "reborn": "recreated", "births": "Catalog", "errands": "waitQueue", "vigil": "watched",
	"Owe": "TakeExcess", "lacking": "shortage", "fared": "noteHandled", "joins": "register", "rebirth": "recreated",
	"vitals": "supervise.Shard", "naming": "streams.Set",
}

// longestComment is the maximum width of a comment in columns. A tab counts as four columns.
const longestComment = 100

// preformatted matches comment lines that cannot be wrapped: code, pictures and directives.
var preformatted = regexp.MustCompile(`^//(\t|    |go:|line |nolint)`)

func TestNamesAndComments(t *testing.T) {
	t.Parallel()
	files := goFiles(t)
	if len(files) < 500 {
		t.Fatalf("found %d Go files, there are more", len(files))
	}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range slices.Concat(wideComments(src), goneNames(t, name, src)) {
			t.Errorf("%s: %s", strings.TrimPrefix(filepath.ToSlash(name), root+"/"), p)
		}
	}
}

func TestWhatIsWrongWithNamesAndComments(t *testing.T) {
	t.Parallel()
	wide := "// " + strings.Repeat("word ", 20)
	src := []byte("package p\n\n" + wide + "\n\tvar x int // fine\n\n//\t" + wide + "\n\n// Output:\n" + wide + "\n")
	if got := wideComments(src); len(got) != 1 || !strings.HasPrefix(got[0], "line 3 ") {
		t.Errorf("%q", got)
	}
	if got := goneNames(t, "x.go", []byte("package p\n\nfunc f(aloft int) { fared := aloft; _ = fared }\n")); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// goFiles returns the Go files of the repository.
func goFiles(t *testing.T) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && path != root:
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go"):
			all = append(all, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// wideComments returns the comment lines that are too wide.
func wideComments(src []byte) (all []string) {
	lines := bufio.NewScanner(bytes.NewReader(src))
	lines.Buffer(nil, 1<<20)
	output := false
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimLeft(lines.Text(), "\t")
		tabs := len(lines.Text()) - len(line)
		if !strings.HasPrefix(line, "//") {
			output = false
			continue
		}
		output = output || strings.HasPrefix(line, "// Output:") || strings.HasPrefix(line, "// Unordered output:")
		if width := 4*tabs + utf8.RuneCountInString(line); width > longestComment && !output && !preformatted.MatchString(line) {
			all = append(all, fmt.Sprintf("line %d is a comment of %d columns", n, width))
		}
	}
	return all
}

// goneNames returns the names in gone that a file declares.
func goneNames(t *testing.T, name string, src []byte) (all []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && gone[id.Name] != "" && !seen[id.Name] {
			seen[id.Name] = true
			all = append(all, "the name "+id.Name+" is not to come back: "+gone[id.Name])
		}
		return true
	})
	return all
}
