package archtest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// root is the root of the repository, relative to this package.
const root = "../../.."

func TestImports(t *testing.T) {
	t.Parallel()
	files, modules := readRepository(t)
	if len(files) < 20 {
		t.Fatalf("found %d Go files, there are more", len(files))
	}
	for _, p := range problems(files) {
		t.Error(p)
	}
	for _, m := range modules {
		if !slices.Contains(nested, m) {
			t.Errorf("%s is a module of its own; if that cannot be avoided, add it to nested", m)
		}
	}
}

// TestRootRequiresTheSDKAlone checks the requirements of the root module. They must be only those
// parts of the AWS SDK that weir calls, and their dependencies.
func TestRootRequiresTheSDKAlone(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go mod edit -json: %v", err)
	}
	var mod struct {
		Module  struct{ Path string }
		Require []struct {
			Path     string
			Indirect bool
		}
		Replace, Tool []struct{ Path string }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	if mod.Module.Path != module || len(mod.Require) == 0 {
		t.Fatalf("%s requires %d modules", mod.Module.Path, len(mod.Require))
	}
	// The SDK's config module must not be in this list. It imports clients of the services that
	// supply credentials.
	used := []string{sdk, sdk + "/service/dynamodb", sdk + "/service/kinesis", "github.com/aws/smithy-go"}
	for _, m := range mod.Require {
		if !m.Indirect && !slices.Contains(used, m.Path) || !isSDK(m.Path) {
			t.Errorf("go.mod requires %s; only a nested module may", m.Path)
		}
	}
	if len(mod.Replace)+len(mod.Tool) > 0 {
		t.Errorf("go.mod replaces %d modules and names %d tools, which whoever uses the library would not get", len(mod.Replace), len(mod.Tool))
	}
}

// TestReleasesOfGo checks that go.mod, go.work, the Makefile and README.md state the same Go
// releases. The library requires the release before the one used for development. go vet checks
// that its code uses no newer functions of the standard library.
func TestReleasesOfGo(t *testing.T) {
	t.Parallel()
	// minors returns the numbers that a pattern matches in a file.
	minors := func(name, pattern string) (all []int) {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile("(?m)" + pattern).FindSubmatch(text)
		if found == nil {
			t.Fatalf("nothing in %s is like %q", name, pattern)
		}
		for _, digits := range found[1:] {
			n, err := strconv.Atoi(string(digits))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all = append(all, n)
		}
		return all
	}
	developed := minors("go.work", `^go 1\.(\d+)`)[0]
	want := []int{developed - 1, developed, developed + 1}
	oldest, readme, tested := minors("go.mod", `^go 1\.(\d+)`), minors("README.md", `Go are supported: 1\.(\d+) and 1\.(\d+)\. \(The library alone also builds with 1\.(\d+)\.\)`),
		minors("Makefile", `^OLDEST = go1\.(\d+)\..*\nNEWEST = go1\.(\d+)\.`)
	if oldest[0] != want[0] {
		t.Errorf("go.mod asks for Go 1.%d, go.work for 1.%d", oldest[0], developed)
	}
	if got := []int{readme[2], readme[0], readme[1]}; !slices.Equal(got, want) {
		t.Errorf("README.md says 1.%d, go.mod and go.work say 1.%d", got, want)
	}
	if got := []int{tested[0], developed, tested[1]}; !slices.Equal(got, want) {
		t.Errorf("make test-releases takes 1.%d, go.mod and go.work say 1.%d", got, want)
	}
}

