package archtest

import (
	"bytes"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// awkward matches phrases that a reader often has to read twice. A match is not always wrong, so
// each package and page may have a few.
var awkward = regexp.MustCompile(`\b(?:(?:is|are|was|were) what|tells?|told|telling|who|whom|whoever|whatever|whichever|` +
	`of which|anew|beside|seldom|in vain|but for|nobody|somebody|(?:go|goes|going|went) on|so many|so much|to be had|` +
	`of (?:its|their) own|(?:is|are) none|(?:of|by) those)\b|(?:^|[.;:] )what\b|\bof (?:it|them)\.`)

// awkwardMost is the limit of matches per 1,000 words in a package or a page.
const awkwardMost = 5

// awkwardStill lists packages and pages above awkwardMost, with their limits. The limits may only
// go down: when a package is reworded, lower its limit or remove it.
var awkwardStill = map[string]float64{}

// awkwardFree is the number of matches that every package or page may have, so that one phrase in a
// short package does not fail the test.
const awkwardFree = 2

func TestProse(t *testing.T) {
	t.Parallel()
	began := time.Now()
	found := proseOf(t)
	if len(found) < 100 {
		t.Fatalf("found %d packages and pages, there are more", len(found))
	}
	for _, place := range slices.Sorted(maps.Keys(found)) {
		p := found[place]
		most := float64(awkwardMost)
		if still, listed := awkwardStill[place]; listed {
			most = still
		}
		if p.hits > awkwardFree && p.rate() > most {
			t.Errorf("%s has %.1f awkward phrases per 1,000 words of comments or text, the limit is %.0f; such as:\n\t%s",
				place, p.rate(), most, strings.Join(p.lines[:min(5, len(p.lines))], "\n\t"))
		}
		if math.Ceil(p.rate()) < most && most > awkwardMost {
			t.Logf("%s: the limit can be %.0f", place, max(math.Ceil(p.rate()), awkwardMost))
		}
	}
	t.Logf("%v", time.Since(began))
}

func TestProseFindsAwkwardSentences(t *testing.T) {
	t.Parallel()
	var p prose
	p.addGo([]byte("package p\n\n// count is what nobody tells of.\nvar count int // whoever reads this goes on\n\n" +
		"// text returns a text.\nvar text = \"whoever\"\n"))
	if p.hits != 5 || len(p.lines) != 2 {
		t.Errorf("%d matches in %q, want 5 in two comments", p.hits, p.lines)
	}
	p = prose{}
	p.addMarkdown([]byte("Plain text.\n\n```go\n// whoever\n```\n\n\twhoever\n\nWhat is beside it is none.\n"))
	if p.hits != 3 || p.words != 8 {
		t.Errorf("%d matches in %d words %q, want 3 in 8", p.hits, p.words, p.lines)
	}
	p = prose{}
	p.addTexts([]byte("package p\n\n// whoever\nvar a, b = \"nobody reads it anew\", `SELECT what FROM anew WHERE 1`\n\nconst c = `two\nlines of whoever`\n"))
	if p.hits != 3 || p.words != 8 {
		t.Errorf("%d matches in %d words %q, want 3 in 8", p.hits, p.words, p.lines)
	}
}

// prose contains the number of words in the comments of a package or on a page, and the matches of
// awkward in them.
type prose struct {
	words, hits int
	lines       []string // lines that contain a match
}

func (p *prose) rate() float64 { return 1000 * float64(p.hits) / float64(max(p.words, 1)) }

func (p *prose) add(line string) {
	p.words += len(strings.Fields(line))
	if n := len(awkward.FindAllStringIndex(strings.ToLower(line), -1)); n > 0 {
		p.hits += n
		p.lines = append(p.lines, strings.TrimSpace(line))
	}
}

// addGo adds the comments of a Go file. A comment begins a line, or follows code after a space.
func (p *prose) addGo(src []byte) {
	for line := range strings.Lines(string(src)) {
		line = strings.TrimSpace(line)
		comment, whole := strings.CutPrefix(line, "//")
		if !whole {
			i := strings.LastIndex(line, " // ")
			if i < 0 {
				continue
			}
			comment = line[i+len(" // "):]
		}
		if !strings.HasPrefix(comment, "go:") && !strings.HasPrefix(comment, "nolint") {
			p.add(strings.TrimPrefix(comment, " "))
		}
	}
}

// addTexts adds the texts in the strings of a Go file, such as help, errors and log messages.
// Strings of fewer than four words and SQL statements do not count.
func (p *prose) addTexts(src []byte) {
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile("", files.Base(), len(src)), src, nil, 0)
	for {
		_, kind, literal := s.Scan()
		if kind == token.EOF {
			return
		}
		text, err := strconv.Unquote(literal)
		if kind != token.STRING || err != nil || len(strings.Fields(text)) < 4 || sql.MatchString(text) {
			continue
		}
		for line := range strings.Lines(text) {
			p.add(line)
		}
	}
}

var sql = regexp.MustCompile(`\b(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE TABLE|ALTER TABLE|WHERE)\b`)

// addMarkdown adds the text of a page, without its code.
func (p *prose) addMarkdown(src []byte) {
	code := false
	for line := range bytes.Lines(src) {
		switch s := strings.TrimRight(string(line), "\n"); {
		case strings.HasPrefix(s, "```"):
			code = !code
		case !code && !strings.HasPrefix(s, "\t") && !strings.HasPrefix(s, "    "):
			p.add(s)
		}
	}
}

// proseOf reads the repository. Comments and texts of Go files count for their directory. Each page
// counts separately.
func proseOf(t *testing.T) map[string]*prose {
	t.Helper()
	found := map[string]*prose{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		rel := strings.TrimPrefix(filepath.ToSlash(name), filepath.ToSlash(root)+"/")
		page := strings.HasSuffix(rel, ".md")
		if !page && !strings.HasSuffix(rel, ".go") || page && (d.Name() == "CHANGELOG.md" || d.Name() == "FOUND.md") {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		place := path.Dir(rel)
		if page {
			place = rel
		}
		if found[place] == nil {
			found[place] = &prose{}
		}
		if page {
			found[place].addMarkdown(src)
			return nil
		}
		found[place].addGo(src)
		// Texts in tests do not count, because only contributors read them.
		if texts := "the texts of " + place; !strings.HasSuffix(rel, "_test.go") && !strings.HasPrefix(rel, "internal/proof/") && !strings.HasSuffix(place, "test") {
			if found[texts] == nil {
				found[texts] = &prose{}
			}
			found[texts].addTexts(src)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
