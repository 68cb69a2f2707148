package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestExportedNamesHaveComments checks the doc comments of the public packages.
func TestExportedNamesHaveComments(t *testing.T) {
	t.Parallel()
	public := publicPackages(t)
	for _, dir := range slices.Sorted(maps.Keys(public)) {
		for _, f := range public[dir].files {
			for _, p := range commentProblems(f) {
				t.Errorf("%s: %s", dir, p)
			}
		}
	}
}

// TestWhatIsWrongWithDocComments checks that commentProblems detects violations.
func TestWhatIsWrongWithDocComments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, source, want string }{
		{"a function", "// F does it.\nfunc F() {}", ""},
		{"a function without a comment", "func F() {}", "F has no doc comment"},
		{"another name", "// G does it.\nfunc F() {}", "the comment of F begins with another word"},
		{"a type with an article", "// A T is it.\ntype T int", ""},
		{"a type", "type T int", "T has no doc comment"},
		{"a method", "// T is it.\ntype T int\n\nfunc (T) M() {}", "T.M has no doc comment"},
		{"a method of an unexported type", "type t int\n\nfunc (t) M() {}", ""},
		{"a constant of a group", "// The numbers.\nconst (\n\tA = 1\n\tB = 2\n)", ""},
		{"a constant", "const A = 1", "A has no doc comment"},
		{"a variable", "// B is it.\nvar A = 1", "the comment of A begins with another word"},
		{"an option", "// Options is it.\ntype Options struct {\n\t// N is it, from 1 to 9. The default is 3.\n\tN int\n}", ""},
		{"an option without a comment", "// Options is it.\ntype Options struct {\n\tN int\n}", "Options.N has no comment"},
		{"an option without a default", "// Options is it.\ntype Options struct {\n\t// N is it, from 1 to 9.\n\tN int\n}", "Options.N does not say what its zero value means"},
		{"an option without a number", "// Options is it.\ntype Options struct {\n\t// N is it. It has a default.\n\tN int\n}", "Options.N states no number"},
		{"fields with one comment", "// Options is it.\ntype Options struct {\n\t// Both are 1 by default.\n\tN, M int\n}", ""},
		{"a required text", "// Options is it.\ntype Options struct {\n\t// S is it.\n\tS string\n}", ""},
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n\n"+c.source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(commentProblems(f), ", "); got != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
}

// commentProblems returns what the doc comments of a file lack.
func commentProblems(f *ast.File) (all []string) {
	report := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	check := func(name string, doc *ast.CommentGroup) {
		_, base, isMethod := strings.Cut(name, ".")
		if !isMethod {
			base = name
		}
		switch {
		case doc.Text() == "":
			report("%s has no doc comment", name)
		case !regexp.MustCompile(`^((A|An|The) )?` + base + `\b`).MatchString(doc.Text()):
			report("the comment of %s begins with another word", name)
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if receiver := receiverOf(d); d.Name.IsExported() && (receiver == "" || ast.IsExported(receiver)) {
				check(strings.TrimPrefix(receiver+"."+d.Name.Name, "."), d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if !spec.Name.IsExported() {
						continue
					}
					doc := spec.Doc
					if doc == nil && len(d.Specs) == 1 {
						doc = d.Doc
					}
					check(spec.Name.Name, doc)
					if s, is := spec.Type.(*ast.StructType); is && isOptions(spec.Name.Name) {
						all = append(all, fieldProblems(spec.Name.Name, s)...)
					}
				case *ast.ValueSpec:
					all = append(all, valueProblems(d, spec, check)...)
				}
			}
		}
	}
	return all
}

// valueProblems returns what the comments of constants or variables lack. The constants or
// variables of a group may share one comment, or have comments at the ends of their lines.
func valueProblems(d *ast.GenDecl, spec *ast.ValueSpec, check func(string, *ast.CommentGroup)) (all []string) {
	for _, name := range spec.Names {
		switch {
		case !name.IsExported() || spec.Comment != nil:
		case spec.Doc == nil && d.Lparen.IsValid() && d.Doc != nil:
		case spec.Doc == nil && !d.Lparen.IsValid():
			check(name.Name, d.Doc)
		case len(spec.Names) == 1:
			check(name.Name, spec.Doc)
		case spec.Doc == nil:
			all = append(all, name.Name+" has no doc comment")
		}
	}
	return all
}

// isOptions reports whether a struct configures something.
func isOptions(name string) bool {
	groups := []string{"Batching", "Concurrency", "FailurePolicy", "Polling", "Retry", "Timing"}
	return strings.HasSuffix(name, "Options") || name == "Config" || slices.Contains(groups, name)
}

var (
	zeroMeans = regexp.MustCompile(`(?i)default|required|zero|\b0\b|\bwithout\b`)
	anyNumber = regexp.MustCompile(`\d|\[[A-Za-z.]+\]`) // or a link to what states it
)

// fieldProblems returns what the comments of the fields of options lack. Numbers and durations have
// a default, and a unit or a range.
func fieldProblems(name string, s *ast.StructType) (all []string) {
	for _, f := range s.Fields.List {
		text := f.Doc.Text() + f.Comment.Text()
		for _, id := range f.Names {
			switch field := name + "." + id.Name; {
			case !id.IsExported():
			case text == "":
				all = append(all, field+" has no comment")
			case !isNumber(f.Type):
			case !zeroMeans.MatchString(text):
				all = append(all, field+" does not say what its zero value means")
			case !anyNumber.MatchString(text):
				all = append(all, field+" states no number")
			}
		}
	}
	return all
}

// isNumber reports whether a type is a number or a duration.
func isNumber(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return regexp.MustCompile(`^(u?int|float)\d*$`).MatchString(x.Name)
	case *ast.SelectorExpr:
		return x.Sel.Name == "Duration"
	}
	return false
}

// receiverOf returns the name of the type of a method, or "" for a function.
func receiverOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	x := d.Recv.List[0].Type
	for {
		switch t := x.(type) {
		case *ast.StarExpr:
			x = t.X
		case *ast.IndexExpr:
			x = t.X
		case *ast.IndexListExpr:
			x = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}
