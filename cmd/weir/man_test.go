package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
)

var manTo = flag.String("man", "", "a directory to leave the manual pages in")

// Every visible command has a manual page that contains all its flags. Releases create the pages
// with this test, so the code for it is not part of the command.
func TestManualPages(t *testing.T) {
	dir := *manTo
	if dir == "" {
		dir = t.TempDir()
	}
	root := newRoot(cli.Terminal{})
	root.DisableAutoGenTag = true
	var plain func(cmd *cobra.Command) // remove marks that only the help understands
	plain = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "``", "") })
		for _, sub := range cmd.Commands() {
			plain(sub)
		}
	}
	plain(root)
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "weir", Manual: "weir"}, dir); err != nil {
		t.Fatal(err)
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "help" || cmd.IsAdditionalHelpTopicCommand() {
			return
		}
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Fatal(err)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(strings.ReplaceAll(string(page), `\-`, "-"), "--"+f.Name) {
				t.Errorf("the page of %s does not name --%s", cmd.CommandPath(), f.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
}
