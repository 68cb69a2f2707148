package guide

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// levels maps the methods of a logger to the headings of logs.md.
var levels = map[string]string{"Debug": "Debug", "Info": "Info", "Log": "Info", "Warn": "Warnings", "Error": "Errors"}

// logging contains the log messages and keys in the library's source.
type logging struct {
	levels map[string]string // by message
	keys   map[string]bool
	bad    []string
}

// logger reports whether x is a logger, judged by its name.
func logger(x ast.Expr) bool {
	name := ""
	switch x := x.(type) {
	case *ast.Ident:
		name = x.Name
	case *ast.SelectorExpr:
		name = x.Sel.Name
	case *ast.CallExpr: // l.Log()
		return logger(x.Fun)
	}
	return slices.Contains([]string{"Logger", "logger", "Log", "log", "to", "Repeated"}, name)
}

// literal returns the value of a string literal or a concatenation of literals.
func literal(x ast.Expr) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(x.Value)
		return s, err == nil && x.Kind == token.STRING
	case *ast.BinaryExpr:
		first, is := literal(x.X)
		second, also := literal(x.Y)
		return first + second, is && also
	}
	return "", false
}

func (l *logging) message(x ast.Expr, level string) {
	if s, is := literal(x); is {
		l.levels[s] = level
	}
}

// pairs adds the keys of a list of keys and values.
func (l *logging) pairs(at string, list []ast.Expr) {
	for i := 0; i < len(list); i += 2 {
		if key, is := literal(list[i]); is {
			l.keys[key] = true
		} else if i < len(list)-1 { // the last may be another list, with dots
			l.bad = append(l.bad, at+": a key that is not written out")
		}
	}
}

// read adds the messages and keys that the function f logs to l. Wrappers of the logger are
// recognized by name.
func (l *logging) read(at string, f *ast.FuncDecl) {
	logs := false
	ast.Inspect(f, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		method, is := call.Fun.(*ast.SelectorExpr)
		if !is {
			return true
		}
		args := call.Args
		switch name := method.Sel.Name; {
		case name == "tellFailure":
			l.message(args[1], "Warnings")
		case name == "logPanic", name == "LogPanic":
			l.message(args[1], "Errors")
		case name == "With" && logger(method.X):
			l.pairs(at, args)
		case levels[name] != "" && logger(method.X):
			logs = true
			if name == "Log" {
				args = args[2:]
			}
			if _, is := literal(args[0]); !is && !slices.Contains([]string{"tellFailure", "logPanic", "LogPanic", "tellSuspected"}, f.Name.Name) {
				l.bad = append(l.bad, at+": a message that is not written out")
			}
			l.message(args[0], levels[name])
			l.pairs(at, args[1:])
		}
		return true
	})
	if !logs {
		return
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if of, is := n.Type.(*ast.ArrayType); is {
				if any, is := of.Elt.(*ast.Ident); is && any.Name == "any" {
					l.pairs(at, n.Elts)
				}
			}
		case *ast.CallExpr:
			if to, is := n.Fun.(*ast.Ident); is && to.Name == "append" {
				if args, is := n.Args[0].(*ast.Ident); is && args.Name == "args" {
					l.pairs(at, n.Args[1:])
				}
			}
		case *ast.AssignStmt:
			if to, is := n.Lhs[0].(*ast.Ident); is && to.Name == "what" {
				l.message(n.Rhs[0], "Errors")
			}
		}
		return true
	})
}

// constants adds the messages in constants that describe the consequence of a failure.
func (l *logging) constants(d *ast.GenDecl) {
	for _, s := range d.Specs {
		if s, is := s.(*ast.ValueSpec); is && d.Tok == token.CONST && len(s.Values) == 1 && strings.HasPrefix(s.Names[0].Name, "failed") {
			l.message(s.Values[0], "Warnings")
		}
	}
}

// readLogging reads the library's source: the root package and the internal ones.
func readLogging(t *testing.T) *logging {
	t.Helper()
	l := &logging{levels: map[string]string{}, keys: map[string]bool{}}
	for _, root := range []string{"../..", "../../internal"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path != root && (root == "../.." || d.Name() == "proof"):
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			for _, d := range file.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					l.read(path+": "+d.Name.Name, d)
				case *ast.GenDecl:
					l.constants(d)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// firsts returns the quoted texts in the first cells of a page's tables, with their headings.
func firsts(page string) map[string]string {
	found, heading := map[string]string{}, ""
	for line := range strings.Lines(page) {
		if after, is := strings.CutPrefix(line, "## "); is {
			heading = strings.TrimSpace(after)
		}
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if strings.HasPrefix(line, "| `") {
			for i, part := range strings.Split(cell, "`") {
				if i%2 == 1 {
					found[part] = heading
				}
			}
		}
	}
	return found
}

// ofCommand is the heading of the messages of the command.
const ofCommand = "The log of `weir consume`"

// The page must list exactly the messages and keys of the log.
func TestThePageListsWhatIsLogged(t *testing.T) {
	l := readLogging(t)
	for _, bad := range l.bad {
		t.Error(bad)
	}
	if len(l.levels) < 40 || len(l.keys) < 20 {
		t.Errorf("%d messages and %d keys were found, there are more", len(l.levels), len(l.keys))
	}
	page := firsts(read(t, "logs.md"))
	command := read(t, "../../cmd/weir/internal/consume/story.go") + read(t, "../../cmd/weir/internal/consume/run.go") +
		read(t, "../../cmd/weir/internal/oldside/oldside.go") + read(t, "../../cmd/weir/internal/consume/takeover.go")
	for _, message := range slices.Sorted(maps.Keys(l.levels)) {
		if level := l.levels[message]; page[message] != level {
			t.Errorf("%s: %q is under %q on the page", level, message, page[message])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(l.keys)) {
		if page[key] != "Keys" {
			t.Errorf("the key %q is not on the page", key)
		}
	}
	for name, heading := range page {
		if heading == ofCommand {
			if !strings.Contains(command, strconv.Quote(name)) {
				t.Errorf("%q is on the page, and weir consume does not log it", name)
			}
			continue
		}
		if heading == "Keys" && !l.keys[name] || heading != "Keys" && l.levels[name] == "" {
			t.Errorf("%q is on the page and is not logged", name)
		}
	}
}
