package sqlstore

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The clocks of servers may jump, so no statement uses a clock.
func TestNoStatementAsksAClock(t *testing.T) {
	clock := regexp.MustCompile(`(?i)\b(now|sysdate|curdate|unix_timestamp|(current|clock|local|statement|transaction)_?timestamp|timestamptz?|strftime|datetime)\b`)
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			code, _, _ := strings.Cut(line, "//")
			code = strings.ReplaceAll(code, "time.Now()", "") // not a statement
			if clock.MatchString(code) {
				t.Errorf("%s:%d: %s", file, n+1, line)
			}
		}
	}
}
