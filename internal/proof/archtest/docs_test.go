package archtest

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each exported name of these packages has a doc comment. A field may also be named in the comment
// of its struct or of another field.
func TestExportedNamesAreDocumented(t *testing.T) {
	for _, dir := range []string{".", "health"} {
		files := token.NewFileSet()
		var parsed []*ast.File
		parsedPackages, err := parser.ParseDir(files, filepath.Join("../../..", dir), func(f fs.FileInfo) bool { //nolint:staticcheck // build tags do not matter here
			return !strings.HasSuffix(f.Name(), "_test.go") && f.Name() != "events.go"
		}, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parsedPackages {
			for _, f := range p.Files {
				parsed = append(parsed, f)
			}
		}
		for _, name := range undocumented(t, files, parsed) {
			t.Errorf("%s: %s has no doc comment", dir, name)
		}
	}
}

func TestAMissingDocCommentIsFound(t *testing.T) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "a.go", `package a

// A is a type. B is one of its fields.
type A struct {
	B int
	C int // a field
	D int
}

func (A) M() {}

func F() {}

// These are constants.
const (
	X = 1
	Y = 2 // two
)

func g() {}
`, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	found := strings.Join(undocumented(t, files, []*ast.File{f}), " ")
	if found != "X F A.D A.M" {
		t.Errorf("found %q", found)
	}
}

// undocumented returns the exported names without a doc comment.
func undocumented(t *testing.T, files *token.FileSet, parsed []*ast.File) (names []string) {
	t.Helper()
	p, err := doc.NewFromFiles(files, parsed, "example.com/a", doc.PreserveAST)
	if err != nil {
		t.Fatal(err)
	}
	values := func(all []*doc.Value) {
		for _, v := range all {
			for _, s := range v.Decl.Specs {
				s, ok := s.(*ast.ValueSpec)
				if !ok {
					continue
				}
				alone := len(v.Decl.Specs) == 1 && v.Doc != ""
				if s.Names[0].IsExported() && s.Doc == nil && s.Comment == nil && !alone {
					names = append(names, s.Names[0].Name)
				}
			}
		}
	}
	funcs := func(of string, all []*doc.Func) {
		for _, f := range all {
			if f.Doc == "" {
				names = append(names, of+f.Name)
			}
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs("", p.Funcs)
	for _, typ := range p.Types {
		if typ.Doc == "" {
			names = append(names, typ.Name)
		}
		values(typ.Consts)
		values(typ.Vars)
		funcs("", typ.Funcs)
		names = append(names, fieldsWithoutDoc(typ)...)
		funcs(typ.Name+".", typ.Methods)
	}
	return names
}

// fieldsWithoutDoc returns the exported fields of a struct that no comment in it names.
func fieldsWithoutDoc(of *doc.Type) (names []string) {
	for _, s := range of.Decl.Specs {
		typ, ok := s.(*ast.TypeSpec)
		if !ok || typ.Name.Name != of.Name {
			continue
		}
		body, ok := typ.Type.(*ast.StructType)
		if !ok {
			continue
		}
		comments := of.Doc
		for _, f := range body.Fields.List {
			comments += f.Doc.Text() + f.Comment.Text()
		}
		for _, f := range body.Fields.List {
			for _, n := range f.Names {
				named := regexp.MustCompile(`\b` + n.Name + `\b`).MatchString(comments)
				if n.IsExported() && f.Doc == nil && f.Comment == nil && !named {
					names = append(names, of.Name+"."+n.Name)
				}
			}
		}
	}
	return names
}
