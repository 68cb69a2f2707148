// Package deadletters opens the location of dead letters that the flag --dead sets.
package deadletters

import (
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/redact"
	"github.com/weir-go/weir/cmd/weir/internal/serverstore"
	"github.com/weir-go/weir/deadletter/sqsletters"
)

// Place is the parsed value of --dead.
type Place struct {
	Kind           Kind
	name           string // path of a file, name or ARN of a stream, URL of a queue, or the whole URL of a database
	bucket, prefix string
	server         serverstore.Place
}

type Kind string

const (
	File   Kind = "file"
	S3     Kind = "s3"
	SQLite Kind = "sqlite"
	Server Kind = "server"
	Stream Kind = "kinesis"
	Queue  Kind = "sqs"
)

const places = `file:PATH (a line of JSON each), s3://BUCKET/PREFIX, sqlite:PATH, postgres://USER@HOST/DB, mysql://USER@HOST/DB, kinesis:STREAM or sqs:URL`

// String returns the value as it was given, without a password.
func (p Place) String() string {
	switch p.Kind {
	case S3:
		return strings.TrimSuffix("s3://"+p.bucket+"/"+p.prefix, "/")
	case Server:
		return redact.URL(p.name)
	}
	return string(p.Kind) + ":" + p.name
}

// Parse parses the value of --dead.
func Parse(s string) (Place, error) {
	from := "--dead"
	if s == os.Getenv(cli.DeadVariable) {
		from = cli.DeadVariable
	}
	shown := redact.URL(s)
	if len(shown) > 140 {
		shown = shown[:140] + "…"
	}
	kind, rest, found := strings.Cut(s, ":")
	p := Place{Kind: Kind(kind), name: rest}
	blank := strings.TrimSpace(rest) == ""
	switch {
	case !found:
	case kind == "file" && blank:
		return p, cli.Usagef("%s %q names no file: write it like file:dead.ndjson", from, shown)
	case kind == "sqlite" && blank:
		return p, cli.Usagef("%s %q names no file: write it like sqlite:letters.db", from, shown)
	case kind == "file", kind == "sqlite":
		return p, nil
	case kind == "kinesis" && !strings.HasPrefix(rest, "arn:") && !awsconf.NameForm.MatchString(rest):
		return p, cli.Usagef("%s %q names no stream: write it like kinesis:orders-dead, with the name or the ARN of a stream", from, shown)
	case kind == "kinesis":
		return p, nil
	case kind == "sqs":
		if _, err := sqsletters.New(new(sqs.Client), rest); err != nil {
			return p, cli.Usagef("%s %q names no queue: write its URL behind the colon, like sqs:https://sqs.eu-west-1.amazonaws.com/111122223333/orders-dead", from, shown)
		}
		return p, nil
	case kind == "s3":
		bucket, prefix, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "/")
		if !strings.HasPrefix(rest, "//") || !awsconf.BucketForm.MatchString(bucket) {
			return p, cli.Usagef("%s %q names no bucket: write it like s3://my-bucket/dead", from, shown)
		}
		p.name, p.bucket, p.prefix = "", bucket, prefix
		return p, nil
	case slices.Contains(serverstore.Schemes, kind) && strings.HasPrefix(rest, "//"):
		server, err := serverstore.Parse(s)
		if err == nil {
			err = server.CheckLetters()
		}
		if err != nil {
			return p, cli.Usagef("%s %s: %v", from, shown, err)
		}
		return Place{Kind: Server, name: s, server: server}, nil
	}
	return p, cli.Usagef("%s %q is not a place for dead letters: use %s", from, shown, places)
}

func Register(cmd *cobra.Command, to *string, text string) {
	cmd.Flags().StringVar(to, "dead", os.Getenv(cli.DeadVariable), text+", by `PLACE`: "+places+"; default: the value of "+cli.DeadVariable)
	cmd.Flags().Lookup("dead").DefValue = "" // help must not show a password
	err := cmd.RegisterFlagCompletionFunc("dead", cobra.FixedCompletions(
		[]cobra.Completion{"file:\ta line of JSON each", "s3://\tan object each", "sqlite:\ta table in a file", "postgres://\ta table", "mysql://\ta table", "kinesis:\ta record of another stream each", "sqs:\ta message each"},
		cobra.ShellCompDirectiveNoSpace))
	if err != nil {
		panic(err)
	}
}
