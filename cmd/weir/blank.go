package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// refuseBlank refuses flags and arguments that were given and say nothing, as with a variable of
// the shell that is not set: a default would count that nobody asked for, and a blank --exec would
// run nothing and acknowledge everything. No flag means anything when it is blank; one that is to
// would be excepted here, by name.
func refuseBlank(cmd *cobra.Command, args []string) error {
	var blank []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		// those that may stand alone refuse it when it is set
		if f.NoOptDefVal == "" && isBlank(f.Value) {
			blank = append(blank, "--"+f.Name)
		}
	})
	if len(blank) > 0 {
		return usagef("%s %s blank: give a value, or leave the flag out; is a variable of the shell not set?",
			strings.Join(blank, " and "), plural(len(blank), "is", "are"))
	}
	if name := cmd.Name(); name == cobra.ShellCompRequestCmd || name == cobra.ShellCompNoDescRequestCmd {
		return nil // a word that the person has yet to type
	}
	for i, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return usagef("argument %d of %s is blank: give a value, or leave it out; is a variable of the shell not set?", i+1, cmd.CommandPath())
		}
	}
	return nil
}

// isBlank reports whether a value, or one of several, has nothing but spaces.
func isBlank(v pflag.Value) bool {
	values := []string{v.String()}
	if several, ok := v.(pflag.SliceValue); ok {
		values = several.GetSlice()
	}
	for _, s := range values {
		if strings.TrimSpace(s) == "" {
			return true
		}
	}
	return false
}
