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

// mistakenFlag is an error about a flag in this command's words. Those of the standard library name
// its functions.
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
	default: // the flag's own words, which begin with the value
		return fmt.Errorf("%s %w", flag, bad.Unwrap())
	}
	return fmt.Errorf("%s %.140q: %s", flag, bad.GetValue(), want)
}

// NoArgs refuses arguments of a command that takes none.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || cmd.HasSubCommands() {
		return cobra.NoArgs(cmd, args)
	}
	return Usagef("%s takes no argument %.140q", cmd.CommandPath(), args[0])
}

// OneFileAtMost refuses a second argument of a command that reads a file or standard input.
func OneFileAtMost(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return Usagef("%s takes one FILE at a time, not %s", cmd.CommandPath(), strings.Join(args, " and "))
	}
	return nil
}

// misspelt is the error about a command line whose command is not there, which cobra, where flags
// follow it, calls a flag that is not known.
func misspelt(found *cobra.Command, args []string, err error) error {
	_, rest, lost := found.Root().Find(args)
	if lost != nil || !found.HasSubCommands() || len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return err
	}
	found.SuggestionsMinimumDistance = 2 // letters
	said := fmt.Sprintf("unknown command %.140q for %q", rest[0], found.CommandPath())
	if like := found.SuggestionsFor(rest[0]); len(like) > 0 {
		said += ": is it " + strings.Join(like, " or ") + "?"
	}
	return Usagef("%s", said)
}

// unknownFlag is the error about a flag that the command does not have, with those that may have
// been meant.
func unknownFlag(cmd *cobra.Command, err *pflag.NotExistError) error {
	name := err.GetSpecifiedName()
	if short := err.GetSpecifiedShortnames(); len(short) > 1 { // "-stream" with one dash
		name = short
	}
	name, _, _ = strings.Cut(name, "=")
	if like := flagsLike(cmd, name); len(like) > 0 {
		return fmt.Errorf("%w: is it %s?", err, strings.Join(like, " or "))
	}
	return err
}

// flagsLike are the flags of a command that are spelt much like name, the most alike first.
func flagsLike(cmd *cobra.Command, name string) (like []string) {
	if len(name) > 40 {
		return nil // no flag is so long
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

// edits is how many letters have to be put in, left out, replaced or swapped with the next to make
// b of a.
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

// RefuseBlank refuses flags and arguments with a blank value, such as an unset variable of the
// shell. Otherwise a default would apply that the user did not choose, and a blank --exec would run
// nothing and acknowledge everything. No flag has a meaning when it is blank; such a flag would be
// an exception here, by name.
func RefuseBlank(cmd *cobra.Command, args []string) error {
	var blank []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		// those that may stand alone refuse it when it is set
		if f.NoOptDefVal == "" && isBlank(f.Value) {
			blank = append(blank, "--"+f.Name)
		}
	})
	if len(blank) > 0 {
		return Usagef("%s %s blank: give a value, or leave the flag out; is a variable of the shell not set?",
			strings.Join(blank, " and "), Plural(len(blank), "is", "are"))
	}
	if name := cmd.Name(); name == cobra.ShellCompRequestCmd || name == cobra.ShellCompNoDescRequestCmd {
		return nil // a word that the person has yet to type
	}
	for i, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return Usagef("argument %d of %s is blank: give a value, or leave it out; is a variable of the shell not set?", i+1, cmd.CommandPath())
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
