package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Format is the -o flag.
type Format string

const (
	FormatText Format = "text"
	FormatJSON Format = "json"
)

func (f *Format) String() string { return string(*f) }
func (f *Format) Type() string   { return "text|json" }

func (f *Format) Set(s string) error {
	switch Format(s) {
	case FormatText, FormatJSON:
		*f = Format(s)
		return nil
	}
	return fmt.Errorf("%q is not an output format: use text or json", s)
}

func (f *Format) Register(cmd *cobra.Command, what string) {
	*f = FormatText
	cmd.Flags().VarP(f, "output", "o", what)
	MustComplete(cmd, "output", "text\tfor people", "json\tfor programs")
}

// MustComplete offers fixed values for a flag to the shell.
func MustComplete(cmd *cobra.Command, flag string, values ...cobra.Completion) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		// the flag does not exist: a mistake in this file's neighbour, found by every test
		panic(err)
	}
}

// Require complains about flags that a command cannot do without, by name.
func Require(cmd *cobra.Command, flags ...string) error {
	var missing []string
	for _, name := range flags {
		if f := cmd.Flags().Lookup(name); f.Value.String() == "" || f.Value.String() == "[]" {
			switch name {
			case "store":
				name += " (or " + StoreVariable + " in the environment)"
			case "dead":
				name += " (or " + DeadVariable + " in the environment)"
			}
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) > 0 {
		return Usagef("%s needs %s", cmd.CommandPath(), strings.Join(missing, " and "))
	}
	return nil
}

// StoreVariable names the store where --store does not: other users of the machine see a command
// line, but not this.
const StoreVariable = "WEIR_STORE"

// DeadVariable names the place of letters where --dead does not: other users of the machine see a
// command line, but not this.
const DeadVariable = "WEIR_DEAD"
