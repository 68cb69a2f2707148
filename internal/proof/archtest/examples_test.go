package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// withoutExample contains the entry points of public packages that need no example, with the
// reason. A name ending in "." stands for all entry points of a package.
var withoutExample = map[string]string{
	"deadletter/boxtest.":   "its functions test a destination; they need a *testing.T, which examples do not have",
	"kinesistest.NewServer": "Start is the same without a *testing.T, and has an example",
	"sink/sinktest.":        "its functions test a database; they need a *testing.T, which examples do not have",
	"store/storetest.":      "its functions test a store; they need a *testing.T, which examples do not have",
	"health.Activities":     "a list for tables and tests",
	"health.Reasons":        "a list for tables and tests",
	"health.ReportedReason": "the command and the dashboard translate stored words with it",
	"health.ReportedWords":  "the command and the dashboard translate stored words with it",
	"lease.CheckApp":        "part of the contract of stores, which storetest tests",
	"lease.CheckFormat":     "part of the contract of stores, which storetest tests",
	"lease.Fingerprint":     "part of the contract of stores, which storetest tests",
	"lease.NewerFormat":     "part of the contract of stores, which storetest tests",
	"lease.ParseDeaths":     "stores and views parse with it; a program does not start with it",
	"lease.ParseTimes":      "stores and views parse with it; a program does not start with it",
	"lease.DescribeStreams": "the texts of the command and the dashboard",
	"lease.StreamsDiffer":   "the texts of the command and the dashboard",
	"lease.TimesOf":         "the texts of the command and the dashboard",
	"lease.Unread":          "a part of Plan, which has an example",
	"lease.Unknown":         "a part of Plan, which has an example",
	"lease.Waiting":         "a part of Plan, which has an example",
	"lease.Withheld":        "a part of Plan, which has an example",
	"lease.StreamsOf":       "a part of Plan, which has an example",
	"..IsRejected":          "package queue calls handlers with it; a program does not start with it",
	"..StopCause":           "package queue calls handlers with it; a program does not start with it",
	"lease.NewWatch":        "workers watch heartbeats with it; a program does not start with it",
}

// methodsToStartWith contains the methods with which a program starts after a constructor.
var methodsToStartWith = []string{
	"weir.Consumer.Run", "weir.Consumer.RunShards", "weir.Reader.Records",
}

// notRun contains the packages whose examples have no output, because they need a server that the
// tests of the package do not start, or a *testing.T.
var notRun = map[string]bool{
	"deadletter/sqlletters": true, "deadletter/sqsletters": true, "payload/s3payload": true, "sink/s3sink": true,
	"sink/s3sink/s3letters": true, "sink/sqlsink": true, "store/dynamostore": true,
	"store/redisstore": true, "store/sqlstore": true, "weirtest": true,
}

// TestEntryPointsHaveExamples checks that an example uses each exported function of the public
// packages, each method of methodsToStartWith, and each group of options. The examples must run.
func TestEntryPointsHaveExamples(t *testing.T) {
	t.Parallel()
	public := publicPackages(t)
	used := map[string]bool{}
	for _, dir := range slices.Sorted(maps.Keys(public)) {
		p := public[dir]
		for _, point := range p.entryPoints() {
			reason := withoutExample[dir+"."+point]
			all := withoutExample[dir+"."]
			switch {
			case all != "":
				used[dir+"."] = true
			case p.hasExample(point) && reason != "":
				t.Errorf("%s.%s has an example: remove it from withoutExample", dir, point)
			case reason != "":
				used[dir+"."+point] = true
			case !p.hasExample(point):
				t.Errorf("%s.%s has no example: write one, or give the reason in withoutExample", dir, point)
			}
		}
		for _, name := range p.silentExamples {
			if !notRun[dir] {
				t.Errorf("%s: %s has no output, so no test runs it", dir, name)
			}
		}
	}
	for name := range withoutExample {
		if !used[name] {
			t.Errorf("withoutExample contains %s, which does not exist", name)
		}
	}
	for _, name := range methodsToStartWith {
		if _, method, _ := strings.Cut(name, "."); !public["."].attached[strings.Replace(method, ".", "_", 1)] {
			t.Errorf("%s has no example of its own", name)
		}
	}
	groups := public["."].optionGroups()
	if len(groups) < 4 {
		t.Errorf("found the groups of options %q, there are more", groups)
	}
	for _, group := range groups {
		if !public["."].hasExample(group) {
			t.Errorf("weir.%s, a group of options, has no example", group)
		}
	}
}

