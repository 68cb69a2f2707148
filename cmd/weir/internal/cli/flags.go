package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Format is the value of the flag -o.
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

// MustComplete sets the values that a shell offers for a flag.
func MustComplete(cmd *cobra.Command, flag string, values ...cobra.Completion) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		// The flag does not exist. This is a bug that every test finds.
		panic(err)
	}
}

// Require returns an error that names the missing flags, if a command lacks flags that it needs.
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

// StoreVariable is the environment variable that sets the store if --store is not used. Other users
// of the machine can see a command line, but not this variable.
const StoreVariable = "WEIR_STORE"

// DeadVariable is the environment variable that sets the destination of dead letters if --dead is
// not used. Other users of the machine can see a command line, but not this variable.
const DeadVariable = "WEIR_DEAD"