// TestPlantedViolations checks that problems detects violations.
func TestPlantedViolations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, path, source string
		want               string // "" means no violation
	}{
		{"a lease may know shards", "lease/x.go", `import _ "` + module + `/shard"`, ""},
		{"shards know no leases", "shard/x.go", `import _ "` + module + `/lease"`, "shard imports lease"},
		{"nor do their tests", "shard/x_test.go", `import _ "` + module + `/lease"`, "shard imports lease"},
		{"a test may import its own package", "shard/x_test.go", `import _ "` + module + `/shard"`, ""},
		{"the core knows no AWS", "lease/x.go", `import _ "github.com/aws/aws-sdk-go-v2/aws"`, "lease imports github.com/aws"},
		{"the consumer does", "x.go", `import _ "github.com/aws/aws-sdk-go-v2/aws"`, ""},
		{"the consumer knows no store", "x.go", `import _ "` + module + `/store/memstore"`, ". imports store/memstore"},
		{"its tests do", "x_test.go", `import _ "` + module + `/store/memstore"`, ""},
		{"no store knows the consumer", "store/memstore/x.go", `import _ "` + module + `"`, "store/memstore imports ."},
		{"no store knows another", "store/sqlstore/x.go", `import _ "` + module + `/store/memstore"`, "store/sqlstore imports store/memstore"},
		{"the embedded server knows its parts", "kinesistest/x.go", `import _ "` + module + `/kinesistest/internal/engine"`, ""},
		{"and nothing else of ours", "kinesistest/internal/engine/x.go", `import _ "` + module + `/shard"`, "kinesistest/internal/engine imports shard"},
		{"the root module stays clean", "x_test.go", `import _ "example.com/assert"`, ". imports example.com/assert"},
		{"a nested one may import anything", "cmd/weir/x.go", `import _ "example.com/cli"`, ""},
		{"nobody imports the command", "internal/proof/integration/x.go", `import _ "` + module + `/cmd/weir/internal/put"`, "which nobody may"},
		{"a command imports another", "cmd/weir/internal/tail/x.go", `import _ "` + module + `/cmd/weir/internal/consume"`, "cmd/weir/internal/tail imports cmd/weir/internal/consume"},
		{"what commands share imports one", "cmd/weir/internal/cli/x.go", `import _ "` + module + `/cmd/weir/internal/group"`, "cmd/weir/internal/cli imports cmd/weir/internal/group"},
		{"a test of a command", "cmd/weir/internal/tail/x_test.go", `import _ "` + module + `/cmd/weir/internal/put"`, ""},
		{"but itself", "cmd/weir/x.go", `import _ "` + module + `/cmd/weir/internal/put"`, ""},
		{"nobody imports the simulation", "examples/a/x.go", `import _ "` + module + `/internal/proof/sim"`, "which nobody may"},
		{"a package without a row", "newcomer/x.go", ``, "newcomer has no row"},
		{"a name that begins like another", "shards/x.go", ``, "shards has no row"},
		{"a goroutine in the core", "lease/x.go", `func f() { go f() }`, "lease starts a goroutine"},
		{"one of a group", "lease/x.go", `import "sync"; func f(g *sync.WaitGroup) { g.Go(func() {}) }`, "lease starts a goroutine"},
		{"one of a timer", "lease/x.go", `import "time"; var _ = time.AfterFunc(1, nil)`, "lease starts a goroutine"},
		{"one of a context", "lease/x.go", `import "context"; var _ = context.AfterFunc(nil, nil)`, "lease starts a goroutine"},
		{"a clock in the core", "lease/x.go", `import clock "time"; var _ = clock.Now()`, "lease uses time.Now"},
		{"a test that looks for leaks", "kinesistest/x_test.go", `import _ "` + module + `/internal/proof/leaktest"`, ""},
		{"which is for tests", "lease/x.go", `import _ "` + module + `/internal/proof/leaktest"`, "lease imports internal/proof/leaktest"},
		{"times as values are fine", "shard/x.go", `import "time"; var _ = time.UnixMilli(1)`, ""},
		{"a logger in the core", "shard/x.go", `import _ "log/slog"`, "shard imports log/slog"},
		{"chance in a test of the core", "shard/x_test.go", `import _ "math/rand/v2"`, ""},
		{"cgo", "x.go", `import "C"`, "cgo"},
		{"a mutex without a rank", "internal/group/x.go", `import "sync"; var _ sync.Mutex`, "internal/group uses sync.Mutex"},
		{"one for readers and writers", "x.go", `import s "sync"; type t struct{ s.RWMutex }`, ". uses sync.RWMutex"},
		{"one of a part of the wire", "internal/wire/codec/x.go", `import "sync"; var _ sync.Mutex`, "internal/wire/codec uses sync.Mutex"},
		{"one of a test", "internal/group/x_test.go", `import "sync"; var _ sync.Mutex`, ""},
		{"one outside of the engine", "kinesistest/x.go", `import "sync"; var _ sync.Mutex`, ""},
		{"deliveries know failures", "internal/delivery/x.go", `import _ "` + module + `/internal/failure"`, ""},
		{"failures know no deliveries", "internal/failure/x.go", `import _ "` + module + `/internal/delivery"`, "internal/failure imports internal/delivery"},
		{"batches know neither", "internal/batch/x.go", `import _ "` + module + `/internal/delivery"`, "internal/batch imports internal/delivery"},
		{"keys know no Kinesis", "internal/keyed/x.go", `import _ "` + module + `/internal/wire"`, "internal/keyed imports internal/wire"},
		{"keys know no group", "internal/keyed/x.go", `import _ "` + module + `/internal/group"`, "internal/keyed imports internal/group"},
		{"no part of the engine knows the API", "internal/keyed/x.go", `import _ "` + module + `"`, "internal/keyed imports ."},
		{"a decision about failures reads no clock", "internal/failure/x.go", `import "time"; var _ = time.Now()`, "internal/failure uses time.Now"},
		{"a mutex with a rank", "internal/group/x.go", `import "` + module + `/internal/lock"; var _ lock.Mutex[lock.Term]`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f, err := parse(c.path, []byte("package x\n"+c.source))
			if err != nil {
				t.Fatal(err)
			}
			got := problems([]file{f})
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("found %q", got)
			case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
				t.Errorf("found %q, want one that says %q", got, c.want)
			}
		})
	}
}

