package sim

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// placeless returns the faults that have a rate in a profile, but that no code of the simulation
// causes. The summary of make sim does not report these faults, because it expects only faults that
// could happen.
func placeless(rates map[Fault]float64, places map[Fault]bool) (faults []Fault) {
	for f := range rates {
		if !places[f] {
			faults = append(faults, f)
		}
	}
	slices.Sort(faults)
	return faults
}

// faultPlaces returns the faults that the source of this package causes. A fault used as the key of
// a map, or as the index of Profile.Rates, does not count.
func faultPlaces(t *testing.T) map[Fault]bool {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	values, used := map[string]Fault{}, map[string]bool{}
	for _, file := range files {
		name := file.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || name == "profile.go" {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if name == "fault.go" {
			readFaults(t, parsed, values)
			continue
		}
		var visit func(ast.Node) bool
		visit = func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				used[n.Name] = true
			case *ast.KeyValueExpr:
				ast.Inspect(n.Value, visit)
				return false
			case *ast.IndexExpr:
				if from, ok := n.X.(*ast.SelectorExpr); ok && from.Sel.Name == "Rates" {
					return false
				}
			}
			return true
		}
		ast.Inspect(parsed, visit)
	}
	places := map[Fault]bool{}
	for name, f := range values {
		places[f] = used[name]
	}
	return places
}

// readFaults reads the constants in fault.go.
func readFaults(t *testing.T, file *ast.File, values map[string]Fault) {
	t.Helper()
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		values[spec.Names[0].Name] = Fault(text)
		return true
	})
}

func TestEachFaultOfAProfileHasAPlace(t *testing.T) {
	places := faultPlaces(t)
	for _, p := range Profiles {
		for _, f := range placeless(p.Rates, places) {
			t.Errorf("profile %s has a rate for %q, but no code makes it happen", p.Name, f)
		}
	}
	const planted Fault = "planted"
	if got := placeless(map[Fault]float64{planted: 1, Crash: 1}, places); !slices.Equal(got, []Fault{planted}) {
		t.Errorf("of a planted fault and %q, %q have no place; want the planted one", Crash, got)
	}
	places[Split] = false
	if got := placeless(map[Fault]float64{Split: 1, Merge: 1}, places); !slices.Equal(got, []Fault{Split}) {
		t.Errorf("%q have no place, want %q", got, Split)
	}
}
