package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fences  = regexp.MustCompile("(?ms)^```.*?^```$")
	unslug  = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// TestLinks: what a page links to in the repository is there, and so is the heading.
func TestLinks(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Skipf("this is no clone: %v", err)
	}
	pages := strings.Fields(string(out))
	if len(pages) < 15 {
		t.Fatalf("found %d pages, there are more", len(pages))
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(string(fences.ReplaceAll(text, nil)), -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(found[1], "#")
			target := filepath.Join(root, filepath.Dir(page), file)
			if file == "" {
				target = filepath.Join(root, page)
			}
			there, err := os.Stat(target)
			if err != nil {
				t.Errorf("%s links to %s, which is not there", page, found[1])
				continue
			}
			if anchor == "" || there.IsDir() {
				continue
			}
			other, err := os.ReadFile(target)
			if err != nil {
				t.Fatal(err)
			}
			if !headings(string(other))[anchor] {
				t.Errorf("%s links to %s, but there is no such heading", page, found[1])
			}
		}
	}
}

// headings are the anchors of a page.
func headings(text string) map[string]bool {
	all := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		slug := strings.ToLower(unslug.ReplaceAllString(h[1], ""))
		all[strings.ReplaceAll(slug, " ", "-")] = true
	}
	return all
}
