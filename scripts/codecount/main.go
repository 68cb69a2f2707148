// Command codecount counts the code of each package:
//
//	go run ./scripts/codecount [-compare COMMIT] [-largest N] [PACKAGE...]
//
// For each package it prints the number of files, of lines of product code and of tests, of
// exported names and of statements. Then it prints the largest functions and structs of product
// code. Statements are counted in the syntax tree, so writing more code on a line does not reduce
// their number. With -compare it prints the counts of an earlier commit in front of each count. The
// total does not include internal/proof.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing/fstest"
)

func main() {
	compare := flag.String("compare", "", "the commit to compare with")
	largest := flag.Int("largest", 10, "how many functions and structs to list")
	flag.Parse()
	if err := run(os.Stdout, *compare, *largest, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "codecount:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, compare string, largest int, packages []string) error {
	after, err := countTree(os.DirFS("."))
	if err != nil {
		return err
	}
	before := tree{}
	if compare != "" {
		files, err := treeOf(compare)
		if err != nil {
			return err
		}
		if before, err = countTree(files); err != nil {
			return fmt.Errorf("commit %s: %w", compare, err)
		}
	}
	names := maps.Clone(after.packages)
	maps.Copy(names, before.packages)
	if len(packages) > 0 {
		maps.DeleteFunc(names, func(name string, _ counts) bool { return !slices.Contains(packages, name) })
	}
	if len(names) == 0 {
		return errors.New("there are no such packages; run it at the top of the repository, with names such as internal/group")
	}
	print(out, compare != "", slices.Sorted(maps.Keys(names)), before, after)
	for _, kind := range []string{"function", "struct"} {
		if compare != "" {
			fmt.Fprintf(out, "\nThe largest %ss at %s:\n", kind, compare)
			before.printLargest(out, kind, largest, names)
		}
		fmt.Fprintf(out, "\nThe largest %ss:\n", kind)
		after.printLargest(out, kind, largest, names)
	}
	return nil
}

// print prints a row for each package, and the total of the packages outside of internal/proof.
func print(out io.Writer, compared bool, names []string, before, after tree) {
	cell := func(b, a int) string {
		if !compared {
			return fmt.Sprintf("%7d", a)
		}
		return fmt.Sprintf("%7d →%6d", b, a)
	}
	row := func(name string, b, a counts) {
		fmt.Fprintf(out, "%-36s %s %s %s %s %s\n", name, cell(b.files, a.files), cell(b.lines, a.lines),
			cell(b.testLines, a.testLines), cell(b.exported, a.exported), cell(b.statements, a.statements))
	}
	fmt.Fprintln(out, "package: files, product lines, test lines, exported names, statements")
	var b, a counts
	for _, name := range names {
		row(name, before.packages[name], after.packages[name])
		if !isProof(name) {
			b.add(before.packages[name])
			a.add(after.packages[name])
		}
	}
	row("all but internal/proof", b, a)
}

func isProof(name string) bool {
	return name == "internal/proof" || strings.HasPrefix(name, "internal/proof/")
}

// treeOf returns the files of a commit.
func treeOf(commit string) (fs.FS, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command("git", "archive", "--format=tar", commit) //nolint:noctx // it ends by itself
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("git archive %s: %w: %s", commit, err, strings.TrimSpace(stderr.String()))
	}
	files := fstest.MapFS{}
	for r := tar.NewReader(&stdout); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if filepath.Ext(h.Name) != ".go" {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		files[h.Name] = &fstest.MapFile{Data: text, Mode: 0o600}
	}
}
