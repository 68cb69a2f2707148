package guide

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// pages are the pages whose Go blocks are files, with the folder of each in the module of the test.
func pages(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]string{"../../README.md": "readme", "../testing.md": "testing"}
	for _, name := range names {
		folders[name] = strings.TrimSuffix(name, ".md")
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

// declarations returns the top-level declarations of a block, with their comments. It leaves out
// imports.
func declarations(t *testing.T, block string) (texts []string) {
	t.Helper()
	if !strings.HasPrefix(block, "package ") {
		return []string{strings.TrimSuffix(block, "\n")}
	}
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