// TestEntryPointsWithoutExamples checks that missing examples are found.
func TestEntryPointsWithoutExamples(t *testing.T) {
	t.Parallel()
	p := &publicPackage{mentioned: map[string]bool{}, attached: map[string]bool{}}
	add := func(name, source string) {
		f, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		p.add(f, strings.HasSuffix(name, "_test.go"))
	}
	add("x.go", "package x\n\nfunc New() {}\nfunc Old() {}\nfunc Lone() {}\nfunc own() {}\nfunc (T) Go() {}\ntype T int\n")
	add("x_test.go", "package x_test\n\nfunc ExampleT_Go() {\n\tbuild()\n\ty.Lone()\n\t// Output: 1\n}\nfunc build() { x.New() }\n"+
		"func ExampleOld() {}\nfunc TestX() { x.Lone() }\n")
	if got := p.entryPoints(); !slices.Equal(got, []string{"Lone", "New", "Old"}) {
		t.Errorf("entry points %q", got)
	}
	if !p.hasExample("New") || !p.hasExample("Old") || p.hasExample("Lone") || !p.attached["T_Go"] {
		t.Errorf("attached %v, mentioned %v", p.attached, p.mentioned)
	}
	if !slices.Equal(p.silentExamples, []string{"ExampleOld"}) {
		t.Errorf("silent examples %q", p.silentExamples)
	}
}

// publicPackage contains the syntax of a package that users can import.
type publicPackage struct {
	files          []*ast.File     // without tests
	mentioned      map[string]bool // names that examples select, such as New of weir.New
	attached       map[string]bool // the rest of the examples' names, such as Consumer_Run
	silentExamples []string        // examples without output
}

// add adds a file of the package.
func (p *publicPackage) add(f *ast.File, test bool) {
	if !test {
		p.files = append(p.files, f)
		return
	}
	for _, d := range f.Decls {
		fn, is := d.(*ast.FuncDecl)
		if !is || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Example") {
			continue
		}
		p.attached[strings.TrimPrefix(fn.Name.Name, "Example")] = true
		// The example may call functions of its file.
		calls := map[string]bool{}
		ast.Inspect(fn, func(n ast.Node) bool {
			if id, is := n.(*ast.Ident); is {
				calls[id.Name] = true
			}
			return true
		})
		for _, d := range f.Decls {
			if helper, is := d.(*ast.FuncDecl); is && calls[helper.Name.Name] || d == fn {
				p.addMentions(helper, strings.TrimSuffix(f.Name.Name, "_test"))
			}
		}
		if !slices.ContainsFunc(f.Comments, func(c *ast.CommentGroup) bool {
			text := strings.ToLower(c.Text())
			return c.Pos() > fn.Body.Pos() && c.End() < fn.Body.End() &&
				(strings.HasPrefix(text, "output:") || strings.HasPrefix(text, "unordered output:"))
		}) {
			p.silentExamples = append(p.silentExamples, fn.Name.Name)
		}
	}
}

// addMentions adds the names of the package that a function uses.
func (p *publicPackage) addMentions(fn *ast.FuncDecl, pkg string) {
	ast.Inspect(fn, func(n ast.Node) bool {
		if s, is := n.(*ast.SelectorExpr); is {
			if x, is := s.X.(*ast.Ident); is && x.Name == pkg {
				p.mentioned[s.Sel.Name] = true
			}
		}
		return true
	})
}

// entryPoints returns the names of the exported functions, sorted.
func (p *publicPackage) entryPoints() (all []string) {
	for _, f := range p.files {
		for _, d := range f.Decls {
			if fn, is := d.(*ast.FuncDecl); is && fn.Recv == nil && fn.Name.IsExported() {
				all = append(all, fn.Name.Name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// optionGroups returns the struct types of the package that are the types of fields of Options.
func (p *publicPackage) optionGroups() (all []string) {
	structs := p.structs()
	for _, field := range structs["Options"].Fields.List {
		if id, is := field.Type.(*ast.Ident); is && structs[id.Name] != nil {
			all = append(all, id.Name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// structs returns the struct types of the package by name.
func (p *publicPackage) structs() map[string]*ast.StructType {
	all := map[string]*ast.StructType{}
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, is := n.(*ast.TypeSpec); is {
				if s, is := spec.Type.(*ast.StructType); is {
					all[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	return all
}

// hasExample reports whether an example is attached to a name or uses it.
func (p *publicPackage) hasExample(name string) bool {
	if p.mentioned[name] || p.attached[name] {
		return true
	}
	for attached := range p.attached {
		if strings.HasPrefix(attached, name+"_") {
			return true
		}
	}
	return false
}

// publicPackages parses the packages that users can import, by folder.
func publicPackages(t *testing.T) map[string]*publicPackage {
	t.Helper()
	all := map[string]*publicPackage{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		inside = filepath.ToSlash(inside)
		if d.IsDir() {
			hidden := inside != "." && (strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_"))
			if hidden || slices.Contains([]string{"internal", "cmd", "scripts", "docs", "testdata", "deploy", "node_modules", "bin"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(inside))
		if all[dir] == nil {
			all[dir] = &publicPackage{mentioned: map[string]bool{}, attached: map[string]bool{}}
		}
		all[dir].add(f, strings.HasSuffix(name, "_test.go"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("found %d public packages, there are more", len(all))
	}
	return all
}
