package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// migrates is part of the comment of each method Migrate, and of docs/security.md.
const migrates = "It may be repeated, and any number of processes may call it at the same time. " +
	"No other function of the library calls it. It needs permissions to create and change tables, " +
	"which workers and operators do not need: call it when a program is deployed, as a separate user."

// All packages that keep their data in tables are set up in the same way, and their documentation
// describes that in the same words.
func TestSettingUpIsUniform(t *testing.T) {
	t.Parallel()
	var found []string
	for _, name := range goFiles(t) {
		path := strings.TrimPrefix(filepath.ToSlash(name), root+"/")
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "internal/") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			switch fn.Name.Name {
			case "Migrate":
				found = append(found, f.Name.Name)
				if !strings.Contains(oneLine(fn.Doc.Text()), migrates) {
					t.Errorf("%s: the comment of Migrate does not say: %s", path, migrates)
				}
			case "Create", "CreateTable", "CreateTables", "Setup", "SetUp", "Init":
				t.Errorf("%s has a method %s: set-up is called Migrate", path, fn.Name.Name)
			}
		}
	}
	slices.Sort(found)
	if want := []string{"dynamostore", "sqlletters", "sqlsink", "sqlsink", "sqlstore"}; !slices.Equal(found, want) {
		t.Errorf("%v have Migrate, want %v", found, want)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(oneLine(string(page)), migrates) {
		t.Errorf("docs/security.md does not say: %s", migrates)
	}
}

// oneLine returns a text with single spaces in place of all white space.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
