package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// renamesPage has the table of the names before and after. It is the only file with old names.
const renamesPage = "docs/decisions/0018-names.md"

// renamesMarker is the line before the table.
const renamesMarker = "<!-- The test TestOldNamesAreGone reads this table. -->"

// TestOldNamesAreGone looks for the old names of the table of renames in all files of code,
// Markdown, YAML and JSON.
func TestOldNamesAreGone(t *testing.T) {
	tree := os.DirFS(root)
	old, err := oldNames(tree)
	if err != nil {
		t.Fatal(err)
	}
	found, err := old.in(tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, use := range found {
		t.Error(use)
	}
}

// TestOldNamesAreFound plants old names, to show that the test above can fail.
func TestOldNamesAreFound(t *testing.T) {
	table := renamesMarker + "\n\n| Before | After |\n| --- | --- |\n"
	for _, row := range []string{
		"`Options.Batch` | `Batching.MaxRecords`", "`GiveUp` | `FailurePolicy`",
		"`GiveUp.To` | `Destination`", "`Consumer.Health` | `HealthHandler`",
		"`Consumer.Judge` | `Health`", "`lease.Store.Beat` | `Heartbeat`",
		"`lease.HeldPatience` | `HeldForOutage`", "`--patience` | `--outage-grace`",
		"`weir_leader_term` | `weir_leader_epoch`", "`FailedAt(r, Reject(err))` | `RejectAt(r, err)`",
	} {
		table += "| " + row + " |\n"
	}
	for name, c := range map[string]struct {
		file, text string
		found      int
	}{
		"an option in a comment":        {"options.go", "// It needs Options.Batch.", 1},
		"an option with the package":    {"docs/guide/x.md", "Set `weir.Options.Batch`.", 1},
		"the option of today":           {"docs/guide/x.md", "`Options.Batching` and `Options.BatchX`", 0},
		"an option of another package":  {"docs/guide/x.md", "`sqlsink.Options.Batch`, `ReaderOptions.Batch`", 0},
		"a type in a page":              {"README.md", "a `weir.GiveUp`", 1},
		"a type in a link":              {"options.go", "// See [GiveUp].", 1},
		"a link in another package":     {"internal/failure/x.go", "// See [GiveUp].", 0},
		"a field of a type":             {"a.yaml", "# GiveUp.To", 1},
		"a name that is used again":     {"docs/x.md", "`Consumer.Health`", 0},
		"a method":                      {"docs/x.md", "`Consumer.Judge`", 1},
		"a method with its package":     {"docs/x.md", "`lease.Store.Beat`, and `Store.Beat`", 1},
		"a name of another package":     {"docs/x.md", "`lease.HeldPatience`", 1},
		"a flag":                        {"deploy/x.yaml", "args: [--patience=1m]", 1},
		"a flag that begins in its way": {"deploy/x.yaml", "args: [--patience-x=1m]", 0},
		"a metric":                      {"deploy/x.json", `{"expr": "max(weir_leader_term{app=\"a\"})"}`, 1},
		"two lines":                     {"x.md", "--patience\n--patience", 2},
		"another kind of file":          {"x.bin", "--patience", 0},
		"a hidden folder":               {".git/x.md", "--patience", 0},
	} {
		tree := fstest.MapFS{renamesPage: {Data: []byte(table)}, c.file: {Data: []byte(c.text)}}
		old, err := oldNames(tree)
		if err != nil {
			t.Fatal(err)
		}
		found, err := old.in(tree)
		if err != nil || len(found) != c.found {
			t.Errorf("%s: found %q, %v, want %d", name, found, err, c.found)
		}
	}
	if _, err := oldNames(fstest.MapFS{renamesPage: {Data: []byte("# no table")}}); err == nil {
		t.Error("a page without the table is no error")
	}
}

// An oldName is a name of the table with the pattern of its uses.
type oldName struct {
	name, now string
	use       *regexp.Regexp
}

type listOfOldNames []oldName

var renameRow = regexp.MustCompile("^\\| `([^`]+)` \\| `([^`]+)` \\|$")

// oldNames reads the table. It leaves out rows whose old name contains a call or a space, and old
// names that have a new meaning now.
func oldNames(tree fs.FS) (listOfOldNames, error) {
	page, err := fs.ReadFile(tree, renamesPage)
	if err != nil {
		return nil, err
	}
	_, table, found := strings.Cut(string(page), renamesMarker)
	var rows [][]string
	used := map[string]bool{}
	for line := range strings.Lines(table) {
		row := renameRow.FindStringSubmatch(strings.TrimSpace(line))
		if row == nil || strings.ContainsAny(row[1], "({ ") {
			continue
		}
		rows = append(rows, row[1:])
		used[row[1][:strings.LastIndex(row[1], ".")+1]+row[2]] = true
		used[row[2]] = true
	}
	if !found || len(rows) == 0 {
		return nil, fmt.Errorf("%s has no line %q with a table after it", renamesPage, renamesMarker)
	}
	var list listOfOldNames
	for _, row := range rows {
		if !used[row[0]] {
			list = append(list, oldName{row[0], row[1], regexp.MustCompile(patternOf(row[0]))})
		}
	}
	return list, nil
}

// patternOf returns the pattern of the uses of an old name. A name of package weir without the
// package may also be an ordinary word. Such a name counts only with the package, or as a link in
// the root package. A line of the root package begins with "root:".
func patternOf(name string) string {
	quoted := regexp.QuoteMeta(name)
	first, rest, qualified := strings.Cut(name, ".")
	switch {
	case strings.HasPrefix(name, "-"), strings.Contains(name, "_"):
		return `(^|[^\w-])` + quoted + `($|[^\w-])`
	case !qualified && first != strings.ToLower(first):
		return `\bweir\.` + quoted + `\b|^root:.*\[` + quoted + `\]`
	case qualified && first == strings.ToLower(first) && strings.Contains(rest, "."):
		return `(^|[^\w.])(` + first + `\.)?` + regexp.QuoteMeta(rest) + `\b`
	case qualified && first == strings.ToLower(first):
		return `\b` + quoted + `\b`
	default:
		return `(^|[^\w.])(weir\.)?` + quoted + `\b`
	}
}

// in returns the lines of a tree that have an old name.
func (l listOfOldNames) in(tree fs.FS) (found []string, err error) {
	kinds := []string{".go", ".md", ".yaml", ".yml", ".json", ".sh"}
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir(), name == renamesPage, strings.HasSuffix(name, "archtest/renames_test.go"),
			!slices.Contains(kinds, path.Ext(name)):
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		var here listOfOldNames // the names whose last part the file contains
		for _, o := range l {
			if strings.Contains(string(text), o.name[strings.LastIndex(o.name, ".")+1:]) {
				here = append(here, o)
			}
		}
		if len(here) == 0 {
			return nil
		}
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			if path.Dir(name) == "." && path.Ext(name) == ".go" {
				line = "root:" + line
			}
			for _, o := range here {
				if strings.HasPrefix(o.name, "Options.") && (strings.HasPrefix(name, "producer/") || strings.HasPrefix(name, "queue/")) {
					continue // it has its own Options
				}
				if o.use.MatchString(line) {
					found = append(found, fmt.Sprintf("%s:%d: %s is now %s", name, number, o.name, o.now))
				}
			}
		}
		return nil
	})
	return found, err
}
