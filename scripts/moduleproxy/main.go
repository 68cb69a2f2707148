// Command moduleproxy writes a module proxy as a tree of files. The files are what the go command
// would download if the source tree were tagged with a version. With the proxy, installs can be
// tested before there is a tag, and go.sum files can contain the checksums of the future tag.
//
//	moduleproxy -tree . -version v1.2.3 -out DIR
//
// Use it with GOPROXY=file://DIR. The command packs the files that git tracks, with their current
// contents.
package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// published contains the directories of the published modules. The root module comes first.
var published = []string{".", "deadletter/sqsletters", "otelweir", "payload/s3payload", "payload/zstdpayload", "promweir", "sink/s3sink", "store/redisstore", "cmd/weir"}

const module = "github.com/weir-go/weir"

func main() {
	tree := flag.String("tree", ".", "the root of the repository")
	version := flag.String("version", "", "the version of all modules, such as v1.2.3")
	out := flag.String("out", "", "the directory to make")
	flag.Parse()
	if err := run(*tree, *version, *out); err != nil {
		fmt.Fprintln(os.Stderr, "moduleproxy:", err)
		os.Exit(1)
	}
}

func run(tree, version, out string) error {
	if !strings.HasPrefix(version, "v") || out == "" {
		return errors.New("-version and -out are required, as in -version v1.2.3 -out DIR")
	}
	list := exec.CommandContext(context.Background(), "git", "ls-files", "-z")
	list.Dir = tree
	names, err := list.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	files := strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00")
	for _, dir := range published {
		if err := pack(tree, dir, version, out, files); err != nil {
			return fmt.Errorf("module %s: %w", dir, err)
		}
	}
	return nil
}

// pack writes the files of the proxy for one module.
func pack(tree, dir, version, out string, files []string) error {
	mod, err := os.ReadFile(filepath.Join(tree, dir, "go.mod"))
	if err != nil {
		return err
	}
	name := path.Join(module, dir)
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for _, file := range of(dir, files) {
		text, err := os.ReadFile(filepath.Join(tree, file.from))
		if err != nil {
			return err
		}
		w, err := z.Create(name + "@" + version + "/" + file.to)
		if err == nil {
			_, err = w.Write(text)
		}
		if err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	at := filepath.Join(out, filepath.FromSlash(name), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	for file, text := range map[string][]byte{
		"list": []byte(version + "\n"), version + ".info": fmt.Appendf(nil, `{"Version":%q}`, version), version + ".mod": mod, version + ".zip": packed.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(at, file), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// packedFile is a file of the repository with its name in a module.
type packedFile struct{ from, to string }

// of returns the files of the module in dir, without those of nested modules. If the module has no
// licence file, it gets the licence file of the root, as in the go command.
func of(dir string, files []string) (all []packedFile) {
	prefix := ""
	if dir != "." {
		prefix = dir + "/"
	}
	var below []string // directories of nested modules
	for _, f := range files {
		if path.Base(f) == "go.mod" && path.Dir(f) != dir && strings.HasPrefix(f, prefix) {
			below = append(below, path.Dir(f)+"/")
		}
	}
	for _, f := range files {
		in := func(other string) bool { return strings.HasPrefix(f, other) }
		if strings.HasPrefix(f, prefix) && !slices.ContainsFunc(below, in) {
			all = append(all, packedFile{f, strings.TrimPrefix(f, prefix)})
		}
	}
	if prefix != "" && !slices.Contains(files, prefix+"LICENSE") {
		all = append(all, packedFile{"LICENSE", "LICENSE"})
	}
	return all
}
