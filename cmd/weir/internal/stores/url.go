package stores

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/redact"
	"github.com/weir-go/weir/cmd/weir/internal/serverstore"
	"github.com/weir-go/weir/cmd/weir/internal/sqlitefile"
	"github.com/weir-go/weir/store/dynamostore"
	"github.com/weir-go/weir/store/memstore"
)

// URL is the parsed value of --store.
type URL struct {
	Kind, name string
	table      *dynamostore.Settings // settings of a DynamoDB table to create; nil if the URL has none
}

// String returns the URL as it was given, without the settings of a DynamoDB table.
func (u URL) String() string {
	if u.Kind == Server {
		return u.name
	}
	return u.Kind + ":" + u.name
}

// Open opens a store. newFile allows it to create a SQLite file, and newTable allows it to create
// tables in DynamoDB or on a server. Workers always create missing SQLite files. They create other
// tables only on request, because such tables may cost money and need permissions that workers
// should not have.
func (u URL) Open(ctx context.Context, t cli.Terminal, f *awsconf.Flags, newFile, newTable bool) (Store, error) {
	switch u.Kind {
	case Memory:
		return Store{Store: memstore.New(), Closer: noClose{}, url: u}, nil
	case SQLite:
		file, err := sqlitefile.Open(ctx, u.name, newFile)
		if err != nil {
			return Store{}, Store{url: u}.Explain(err)
		}
		return Store{Store: file, Closer: file, url: u}, nil
	case Server:
		place, err := serverstore.Parse(u.name)
		if err != nil {
			return Store{}, err
		}
		server, err := openServer(place)
		if err != nil {
			return Store{}, err
		}
		open := Store{Store: server, Closer: server, url: u, Peer: f.Peer(ctx, "the store "+redact.URL(u.name))}
		if newTable {
			if err := open.Migrate(ctx); err != nil {
				return Store{}, errors.Join(err, server.Close())
			}
		}
		return open, nil
	default:
		client, err := f.DynamoDB(ctx, t)
		if err != nil {
			return Store{}, err
		}
		store := dynamostore.New(client, dynamostore.Options{Table: u.name, Settings: u.settings()})
		place := " in " + client.Options().Region
		if at := client.Options().BaseEndpoint; at != nil {
			place = " at " + *at
		}
		open := Store{store, noClose{}, u, place, f.Tables}
		if newTable {
			if err := open.Migrate(ctx); err != nil {
				return Store{}, err
			}
		}
		return open, nil
	}
}

// settings returns the settings of a table to create.
func (u URL) settings() dynamostore.Settings {
	if u.table == nil {
		return dynamostore.Settings{}
	}
	return *u.table
}

const (
	Memory = "memory"
	SQLite = "sqlite"
	Dynamo = "dynamodb"
	Server = "server" // the name is the whole URL
)

const kinds = `memory: (forgotten at the end), sqlite:PATH (a file for the processes of one machine), dynamodb:TABLE, ` +
	`postgres://USER@HOST/DATABASE, mysql://USER@HOST/DATABASE or redis://HOST`

// TableForm matches a table of DynamoDB, which may also be named by its ARN.
var TableForm = regexp.MustCompile(`^([a-zA-Z0-9_.-]{3,255}|arn:[a-z0-9-]+:dynamodb:[a-z0-9-]+:\d{12}:table/[a-zA-Z0-9_.-]{3,255})$`)

func Parse(s string) (URL, error) { return ParseFlag("--store", s) }

// ParseFlag parses the URL of a store like Parse, for the flag from instead of --store.
func ParseFlag(from, s string) (URL, error) {
	if s == os.Getenv(cli.StoreVariable) {
		from = cli.StoreVariable
	}
	kind, name, found := strings.Cut(s, ":")
	u := URL{Kind: kind, name: name}
	if slices.Contains(serverstore.Schemes, kind) && strings.HasPrefix(name, "//") {
		if _, err := serverstore.Parse(s); err != nil {
			return u, cli.Usagef("%s %s: %v", from, redact.URL(s), err)
		}
		return URL{Kind: Server, name: s}, nil
	}
	if kind == Dynamo {
		return parseTable(from, s, name)
	}
	switch {
	case !found:
		return u, cli.Usagef("%s %q is not a store: use %s", from, redact.URL(s), kinds)
	case kind == Memory && name == "", kind == SQLite && name != "":
		return u, nil
	case kind == Memory:
		return u, cli.Usagef("%s %q: memory: takes nothing after the colon", from, redact.URL(s))
	case kind == SQLite:
		return u, cli.Usagef("%s %q names no file: write it like sqlite:weir.db", from, s)
	}
	return u, cli.Usagef("%s %q is not a kind of store: use %s", from, redact.URL(s), kinds)
}

func Register(cmd *cobra.Command, url *string) {
	cmd.Flags().StringVar(url, "store", os.Getenv(cli.StoreVariable),
		"`URL` of the store for leases and progress: sqlite:PATH, dynamodb:TABLE, postgres://…, mysql://…, redis://… or memory:; default: the value of "+cli.StoreVariable)
	cmd.Flags().Lookup("store").DefValue = "" // help must not show a password
	err := cmd.RegisterFlagCompletionFunc("store", cobra.FixedCompletions(
		[]cobra.Completion{"sqlite:\ta file for one machine", "dynamodb:\ta table",
			"postgres://\ta database", "mysql://\ta database", "redis://\ta server", "redis-cluster://\ta cluster", "redis-sentinel://\tservers with sentinels", "memory:\tlost at the end"},
		cobra.ShellCompDirectiveNoSpace))
	if err != nil {
		panic(err)
	}
}