// file contains what the rules need to know about a Go file.
type file struct {
	path    string // relative to the repository
	pkg     string // directory of the file; "." for the root
	test    bool
	imports []string
	calls   []string // functions of package time that the file uses
	spawns  bool     // the file starts a goroutine
	mutexes []string // types of package sync that the file uses
}

// readRepository parses all Go files, with any build constraints. It also returns the nested
// modules.
func readRepository(t *testing.T) (files []file, modules []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		inside = filepath.ToSlash(inside)
		base := d.Name()
		switch {
		case inside == ".":
			return nil
		case d.IsDir() && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "node_modules"):
			return fs.SkipDir
		case base == "go.mod" && inside != "go.mod":
			modules = append(modules, path.Dir(inside))
		case !d.IsDir() && strings.HasSuffix(base, ".go"):
			source, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			f, err := parse(inside, source)
			if err != nil {
				return err
			}
			files = append(files, f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, modules
}

func parse(name string, source []byte) (file, error) {
	f := file{path: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go")}
	tree, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
	if err != nil {
		return f, err
	}
	clock, contexts, syncs := "", "", ""
	for _, spec := range tree.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return f, fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		f.imports = append(f.imports, imported)
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		switch imported {
		case "time":
			clock = name
		case "context":
			contexts = name
		case "sync":
			syncs = name
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			f.spawns = true
		case *ast.CallExpr:
			// This is the method Go of a WaitGroup.
			if called, ok := n.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "Go" {
				f.spawns = true
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if !ok {
				break
			}
			if x.Name == clock {
				f.calls = append(f.calls, n.Sel.Name)
			}
			if x.Name == syncs && (n.Sel.Name == "Mutex" || n.Sel.Name == "RWMutex") {
				f.mutexes = append(f.mutexes, n.Sel.Name)
			}
			if n.Sel.Name == "AfterFunc" && (x.Name == clock || x.Name == contexts) {
				f.spawns = true
			}
		}
		return true
	})
	return f, nil
}

// problems returns the violations of the table in the given files.
func problems(files []file) []string {
	var found []string
	seen := map[string]bool{}
	report := func(format string, args ...any) {
		if p := fmt.Sprintf(format, args...); !seen[p] {
			seen[p] = true
			found = append(found, p)
		}
	}
	for _, f := range files {
		i := slices.IndexFunc(rows, func(r row) bool { return within(f.pkg, r.pkg) })
		if i < 0 {
			report("%s has no row in table_test.go: why is it there, and what may it import?", f.pkg)
			continue
		}
		r := rows[i]
		for _, imported := range f.imports {
			if why := forbidden(f, r, imported); why != "" {
				report("%s imports %s, %s", f.pkg, strings.TrimPrefix(local(imported), "./"), why)
			}
		}
		if !f.test && slices.ContainsFunc(engine, func(p string) bool { return within(f.pkg, p) }) {
			for _, name := range f.mutexes {
				report("%s uses sync.%s (%s), which has no rank; use a mutex of internal/lock", f.pkg, name, f.path)
			}
		}
		if !r.pure || f.test {
			continue
		}
		if f.spawns {
			report("%s starts a goroutine (%s), but is pure", f.pkg, f.path)
		}
		for _, name := range f.calls {
			if slices.Contains(clocks, name) {
				report("%s uses time.%s (%s), but is pure: time comes in as an argument", f.pkg, name, f.path)
			}
		}
	}
	return found
}

// engine lists the packages whose mutexes have ranks. See internal/lock.
var engine = []string{
	".", "internal/delivery", "internal/failure", "internal/group", "internal/keyed", "internal/lineage", "internal/polling", "internal/fanout", "internal/follow",
	"internal/supervise", "internal/notify", "internal/memory", "internal/history/...", "internal/wire/...",
}

// forbidden returns the reason why a file must not import a package. It returns "" if the file may
// import the package.
func forbidden(f file, r row, imported string) string {
	ours := local(imported)
	switch {
	case ours == f.pkg:
		return "" // an external test of its own package
	case ours == "internal/proof/pooled" && f.test:
		return "" // tests of all packages may check reused objects
	case (ours == "internal/proof/leaktest" || ours == "internal/proof/longform") && (f.test || runsTests(f.pkg)):
		return "" // tests of all packages may check for leaked goroutines
	case ours != imported:
		for _, n := range never {
			if within(ours, n) && !within(f.pkg, n) {
				return "which nobody may"
			}
		}
		allowed := r.ours
		if f.test {
			allowed = slices.Concat(r.ours, r.tests)
		}
		if !slices.ContainsFunc(allowed, func(a string) bool { return within(ours, a) }) {
			return "which its row does not allow"
		}
	case imported == "C":
		return "but there is no cgo here"
	case isSDK(imported):
		if !r.sdk {
			return "but its row does not allow the AWS SDK"
		}
	case strings.Contains(strings.Split(imported, "/")[0], "."):
		if !slices.ContainsFunc(nested, func(n string) bool { return within(f.pkg, n+"/...") }) {
			return "but the root module requires the AWS SDK alone, also in tests"
		}
	case r.pure && !f.test && slices.Contains(impure, imported):
		return "but is pure"
	}
	return ""
}

// local returns the name that the table uses for a package of this repository. It returns other
// import paths unchanged.
func local(imported string) string {
	if imported == module {
		return "."
	}
	return strings.TrimPrefix(imported, module+"/")
}

// within reports whether a package matches a pattern. A pattern that ends in "/..." includes the
// packages below it.
func within(pkg, pattern string) bool {
	base, deep := strings.CutSuffix(pattern, "/...")
	return pkg == base || deep && strings.HasPrefix(pkg, base+"/")
}

const sdk = "github.com/aws/aws-sdk-go-v2"

func isSDK(imported string) bool { return strings.HasPrefix(imported, "github.com/aws/") }
