package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version and commit describe the build. Release builds set them with -ldflags "-X
// PACKAGE.Version=v1.2.3 -X PACKAGE.commit=0123abc", where PACKAGE is the path of this package.
var Version, commit string

// Build describes how a program was built.
type Build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func ThisBuild() Build {
	b := Build{Version: Version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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

func (b Build) String() string {
	commit := ""
	if b.Commit != "" {
		commit = ", commit " + b.Commit
	}
	return fmt.Sprintf("weir %s%s (%s, %s)", b.Version, commit, b.Go, b.Platform)
}

func VersionCommand(t Terminal) *cobra.Command {
	var out Format
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Prints the version of weir, the commit it was built from where that is known, and the Go release and platform.",
		Example: "  weir version\n  weir version -o json",
		Args:    NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := ThisBuild()
			if out == FormatJSON {
				return json.NewEncoder(t.Out).Encode(b)
			}
			_, err := fmt.Fprintln(t.Out, b)
			return err
		},
	}
	out.Register(cmd, "output format")
	return cmd
}
