package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
)

// The table in the documents has the exit codes of the command, with the same words.
func TestExitCodesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, known []string
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \| (.*) \|$`).FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, m[1]+" "+m[2])
	}
	for _, c := range cli.ExitCodes {
		known = append(known, fmt.Sprint(c.Code, " ", c.Text))
	}
	if !slices.Equal(documented, known) {
		t.Errorf("documented are\n%q\nand known are\n%q", documented, known)
	}
}
