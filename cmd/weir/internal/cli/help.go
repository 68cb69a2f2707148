package cli

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// HelpColumns is the width of help texts if the width of the screen is unknown.
const HelpColumns = 80

// WrapHelp wraps the lines in the help of a command and its subcommands.
func WrapHelp(root *cobra.Command, columns int) {
	for _, flags := range []string{".LocalFlags", ".InheritedFlags"} {
		root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), flags+".FlagUsages",
			"flagUsages "+flags+" "+strconv.Itoa(columns)))
	}
	EachCommand(root, func(cmd *cobra.Command) { cmd.Long = wrap(cmd.Long, columns) })
}

func init() { cobra.AddTemplateFunc("flagUsages", flagUsages) }

// flagColumn is the column at which the texts of flags begin.
const flagColumn = 30

// flagUsages returns the help of flags. The names of flags are in the first columns, as in the help
// of pflag. The text of a flag with a long name begins on the next line, so that one long name does
// not make all texts narrow.
func flagUsages(flags *pflag.FlagSet, columns int) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		one := pflag.NewFlagSet("", pflag.ContinueOnError)
		one.SortFlags = false
		one.AddFlag(f)
		line := strings.TrimRight(one.FlagUsagesWrapped(0), "\n")
		// pflag puts at least three spaces between the name with its value, and the text.
		name, text, _ := strings.Cut(strings.TrimLeft(line, " "), "   ")
		name = line[:len(line)-len(strings.TrimLeft(line, " "))] + name
		indent := strings.Repeat(" ", flagColumn)
		if width := utf8.RuneCountInString(name); width < flagColumn-1 {
			name += indent[width:]
		} else {
			name += "\n" + indent
		}
		text = wrap(strings.TrimSpace(text), max(columns-flagColumn, flagColumn))
		b.WriteString(name + strings.ReplaceAll(text, "\n", "\n"+indent) + "\n")
	})
	return b.String()
}

func EachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, sub := range cmd.Commands() {
		EachCommand(sub, do)
	}
}

// wrap wraps the paragraphs of a text. It does not change indented lines.
func wrap(text string, columns int) string {
	var b strings.Builder
	at := 0 // column after the text written so far
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if line == "" || strings.ContainsAny(line[:1], " \t") {
			if at > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(line + "\n")
			at = 0
			continue
		}
		for word := range strings.FieldsSeq(line) {
			width := utf8.RuneCountInString(word)
			switch {
			case at == 0:
			case at+1+width > columns:
				b.WriteByte('\n')
				at = 0
			default:
				b.WriteByte(' ')
				at++
			}
			b.WriteString(word)
			at += width
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// unquoteFlags removes the backquotes that mark a value's name in the texts of flags. Shell
// completion would show them.
func unquoteFlags(root *cobra.Command) {
	EachCommand(root, func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) })
	})
}

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		Long:  `Shows the help of a command, as --help does.`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			if of, unknown := find(cmd.Root(), args); unknown == "" {
				for _, sub := range of.Commands() {
					if sub.IsAvailableCommand() {
						names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			of, unknown := find(cmd.Root(), args)
			if unknown != "" {
				return noSuchCommand(of, unknown)
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

// refuseHelp makes --help print nothing after a word that names no command. Without it, cobra would
// print the help of the parent and succeed. unknown returns the error for that word, or nil.
func refuseHelp(root *cobra.Command) (unknown func() error) {
	var err error
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if words := cmd.Flags().Args(); len(words) > 0 && cmd.HasAvailableSubCommands() {
			err = noSuchCommand(cmd, words[0])
			return
		}
		help(cmd, args)
	})
	return func() error { return err }
}

// find looks up the command that words name, one word for each level. It stops at the first word
// that names no command. It returns the last command that it found, and that word.
func find(root *cobra.Command, words []string) (cmd *cobra.Command, unknown string) {
	cmd = root
next:
	for _, word := range words {
		for _, sub := range cmd.Commands() {
			if sub.Name() == word {
				cmd = sub
				continue next
			}
		}
		return cmd, word
	}
	return cmd, ""
}

// noSuchCommand returns the error for a word that names no subcommand. The error suggests similar
// names.
func noSuchCommand(cmd *cobra.Command, word string) error {
	if !cmd.HasAvailableSubCommands() {
		return Usagef("%s has no commands, so there is no %.140q", cmd.CommandPath(), word)
	}
	cmd.SuggestionsMinimumDistance = 2
	names := cmd.SuggestionsFor(word)
	if len(names) > 0 {
		return Usagef("there is no command %.140q: did you mean %s %s?", cmd.CommandPath()+" "+word, cmd.CommandPath(), strings.Join(names, " or "))
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return Usagef("there is no command %.140q: there is %s", cmd.CommandPath()+" "+word, strings.Join(names, ", "))
}
