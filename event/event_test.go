package event_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir/event"
)

func TestJoinCallsAllInOrder(t *testing.T) {
	var calls string
	note := func(name string) func(context.Context, event.Event) {
		return func(context.Context, event.Event) { calls += name }
	}
	breaks := func(context.Context, event.Event) { calls += "!"; panic("oh no") }
	for _, c := range []struct {
		name   string
		fns    []func(context.Context, event.Event)
		want   string
		panics bool
	}{
		{"one", []func(context.Context, event.Event){note("a")}, "a", false},
		{"three", []func(context.Context, event.Event){note("a"), note("b"), note("c")}, "abc", false},
		{"nil is skipped", []func(context.Context, event.Event){nil, note("a"), nil, note("b"), nil}, "ab", false},
		{"the first panics", []func(context.Context, event.Event){breaks, note("b"), note("c")}, "!bc", true},
		{"the second panics", []func(context.Context, event.Event){note("a"), breaks, note("c")}, "a!c", true},
		{"two panic", []func(context.Context, event.Event){breaks, breaks, note("c")}, "!!c", true},
	} {
		calls = ""
		panicked := false
		func() {
			defer func() { panicked = recover() != nil }()
			event.Join(c.fns...)(t.Context(), event.Read{})
		}()
		if calls != c.want || panicked != c.panics {
			t.Errorf("%s: calls %q, panicked: %v; want %q, %v", c.name, calls, panicked, c.want, c.panics)
		}
	}
	if event.Join() != nil || event.Join(nil, nil) != nil {
		t.Error("Join of nothing is not nil, so weir would make events for nobody")
	}
}

func TestOnSelectsAType(t *testing.T) {
	var got []string
	on := event.On(func(_ context.Context, e event.LeaseEnded) { got = append(got, e.Shard) })
	for _, e := range []event.Event{
		event.LeaseTaken{Shard: "1"}, event.LeaseEnded{Shard: "2"}, event.Leading{},
		event.LeaseEnded{Shard: "3"},
	} {
		on(t.Context(), e)
	}
	if !slices.Equal(got, []string{"2", "3"}) {
		t.Errorf("got %q", got)
	}
	if event.On[event.Read](nil) != nil {
		t.Error("On(nil) is not nil, so weir would make events for nobody")
	}
}

func TestWordsOfEndReasons(t *testing.T) {
	for reason, want := range map[event.EndReason]string{
		event.EndLost: "lost", event.EndFinished: "finished", event.EndHandedOff: "handed off",
		event.EndStopped: "stopped", event.EndStalled: "stalled", 99: "EndReason(99)",
	} {
		if got := reason.String(); got != want {
			t.Errorf("%d is %q, want %q", reason, got, want)
		}
	}
}

// Each struct of the package is an event, has a comment, and has its time as the first field. If
// internal/emit never drops an event, the comment of the event says that it is a change of state.
// No other comment says so.
func TestTypesOfThePackage(t *testing.T) {
	emit, err := os.ReadFile("../internal/emit/emit.go")
	if err != nil {
		t.Fatal(err)
	}
	var structs, events []string
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.Name == "isEvent" {
					events = append(events, d.Recv.List[0].Type.(*ast.Ident).Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					spec, ok := spec.(*ast.TypeSpec)
					if !ok {
						continue
					}
					of, ok := spec.Type.(*ast.StructType)
					if !ok {
						continue
					}
					name := spec.Name.Name
					structs = append(structs, name)
					if len(of.Fields.List[0].Names) != 1 || of.Fields.List[0].Names[0].Name != "Time" {
						t.Errorf("the first field of %s is not Time", name)
					}
					comment := strings.Join(strings.Fields(d.Doc.Text()), " ")
					says := strings.Contains(comment, "It is a change of state")
					kept := strings.Contains(string(emit), "case event."+name+":")
					if says != kept {
						t.Errorf("%s: the comment says that it is a change of state: %v; emit.go has it: %v",
							name, says, kept)
					}
				}
			}
		}
	}
	slices.Sort(structs)
	slices.Sort(events)
	if !slices.Equal(structs, events) || len(events) < 19 {
		t.Errorf("structs are %v, events %v", structs, events)
	}
}
