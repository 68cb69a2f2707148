package storetest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// Each list of cases belongs to a group of the suite. Go does not report a package variable that
// nothing uses.
func TestEachListOfCasesIsRun(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	lists, uses := map[string]bool{}, map[string]int{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				uses[n.Name]++
			case *ast.ValueSpec:
				if len(n.Values) == 1 && isCases(n.Values[0]) {
					lists[n.Names[0].Name] = true
				}
			}
			return true
		})
	}
	if len(lists) < 20 {
		t.Errorf("only %d lists of cases were found", len(lists))
	}
	for name := range lists {
		if uses[name] < 2 {
			t.Errorf("no group of the suite runs %s", name)
		}
	}
}

// isCases reports whether an expression is a literal of []testCase.
func isCases(e ast.Expr) bool {
	literal, ok := e.(*ast.CompositeLit)
	if !ok {
		return false
	}
	array, ok := literal.Type.(*ast.ArrayType)
	if !ok {
		return false
	}
	of, ok := array.Elt.(*ast.Ident)
	return ok && of.Name == "testCase"
}
