package older_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/internal/filled"
	"github.com/weir-go/weir/internal/previous"
	"github.com/weir-go/weir/internal/proof/integration/older"
	"github.com/weir-go/weir/lease"
)

// TestTheModelKnowsWhatTheVersionBeforeKnew compares internal/previous with the source of the
// previous version.
func TestTheModelKnowsWhatTheVersionBeforeKnew(t *testing.T) {
	before := fieldsOf(t, filepath.Join(older.Unpack(t).Source, "lease"))
	r := &recorder{orders: filled.Value[lease.Orders](t), view: filled.Value[lease.View](t)}
	c := previous.Client(r)
	o, err1 := c.Heartbeat(t.Context(), "app", filled.Value[lease.Report](t))
	v, err2 := c.View(t.Context(), "app", "")
	a := filled.Value[lease.Action](t)
	a.Kind = lease.Create
	if _, err := c.Apply(t.Context(), "app", []lease.Action{a}); err1 != nil || err2 != nil || err != nil || len(r.actions) != 1 {
		t.Fatal(err1, err2, err, r.actions)
	}
	for _, value := range []any{r.report, r.report.Progress[0], r.report.Troubles[0], r.report.Times, o, o.Held[0], v, v.Leases[0], v.Workers[0], v.Leader, r.actions[0]} {
		of := reflect.TypeOf(value)
		var kept []string
		for i := range of.NumField() {
			if !reflect.ValueOf(value).Field(i).IsZero() {
				kept = append(kept, of.Field(i).Name)
			}
		}
		if want := presentNames(t, of.Name(), before[of.Name()]); !slices.Equal(kept, want) {
			t.Errorf("%s: the model knows the fields\n     %q\nthe version before had\n     %q", of.Name(), kept, want)
		}
	}
}

// renamed contains the present names of renamed fields, by the struct and the field in the previous
// version. Decision 18 lists them.
var renamed = map[[2]string]string{
	{"Times", "Beat"}: "Heartbeat", {"Worker", "Beat"}: "Heartbeats", {"Action", "Beat"}: "Heartbeats",
	{"Leader", "Beat"}: "Heartbeats", {"Leader", "Term"}: "Epoch",
}

// presentNames returns the fields of a struct of the previous version by their present names. It
// fails the test for a field in renamed that the previous version does not have.
func presentNames(t *testing.T, of string, fields []string) []string {
	t.Helper()
	names := slices.Clone(fields)
	for before, now := range renamed {
		if before[0] != of {
			continue
		}
		i := slices.Index(names, before[1])
		if i < 0 {
			t.Fatalf("in the version before, %s has no field %s", of, before[1])
		}
		names[i] = now
	}
	return names
}

// fieldsOf returns the fields of all structs in a package.
func fieldsOf(t *testing.T, dir string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.TypeSpec)
			if !is {
				return true
			}
			if s, is := spec.Type.(*ast.StructType); is {
				for _, f := range s.Fields.List {
					for _, name := range f.Names {
						all[spec.Name.Name] = append(all[spec.Name.Name], name.Name)
					}
					if embedded, is := f.Type.(*ast.Ident); is && f.Names == nil {
						all[spec.Name.Name] = append(all[spec.Name.Name], embedded.Name)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// recorder is a store that records its arguments and returns given results.
type recorder struct {
	lease.Store // nil
	report      lease.Report
	orders      lease.Orders
	view        lease.View
	actions     []lease.Action
}

func (r *recorder) Heartbeat(_ context.Context, _ string, report lease.Report) (lease.Orders, error) {
	r.report = report
	return r.orders, nil
}

func (r *recorder) View(context.Context, string, string) (lease.View, error) { return r.view, nil }

func (r *recorder) Apply(_ context.Context, _ string, actions []lease.Action) ([]bool, error) {
	r.actions = actions
	return make([]bool, len(actions)), nil
}
