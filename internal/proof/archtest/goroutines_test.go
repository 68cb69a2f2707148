package archtest

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestGoroutinesAreLookedFor checks all packages that start goroutines, or that use such a package.
// Their tests must fail if goroutines outlive the tests.
func TestGoroutinesAreLookedFor(t *testing.T) {
	t.Parallel()
	files, _ := readRepository(t)
	for _, p := range unwatched(files) {
		t.Error(p)
	}
}

func TestPlantedGoroutines(t *testing.T) {
	t.Parallel()
	const (
		looks  = `import _ "` + module + `/internal/proof/leaktest"`
		starts = `func f() { go f() }`
	)
	type planted map[string]string // contents of files by path
	for _, c := range []struct {
		name  string
		files planted
		want  []string // prefixes of the packages that must be reported
	}{
		{"nothing is started", planted{"a/x.go": ``, "a/x_test.go": ``}, nil},
		{"tests that do not look", planted{"a/x.go": starts, "a/x_test.go": ``}, []string{"a "}},
		{"tests that do", planted{"a/x.go": starts, "a/x_test.go": looks}, nil},
		{"the test itself starts one", planted{"a/x_test.go": starts}, []string{"a "}},
		{"a WaitGroup", planted{"a/x_test.go": `import "sync"; func f(g *sync.WaitGroup) { g.Go(func() {}) }`}, []string{"a "}},
		{"a timer", planted{"a/x_test.go": `import "time"; var _ = time.AfterFunc(1, nil)`}, []string{"a "}},
		{"a context", planted{"a/x_test.go": `import c "context"; var _ = c.AfterFunc(nil, nil)`}, []string{"a "}},
		{"somebody else's AfterFunc", planted{"a/x_test.go": `import "time"; var _ time.Time; var _ = other.AfterFunc(1, nil)`}, nil},
		{"nobody tests it", planted{"a/x.go": starts}, []string{"a "}},
		{"others do, and do not look", planted{"a/x.go": starts, "b/x_test.go": `import _ "` + module + `/a"`}, []string{"a ", "b "}},
		{"others do, and look", planted{"a/x.go": starts, "b/x_test.go": looks + `; import _ "` + module + `/a"`}, nil},
		{"two steps away", planted{"a/x.go": starts, "b/x.go": `import _ "` + module + `/a"`, "c/x_test.go": looks + `; import _ "` + module + `/b"`}, nil},
		{"two steps away, unseen", planted{
			"a/x.go": starts, "a/x_test.go": looks, "b/x.go": `import _ "` + module + `/a"`, "c/x_test.go": `import _ "` + module + `/b"`,
		}, []string{"c "}},
		{"only the other's tests do", planted{"a/x_test.go": starts, "a/y_test.go": looks, "a/x.go": ``, "b/x_test.go": `import _ "` + module + `/a"`}, nil},
		{"a crowd looks for those whose tests it runs", planted{
			crowd + "/x.go": looks + "; " + starts, "b/x_test.go": `import _ "` + module + `/` + crowd + `"`,
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var files []file
			for name, source := range c.files {
				f, err := parse(name, []byte("package x\n"+source))
				if err != nil {
					t.Fatal(err)
				}
				files = append(files, f)
			}
			got := unwatched(files)
			if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

// crowd and commandTests are packages that provide TestMain for the packages that use them. That
// TestMain calls leaktest.Run.
const (
	crowd        = "internal/proof/integration/crowd"
	commandTests = "cmd/weir/internal/clitest"
)

// runsTests reports whether a package provides TestMain for the packages that use it.
func runsTests(pkg string) bool { return pkg == crowd || pkg == commandTests }

// unwatched returns the packages that start goroutines, or use such a package, but whose tests do
// not check for leaked goroutines.
func unwatched(files []file) (found []string) {
	type unit struct {
		spawns, tests, watched, counted bool // spawns does not count goroutines of tests
		testSpawns                      bool
		imports, testImports            []string // imported packages of this repository
	}
	units := map[string]*unit{}
	for _, f := range files {
		if units[f.pkg] == nil {
			units[f.pkg] = &unit{}
		}
		u := units[f.pkg]
		var ours []string
		for _, imported := range f.imports {
			if l := local(imported); l != imported && l != f.pkg {
				ours = append(ours, l)
			}
		}
		if !f.test {
			u.spawns = u.spawns || f.spawns
			u.imports = append(u.imports, ours...)
			continue
		}
		u.tests = true
		u.testSpawns = u.testSpawns || f.spawns
		u.testImports = append(u.testImports, ours...)
		u.watched = u.watched || slices.Contains(ours, "internal/proof/leaktest") || slices.ContainsFunc(ours, runsTests)
	}
	// reach returns a package and all packages of this repository that it or its tests use.
	reach := func(pkg string) map[string]bool {
		all := map[string]bool{}
		var add func(string)
		add = func(p string) {
			if all[p] || units[p] == nil || p == "internal/proof/leaktest" {
				return
			}
			all[p] = true
			for _, i := range units[p].imports {
				add(i)
			}
		}
		add(pkg)
		for _, i := range units[pkg].testImports {
			add(i)
		}
		return all
	}
	names := slices.Sorted(maps.Keys(units))
	for _, pkg := range names {
		u := units[pkg]
		if !u.tests || pkg == "internal/proof/leaktest" { // leaktest tests itself
			continue
		}
		starts := u.testSpawns
		for p := range reach(pkg) {
			starts = starts || units[p].spawns
			if u.watched {
				units[p].counted = true
			}
		}
		if starts && !u.watched {
			found = append(found, pkg+" starts goroutines, or works with what does, and has no TestMain with leaktest.Run")
		}
	}
	for _, pkg := range names {
		if u := units[pkg]; u.spawns && !u.tests && !u.counted {
			found = append(found, pkg+" starts goroutines, and no test that looks for them works with it")
		}
	}
	slices.Sort(found)
	return found
}
