package moving_test

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

// theirs returns the options and setup functions of the other clients, by page.
func theirs(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("options.txt")
	if err != nil {
		t.Fatal(err)
	}
	all, page, sourced := map[string][]string{}, "", true
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "["):
			page, sourced = strings.Trim(line, "[]"), false
		case strings.HasPrefix(line, "# "):
			sourced = true
		case page != "":
			if all[page] = append(all[page], strings.Fields(line)...); !sourced {
				t.Fatalf("the options of %s have no source", page)
			}
		}
	}
	return all
}

// multilang is the page whose table the code of weir multilang generates. Its options are called
// properties.
const multilang = "multilang.md"

// cells returns the cells of the table of options on a page.
func cells(t *testing.T, page string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	heading := "\n## Options\n"
	if page == multilang {
		heading = "\n## Properties\n"
	}
	_, after, has := strings.Cut(string(text), heading)
	if !has {
		t.Errorf("%s has no table of options", page)
	}
	section, _, _ := strings.Cut(after, "\n## ")
	for line := range strings.Lines(section) {
		row := strings.Split(strings.Trim(line, "| \n"), " | ")
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| ---") {
			rows = append(rows, row)
		}
	}
	return rows
}

// Each option of another client must be in the first column of its page's table, with a non-empty
// last column.
func TestTheTablesHaveEachOption(t *testing.T) {
	pages := theirs(t)
	if len(pages) != 6 {
		t.Errorf("there are options of %d clients, want 6", len(pages))
	}
	for page, names := range pages {
		var told []string
		for _, row := range cells(t, page) {
			if ours := row[len(row)-1]; len(row) < 2 || strings.TrimSpace(ours) == "" {
				t.Errorf("%s: nothing is said beside %q", page, row)
			}
			for _, code := range codes(row[0]) {
				told = append(told, code)
				told = append(told, strings.FieldsFunc(code, func(r rune) bool {
					return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9')
				})...)
			}
		}
		for _, name := range names {
			if !slices.Contains(told, name) {
				t.Errorf("%s says nothing of %s", page, name)
			}
		}
	}
}

// elsewhere are the codes in the last column that are not weir's.
var elsewhere = []string{"ctx", "iter.Pull2", "testing/synctest", "@S3Item", "GetRecords", "--role"}

// Each option, function and command in the last column must exist in weir.
func TestTheTablesNameWhatWeirHas(t *testing.T) {
	have := declared(t, "", "event", "lease", "provision", "store/dynamostore", "store/memstore", "store/sqlstore", "emfweir", "promweir")
	for page := range theirs(t) {
		if page == multilang {
			continue // cmd/weir/internal/multilang has the code beside each row
		}
		for _, row := range cells(t, page) {
			for _, code := range codes(row[len(row)-1]) {
				name, _, _ := strings.Cut(strings.TrimPrefix(code, "weir."), "(")
				name, _, _ = strings.Cut(name, ":")
				if command, is := strings.CutPrefix(name, "weir "); is {
					folder, _, _ := strings.Cut(command, " ")
					if _, err := os.Stat(filepath.Join("..", "..", "cmd", "weir", "internal", folder)); err != nil && folder != "store" {
						t.Errorf("%s: there is no command %s", page, code)
					}
					continue
				}
				if !have[name] && !slices.Contains(elsewhere, name) && !isPackage(name) {
					t.Errorf("%s: weir has no %s", page, code)
				}
			}
		}
	}
}

func isPackage(name string) bool {
	for _, folder := range []string{"", "store"} {
		if _, err := os.Stat(filepath.Join("..", "..", folder, name)); err == nil {
			return true
		}
	}
	return false
}

// declared returns the exported names of packages: types, functions, constants, fields and methods,
// by themselves, after their type, and after their package.
func declared(t *testing.T, folders ...string) map[string]bool {
	t.Helper()
	have := map[string]bool{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join("..", "..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", folder, err)
		}
		prefix := filepath.Base(folder) + "."
		add := func(names ...string) {
			name := strings.Join(names, ".")
			have[name], have[prefix+name], have[names[len(names)-1]] = true, true, true
		}
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					add(append(receiver(d), d.Name.Name)...)
				case *ast.GenDecl:
					for _, spec := range d.Specs {
						addSpec(spec, add)
					}
				}
			}
		}
	}
	return have
}

func addSpec(spec ast.Spec, add func(names ...string)) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, n := range spec.Names {
			add(n.Name)
		}
	case *ast.TypeSpec:
		add(spec.Name.Name)
		fields := &ast.FieldList{}
		switch of := spec.Type.(type) {
		case *ast.StructType:
			fields = of.Fields
		case *ast.InterfaceType:
			fields = of.Methods
		}
		for _, field := range fields.List {
			for _, n := range field.Names {
				add(spec.Name.Name, n.Name)
			}
		}
	}
}

// receiver returns the name of a method's type, or nothing for a function.
func receiver(d *ast.FuncDecl) []string {
	if d.Recv == nil {
		return nil
	}
	of := d.Recv.List[0].Type
	if star, is := of.(*ast.StarExpr); is {
		of = star.X
	}
	if name, is := of.(*ast.Ident); is {
		return []string{name.Name}
	}
	return nil
}

// codes returns the texts between backticks.
func codes(s string) (all []string) {
	for i, part := range strings.Split(s, "`") {
		if i%2 == 1 {
			all = append(all, part)
		}
	}
	return all
}
