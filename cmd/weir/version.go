package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version and commit are set by release builds: -ldflags "-X main.version=v1.2.3 -X
// main.commit=0123abc".
var version, commit string

type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Version = cmp.Or(b.Version, info.Main.Version)
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Commit = cmp.Or(b.Commit, s.Value)
			}
		}
	}
	b.Version = cmp.Or(b.Version, "(devel)")
	return b
}

func (b build) String() string {
	commit := ""
	if b.Commit != "" {
		commit = ", commit " + b.Commit
	}
	return fmt.Sprintf("weir %s%s (%s, %s)", b.Version, commit, b.Go, b.Platform)
}

func versionCommand(t terminal) *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Say which weir this is",
		Long:    "Prints the version of weir, the commit it was built from where that is known, and the Go release and platform.",
		Example: "  weir version\n  weir version -o json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if out == formatJSON {
				return json.NewEncoder(t.out).Encode(b)
			}
			_, err := fmt.Fprintln(t.out, b)
			return err
		},
	}
	out.register(cmd, "output format")
	return cmd
}
