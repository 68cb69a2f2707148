package weir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPackageCommentListsTheStores(t *testing.T) {
	comment, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	packages, err := filepath.Glob("store/*")
	if err != nil || len(packages) == 0 {
		t.Fatalf("no stores: %v", err)
	}
	for _, want := range append(packages, "DynamoDB", "Postgres", "MySQL", "MariaDB", "SQLite", "Redis", "Valkey") {
		if !strings.Contains(string(comment), filepath.ToSlash(want)) {
			t.Errorf("the package comment does not name %s", want)
		}
	}
}
