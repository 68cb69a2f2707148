package consume

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
)

// briefGroup is a group of flags in the short help.
type briefGroup struct {
	title string
	flags []briefFlag
}

// briefFlag is a flag in the short help. Its text fits on one line.
type briefFlag struct{ name, value, text string }

const aboutBriefly = `Runs one worker of an application. All workers with the same --app and --store
share the shards of the stream. Start as many as you like, and stop or kill them
at any time. Every record is handled at least once, and the records of one key
are handled in order. A record is handled when it is on standard output, or when
the program or the place of --exec, --lambda or --to has it.`

const briefExamples = `  weir consume --stream flights --app billing --store sqlite:billing.db
  weir consume --stream flights --app loader --store dynamodb:weir --exec ./load`

// briefly contains the flags that most workers need.
var briefly = []briefGroup{
	{"Input and progress", []briefFlag{
		{"stream", "NAME", "stream, by name or ARN; may be repeated"},
		{"queue", "NAME", "a queue, without --app and --store; weir queue consume -h"},
		{"app", "NAME", "workers with the same name share the progress"},
		{"store", "URL", "where the progress is kept: sqlite:FILE, dynamodb:TABLE, …"},
		{"create-store", "", "create the table of the store if it does not exist"},
		{"from", "WHERE", "where a new application starts: oldest, latest, 15m"},
		{"filter", "PATTERN", "handle only records that match an event pattern"},
		{"until-tip", "", "end when the records that are in the stream are handled"},
	}},
	{"Handling", []briefFlag{
		{"exec", "COMMAND", "run a shell command for each batch (records on its input)"},
		{"lambda", "COMMAND", "run a function that was written for AWS Lambda"},
		{"to", "URL", "write the records to file:PATH or s3://BUCKET/PREFIX"},
		{"output", "text|json", "text is the data, json an object about each record (-o)"},
		{"batch", "N", "maximum number of records in a batch"},
		{"parallel", "N", "handle so many partition keys of a shard at the same time"},
	}},
	{"Failures", []briefFlag{
		{"max-attempts", "N", "dead-letter a batch after so many failed attempts"},
		{"dead", "PLACE", "destination of dead letters: file:PATH, s3://BUCKET/PREFIX"},
	}},
	{"Operation", []briefFlag{
		{"worker", "NAME", "name of this worker in logs and listings"},
		{"max-leases", "N", "maximum number of shards of this worker"},
		{"fan-out", "MODE", "read by enhanced fan-out: existing, register, temporary"},
		{"health", "ADDR", "serve /livez and /readyz"},
		{"metrics", "ADDR", "serve metrics for Prometheus"},
		{"log", "text|json", "format of the log on standard error"},
	}},
}

// briefHelp returns the short help, which fits on one screen.
func briefHelp(cmd *cobra.Command) string {
	var b strings.Builder
	b.WriteString(aboutBriefly + "\n\nUsage:\n  weir " + cmd.Use + " [flags]\n\nExamples:\n" + briefExamples + "\n")
	for _, g := range briefly {
		b.WriteString("\n" + g.title + ":\n")
		for _, f := range g.flags {
			name := "--" + f.name
			if f.value != "" {
				name += " " + f.value
			}
			b.WriteString("  " + name + strings.Repeat(" ", max(20-len(name), 1)) + f.text + "\n")
		}
	}
	b.WriteString("\n\"weir consume --help-all\" explains these flags completely, and all others: about\n" +
		"batches, dead letters, fan-out, timing, memory, metrics, credentials and Lambda.\n" +
		"Exit codes: 0 is success, and \"weir help exit-codes\" explains the others.\n")
	return b.String()
}

// helpFlags gives the command a short help, and the flag --help-all for the complete one.
func helpFlags(cmd *cobra.Command, t cli.Terminal) {
	complete := cmd.HelpFunc()
	cmd.Flags().Bool("help-all", false, "complete help: all flags, and what they do together")
	cmd.SetHelpFunc(func(of *cobra.Command, args []string) {
		if all, _ := of.Flags().GetBool("help-all"); all {
			complete(of, args)
			return
		}
		of.Print(briefHelp(of)) // as the complete help does
	})
}
