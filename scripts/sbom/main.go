// Command sbom lists the modules and versions from which a Go program was built, in CycloneDX's
// JSON format.
//
//	sbom FILE > FILE.cdx.json
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// bom is a list in the format of CycloneDX 1.6. It contains only the fields that the command uses.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	PURL    string `json:"purl,omitempty"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom FILE")
		os.Exit(2)
	}
	info, err := buildinfo.ReadFile(os.Args[1])
	if err == nil {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		err = out.Encode(listOf(filepath.Base(os.Args[1]), info))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func listOf(program string, info *buildinfo.BuildInfo) bom {
	b := bom{Format: "CycloneDX", Spec: "1.6", Version: 1}
	b.Metadata.Component = module("application", info.Main.Path, info.Main.Version)
	b.Metadata.Component.Name = program
	b.Components = append(b.Components, module("library", "stdlib", strings.TrimPrefix(info.GoVersion, "go")))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Components = append(b.Components, module("library", m.Path, m.Version))
	}
	return b
}

// module returns a Go module as a component. The version of a module that was built from a working
// tree is unknown.
func module(kind, path, version string) component {
	if version == "(devel)" {
		version = ""
	}
	c := component{Type: kind, Name: path, Version: version, PURL: "pkg:golang/" + path}
	if version != "" {
		c.PURL += "@" + version
	}
	c.Ref = c.PURL
	return c
}
