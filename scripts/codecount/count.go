package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// counts contains the counts of one package.
type counts struct {
	files, lines, testLines int
	exported, statements    int // only in product code
}

func (c *counts) add(d counts) {
	c.files += d.files
	c.lines += d.lines
	c.testLines += d.testLines
	c.exported += d.exported
	c.statements += d.statements
}

// item is a function with its number of lines, or a struct with its number of fields.
type item struct {
	kind, pkg, name string
	size            int
}

// tree contains the counts of all packages, by their folders.
type tree struct {
	packages map[string]counts
	items    []item
}

// countTree counts the Go files in a file system. It skips hidden folders and testdata.
func countTree(files fs.FS) (tree, error) {
	t := tree{packages: map[string]counts{}}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && name != "." && (strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules") {
			return fs.SkipDir
		}
		if d.IsDir() || path.Ext(name) != ".go" {
			return nil
		}
		source, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return t.addFile(name, source)
	})
	return t, err
}

func (t *tree) addFile(name string, source []byte) error {
	pkg := path.Dir(name)
	c := t.packages[pkg]
	defer func() { t.packages[pkg] = c }()
	lines := bytes.Count(source, []byte("\n"))
	if strings.HasSuffix(name, "_test.go") {
		c.testLines += lines
		return nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	c.files++
	c.lines += lines
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			size := set.Position(d.End()).Line - set.Position(d.Pos()).Line + 1
			receiver := receiverOf(d)
			t.items = append(t.items, item{"function", pkg, strings.TrimPrefix(receiver+"."+d.Name.Name, "."), size})
			if d.Name.IsExported() && (receiver == "" || ast.IsExported(receiver)) {
				c.exported++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				c.exported += exportedOf(s)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt, *ast.EmptyStmt: // the statements of a block are counted instead
		case *ast.TypeSpec:
			if s, is := n.Type.(*ast.StructType); is {
				t.items = append(t.items, item{"struct", pkg, n.Name.Name, s.Fields.NumFields()})
			}
		case ast.Stmt:
			c.statements++
		}
		return true
	})
	return nil
}

// receiverOf returns the name of a method's type. It returns "" for a function.
func receiverOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	e := d.Recv.List[0].Type
	for {
		switch of := e.(type) {
		case *ast.StarExpr:
			e = of.X
		case *ast.IndexExpr:
			e = of.X
		case *ast.IndexListExpr:
			e = of.X
		case *ast.Ident:
			return of.Name
		default:
			return "?"
		}
	}
}

// exportedOf returns the number of exported names in a declaration. It does not count fields and
// methods.
func exportedOf(s ast.Spec) (n int) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			n++
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() {
				n++
			}
		}
	}
	return n
}

// printLargest prints the n largest functions or structs of some packages. It skips packages below
// internal/proof.
func (t tree) printLargest(out io.Writer, kind string, n int, of map[string]counts) {
	var all []item
	for _, i := range t.items {
		if _, wanted := of[i.pkg]; wanted && i.kind == kind && !isProof(i.pkg) {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b item) int {
		return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.pkg+a.name, b.pkg+b.name))
	})
	for _, i := range all[:min(n, len(all))] {
		fmt.Fprintf(out, "%5d  %s %s\n", i.size, i.pkg, i.name)
	}
}
