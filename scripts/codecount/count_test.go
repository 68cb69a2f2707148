package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestCounts(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"a/a.go": {Data: []byte("package a\n\ntype T struct{ x, y int }\n\nconst C, d = 1, 2\n\n" +
			"func (t *T) M() int {\n\tif t.x > 0 {\n\t\treturn 1\n\t}\n\treturn 2\n}\n\nfunc f() { _ = 1 }\n\ntype g[K any] struct{}\n\nfunc (g[K]) N() {}\n")},
		"a/a_test.go":           {Data: []byte("package a\n\nfunc F() {}\n")},
		"a/testdata/b.go":       {Data: []byte("no Go\n")},
		".deps/x.go":            {Data: []byte("no Go\n")},
		"internal/proof/p.go":   {Data: []byte("package proof\n\nfunc Long() {\n\n\n\n\n\n\n\n}\n")},
		"internal/proof/README": {Data: []byte("no Go\n")},
	}
	got, err := countTree(files)
	if err != nil {
		t.Fatal(err)
	}
	// The statements are an if, two returns and the assignment. T, C and M are exported.
	if want := (counts{files: 1, lines: 18, testLines: 3, exported: 3, statements: 4}); got.packages["a"] != want {
		t.Errorf("package a: %+v, want %+v", got.packages["a"], want)
	}
	var out strings.Builder
	got.printLargest(&out, "function", 2, got.packages)
	got.printLargest(&out, "struct", 1, got.packages)
	if want := "    6  a T.M\n    1  a f\n    2  a T\n"; out.String() != want {
		t.Errorf("the largest are\n%s, want\n%s", out.String(), want)
	}
	out.Reset()
	print(&out, true, []string{"a", "internal/proof"}, tree{}, got)
	if last := out.String()[strings.Index(out.String(), "all but"):]; !strings.Contains(last, "0 →    18") {
		t.Errorf("the total is %q", last)
	}
}

func TestAFileThatDoesNotParseIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := countTree(fstest.MapFS{"a/a.go": {Data: []byte("package")}}); err == nil {
		t.Error("no error")
	}
}
