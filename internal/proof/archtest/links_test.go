package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// Each relative link of a page must point to an existing file or directory. Each anchor must point
// to a heading.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	var pages []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "bin"):
			return fs.SkipDir
		case strings.HasSuffix(name, ".md"):
			pages = append(pages, name)
		}
		return nil
	})
	if err != nil || len(pages) < 20 {
		t.Fatalf("found %d pages, there are more: %v", len(pages), err)
	}
	links := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range targets(string(text)) {
			links++
			if why := leads(page, target); why != "" {
				t.Errorf("%s: %s: %s", filepath.ToSlash(strings.TrimPrefix(page, root)), target, why)
			}
		}
	}
	if links < 50 {
		t.Errorf("found %d links, there are more", links)
	}
}

var (
	link    = regexp.MustCompile(`\]\(\s*([^)\s]+)\s*\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	code    = regexp.MustCompile("`[^`\n]*`")
)

// targets returns the links of a page that are not URLs. It ignores code.
func targets(text string) (all []string) {
	text = code.ReplaceAllString(fenced.ReplaceAllString(text, ""), "code")
	for _, found := range link.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(found[1], "://") {
			all = append(all, found[1])
		}
	}
	return all
}

// leads returns the reason why a link of a page is broken. It returns "" if the link works.
func leads(page, target string) string {
	file, anchor, anchored := strings.Cut(target, "#")
	if file != "" {
		page = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
	}
	if _, err := os.Stat(page); err != nil {
		return "there is no such file"
	}
	if !anchored {
		return ""
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err.Error()
	}
	if !slices.Contains(anchors(string(text)), anchor) {
		return "there is no such heading"
	}
	return ""
}

// anchors returns the anchors of the headings of a page.
func anchors(text string) (all []string) {
	seen := map[string]int{}
	for _, found := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, found[1])
		if n := seen[name]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", name, n))
		} else {
			all = append(all, name)
		}
		seen[name]++
	}
	return all
}

// TestPlantedLinks checks that leads detects broken links.
func TestPlantedLinks(t *testing.T) {
	t.Parallel()
	page := filepath.Join(t.TempDir(), "page.md")
	text := "# A page\n## What's `in` it?\n## Twice\n## Twice\n```\n# no heading\n[x](nowhere.md)\n```\n`[x](nowhere.md)`\n[a](#twice-1) [b\n](other.md#c)\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := targets(text); !slices.Equal(got, []string{"#twice-1", "other.md#c"}) {
		t.Errorf("links %q", got)
	}
	for target, ok := range map[string]bool{
		"page.md": true, "page.md#a-page": true, "#whats-in-it": true, "#twice": true, "#twice-1": true, ".": true,
		"#twice-2": false, "#no-heading": false, "other.md": false,
	} {
		if why := leads(page, target); (why == "") != ok {
			t.Errorf("%s: %q", target, why)
		}
	}
}
