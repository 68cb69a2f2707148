package main

import (
	"errors"
	"fmt"
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

// noArgs is what is wrong with the arguments of a command that takes none.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || cmd.HasSubCommands() {
		return cobra.NoArgs(cmd, args)
	}
	return usagef("%s takes no argument %.140q", cmd.CommandPath(), args[0])
}

// oneFileAtMost is what is wrong with the arguments of a command that reads a file or standard
// input.
func oneFileAtMost(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("%s takes one FILE at a time, not %s", cmd.CommandPath(), strings.Join(args, " and "))
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
	return usagef("%s", said)
}
