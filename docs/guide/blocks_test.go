package guide

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages maps each page whose Go blocks are files to the page's folder in the module of the test.
func pages(t *testing.T) map[string]string {
	t.Helper()
	folders := map[string]string{"../../README.md": "readme", "../testing.md": "testing"}
	for pattern, prefix := range map[string]string{"*.md": "", "../moving/*.md": "moving-"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) < 7 {
			t.Fatalf("%s finds %d pages: %v", pattern, len(names), err)
		}
		for _, name := range names {
			folders[name] = prefix + strings.TrimSuffix(filepath.Base(name), ".md")
		}
	}
	return folders
}

// goBlocks returns the Go blocks of a page.
func goBlocks(t *testing.T, page string) (blocks []string) {
	t.Helper()
	for i, block := range strings.Split(read(t, page), "\n```go\n")[1:] {
		block, _, closed := strings.Cut(block, "```")
		if !closed {
			t.Fatalf("%s: block %d has no end", page, i+1)
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// isTest reports whether a block contains tests.
func isTest(block string) bool { return strings.Contains(block, "\nfunc Test") }

// heredoc matches a file that a page creates in a shell.
var heredoc = regexp.MustCompile(`(?ms)^cat > (\S+) <<END\n(.*?)^END$`)

// extract writes each page into a folder of a new module, and returns the module's folder. The rule
// for the pages:
//
//   - Each Go block is a file, with its package clause and its imports.
//   - The blocks of a page are one package, so a block may use names from other blocks.
//   - A block that contains tests is a test file.
//   - Files that the page creates with "cat > NAME <<END" exist.
//
// The versions of other modules are those of this repository.
func extract(t *testing.T) string {
	t.Helper()
	module := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	mod, sum := "module example.com/guide\n\ngo 1.26.0\n", ""
	for _, folder := range []string{".", "cmd/weir", "deadletter/sqsletters", "otelweir", "payload/s3payload", "payload/zstdpayload", "promweir", "sink/s3sink", "store/redisstore"} {
		dir := filepath.Join(root, folder)
		path, _, _ := strings.Cut(strings.TrimPrefix(read(t, filepath.Join(dir, "go.mod")), "module "), "\n")
		mod += fmt.Sprintf("\nrequire %s v0.1.0\nreplace %[1]s => %q\n", path, filepath.ToSlash(dir))
		sum += read(t, filepath.Join(dir, "go.sum"))
	}
	write(t, filepath.Join(module, "go.mod"), mod)
	write(t, filepath.Join(module, "go.sum"), sum)

	shown := 0
	for page, folder := range pages(t) {
		dir := filepath.Join(module, folder)
		for i, block := range goBlocks(t, page) {
			if !strings.HasPrefix(block, "package ") {
				t.Errorf("block %d of %s does not begin with its package:\n%s", i+1, page, block)
				continue
			}
			name := fmt.Sprintf("block%d.go", i+1)
			if isTest(block) {
				name = fmt.Sprintf("block%d_test.go", i+1)
			}
			write(t, filepath.Join(dir, name), block)
			shown++
		}
		for _, file := range heredoc.FindAllStringSubmatch(read(t, page), -1) {
			write(t, filepath.Join(dir, filepath.FromSlash(file[1])), file[2])
		}
	}
	if shown < 50 {
		t.Errorf("the pages have %d blocks of Go, there are more", shown)
	}
	return module
}

// inModule returns a go command that runs in the extracted module. It needs no network if the
// modules that this repository requires are in the module cache.
func inModule(t *testing.T, module string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	return cmd
}

// Each Go block compiles as shown, with its imports and the names on its page, and is formatted.
func TestEachBlockCompiles(t *testing.T) {
	module := extract(t)
	if out, err := inModule(t, module, "vet", "./...").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), "gofmt", "-l", module).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("not formatted: %v\n%s", err, out)
	}
}

// declarations returns the top-level declarations of a block, with their comments. It leaves out
// imports.
func declarations(t *testing.T, block string) (texts []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", block, parser.ParseComments)
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, d := range file.Decls {
		begin, doc := d.Pos(), (*ast.CommentGroup)(nil)
		switch d := d.(type) {
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			doc = d.Doc
		case *ast.FuncDecl:
			doc = d.Doc
		}
		if doc != nil {
			begin = doc.Pos()
		}
		texts = append(texts, block[files.Position(begin).Offset:files.Position(d.End()).Offset])
	}
	return texts
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
