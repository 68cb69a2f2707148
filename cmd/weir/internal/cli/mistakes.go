package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// mistakenFlag returns the error for a wrong flag, in words for users. The errors of the standard
// library contain names of functions.
func mistakenFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		return unknownFlag(cmd, unknown)
	}
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	flag := "--" + bad.GetFlag().Name
	want := ""
	var number *strconv.NumError
	switch kind := bad.GetFlag().Value.Type(); {
	case errors.As(err, &number) && errors.Is(number.Err, strconv.ErrRange):
		want = "that number is too large"
	case kind == "bool":
		want = "want true or false"
	case kind == "int" || kind == "int32" || kind == "int64":
		want = "want a whole number"
	case kind == "duration" && strings.HasPrefix(bad.Unwrap().Error(), "time: "):
		want = "want a time with its unit, such as 30s or 5m"
	case number != nil:
		want = "want a number"
	default: // the text of the flag, which begins with the value
		return fmt.Errorf("%s %w", flag, bad.Unwrap())
	}
	return fmt.Errorf("%s %.140q: %s", flag, bad.GetValue(), want)
}

// NoArgs returns an error if a command that takes no arguments has one.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || cmd.HasSubCommands() {
		return cobra.NoArgs(cmd, args)
	}
	return Usagef("%s takes no argument %.140q", cmd.CommandPath(), args[0])
}

// OneFileAtMost returns an error if a command that reads one file or standard input has several
// arguments.
func OneFileAtMost(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return Usagef("%s takes one FILE at a time, not %s", cmd.CommandPath(), strings.Join(args, " and "))
	}
	return nil
}

// misspelt returns the error for a command line that names an unknown command. If flags follow the
// command, cobra reports an unknown flag instead, which is misleading.
func misspelt(found *cobra.Command, args []string, err error) error {
	_, rest, lost := found.Root().Find(args)
	if lost != nil || !found.HasSubCommands() || len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return err
	}
	found.SuggestionsMinimumDistance = 2 // number of differing characters
	said := fmt.Sprintf("unknown command %.140q for %q", rest[0], found.CommandPath())
	if like := found.SuggestionsFor(rest[0]); len(like) > 0 {
		said += ": is it " + strings.Join(like, " or ") + "?"
	}
	return Usagef("%s", said)
}

// unknownFlag returns the error for an unknown flag. The error suggests similar flags.
func unknownFlag(cmd *cobra.Command, err *pflag.NotExistError) error {
	name := err.GetSpecifiedName()
	if short := err.GetSpecifiedShortnames(); len(short) > 1 { // -stream with one dash
		name = short
	}
	name, _, _ = strings.Cut(name, "=")
	if like := flagsLike(cmd, name); len(like) > 0 {
		return fmt.Errorf("%w: is it %s?", err, strings.Join(like, " or "))
	}
	return err
}

// flagsLike returns the flags of a command whose names are similar to name, the most similar first.
func flagsLike(cmd *cobra.Command, name string) (like []string) {
	if len(name) > 40 {
		return nil // no flag is that long
	}
	least := 1
	if len(name) > 4 {
		least = 2
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch d := edits(name, f.Name); {
		case f.Hidden || d > least:
		case d < least:
			like, least = []string{"--" + f.Name}, d
		default:
			like = append(like, "--"+f.Name)
		}
	})
	slices.Sort(like)
	return like
}

// edits returns the number of edits that turn a into b. An edit inserts, deletes or replaces a
// character, or swaps two neighbouring characters.
func edits(a, b string) int {
	before, last := []int(nil), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now := make([]int, len(b)+1)
		now[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			now[j] = min(last[j]+1, now[j-1]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last = last, now
	}
	return last[len(b)]
}

// RefuseBlank returns an error if a flag or an argument has a blank value, for example from an
// unset variable of the shell. Otherwise a default would apply that the user did not choose. A
// blank --exec would even run nothing and acknowledge all records. No flag has a meaning for a
// blank value; an exception would be listed here by name.
func RefuseBlank(cmd *cobra.Command, args []string) error {
	var blank []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		// A flag that needs no value checks for a blank value when it is set.
		if f.NoOptDefVal == "" && isBlank(f.Value) {
			blank = append(blank, "--"+f.Name)
		}
	})
	if len(blank) > 0 {
		return Usagef("%s %s blank: give a value, or leave the flag out; is a variable of the shell not set?",
			strings.Join(blank, " and "), Plural(len(blank), "is", "are"))
	}
	if name := cmd.Name(); name == cobra.ShellCompRequestCmd || name == cobra.ShellCompNoDescRequestCmd {
		return nil // the user has not typed the word yet
	}
	for i, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return Usagef("argument %d of %s is blank: give a value, or leave it out; is a variable of the shell not set?", i+1, cmd.CommandPath())
		}
	}
	return nil
}

// isBlank reports whether the value of a flag is blank. If the flag has several values, one blank
// value suffices.
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
