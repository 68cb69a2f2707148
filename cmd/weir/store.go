package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/redact"
	"github.com/weir-go/weir/cmd/weir/internal/serverstore"
	"github.com/weir-go/weir/cmd/weir/internal/sqlitefile"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/dynamostore"
	"github.com/weir-go/weir/store/memstore"
)

// storeURL is a parsed --store.
type storeURL struct{ kind, name string }

const (
	storeMemory = "memory"
	storeSQLite = "sqlite"
	storeDynamo = "dynamodb"
	storeServer = "server" // its name is the whole URL
)

const storeKinds = `memory: (forgotten at the end), sqlite:PATH (a file for the processes of one machine), dynamodb:TABLE, ` +
	`postgres://USER@HOST/DATABASE, mysql://USER@HOST/DATABASE or redis://HOST`

// A table may also be named by its ARN.
var tableForm = regexp.MustCompile(`^([a-zA-Z0-9_.-]{3,255}|arn:[a-z0-9-]+:dynamodb:[a-z0-9-]+:\d{12}:table/[a-zA-Z0-9_.-]{3,255})$`)

func parseStore(s string) (storeURL, error) {
	kind, name, found := strings.Cut(s, ":")
	u := storeURL{kind, name}
	if slices.Contains(serverstore.Schemes, kind) && strings.HasPrefix(name, "//") {
		if _, err := serverstore.Parse(s); err != nil {
			return u, usagef("--store %s: %v", redact.URL(s), err)
		}
		return storeURL{storeServer, s}, nil
	}
	switch {
	case !found:
		return u, usagef("--store %q is not a store: use %s", redact.URL(s), storeKinds)
	case kind == storeMemory && name == "", kind == storeSQLite && name != "":
		return u, nil
	case kind == storeMemory:
		return u, usagef("--store %q: memory: takes nothing after the colon", redact.URL(s))
	case kind == storeSQLite:
		return u, usagef("--store %q names no file: write it like sqlite:weir.db", s)
	case kind == storeDynamo && tableForm.MatchString(name):
		return u, nil
	case kind == storeDynamo:
		return u, usagef("--store %q: a DynamoDB table has 3 to 255 of a-z, A-Z, 0-9, _ . -, as in dynamodb:weir", redact.URL(s))
	}
	return u, usagef("--store %q: there is no store of that kind: use %s", redact.URL(s), storeKinds)
}

// openStore is a store and how to let go of it.
type openStore struct {
	lease.Store
	io.Closer
	url   storeURL
	place string // where the service is, for DynamoDB
}

// view reads an application once. It is how a command finds out whether the store can be used, before it begins.
func (s openStore) view(ctx context.Context, app string) (lease.View, error) {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	v, err := s.View(ctx, app, "")
	return v, s.trouble(err)
}

// trouble puts an error of the store in the words of this command.
func (s openStore) trouble(err error) error {
	var table *types.ResourceNotFoundException
	if errors.As(err, &table) {
		return plainError{fmt.Sprintf("there is no DynamoDB table %s%s: make it once, with \"weir store create --store %s:%s\", or let a worker do it, with \"weir consume --create-store\"",
			s.url.name, s.place, s.url.kind, s.url.name), err}
	}
	if s.url.kind == storeServer && errors.Is(err, lease.ErrSetup) && strings.Contains(err.Error(), "call Migrate") {
		url := redact.URL(s.url.name)
		return plainError{fmt.Sprintf("the database %s has no tables of this version of weir: make them once, with \"weir store create --store %s\", "+
			"or let a worker do it, with \"weir consume --create-store\"", url, url), err}
	}
	if s.url.kind == storeSQLite && errors.Is(err, lease.ErrSetup) && strings.Contains(err.Error(), "call Migrate") {
		return plainError{fmt.Sprintf("the SQLite file %s has no tables of this version of weir: check the path, or make them with \"weir store create --store sqlite:%s\"",
			s.url.name, s.url.name), err}
	}
	return err
}

type noClose struct{}

func (noClose) Close() error { return nil }

// open opens a store. make says that it may be made if it does not exist; SQLite files always are when a worker opens
// them, tables of a service only when somebody says so, since they may cost money and need permissions that workers should not have.
func (u storeURL) open(ctx context.Context, t terminal, f *awsFlags, newFile, newTable bool) (openStore, error) {
	switch u.kind {
	case storeMemory:
		return openStore{Store: memstore.New(), Closer: noClose{}, url: u}, nil
	case storeSQLite:
		file, err := sqlitefile.Open(ctx, u.name, newFile)
		if err != nil {
			return openStore{}, err
		}
		return openStore{Store: file, Closer: file, url: u}, nil
	case storeServer:
		place, err := serverstore.Parse(u.name)
		if err != nil {
			return openStore{}, err
		}
		server, err := place.Open()
		if err != nil {
			return openStore{}, err
		}
		if newTable {
			if err := server.Create(ctx); err != nil {
				return openStore{}, errors.Join(fmt.Errorf("%s: %w", redact.URL(u.name), err), server.Close())
			}
		}
		return openStore{Store: server, Closer: server, url: u}, nil
	default:
		client, err := f.dynamodb(ctx, t)
		if err != nil {
			return openStore{}, err
		}
		store := dynamostore.New(client, dynamostore.Options{Table: u.name})
		if newTable {
			if err := store.CreateTable(ctx); err != nil {
				return openStore{}, fmt.Errorf("table %s: %w", u.name, err)
			}
		}
		place := " in " + client.Options().Region
		if at := client.Options().BaseEndpoint; at != nil {
			place = " at " + *at
		}
		return openStore{store, noClose{}, u, place}, nil
	}
}

func registerStore(cmd *cobra.Command, url *string) {
	cmd.Flags().StringVar(url, "store", "", "where leases and progress are kept: sqlite:`PATH`, dynamodb:TABLE, postgres://…, mysql://…, redis://… or memory:")
	err := cmd.RegisterFlagCompletionFunc("store", cobra.FixedCompletions(
		[]cobra.Completion{"sqlite:\ta file for one machine", "dynamodb:\ta table",
			"postgres://\ta database", "mysql://\ta database", "redis://\ta server", "memory:\tforgotten at the end"},
		cobra.ShellCompDirectiveNoSpace))
	if err != nil {
		panic(err)
	}
}

func storeCommand(t terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Prepare a store for leases and progress",
		Long:  "Prepares the places where applications keep their leases and progress.",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(storeCreateCommand(t))
	return cmd
}

func storeCreateCommand(t terminal) *cobra.Command {
	var url string
	var f awsFlags
	var print bool
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make the tables or the file for applications",
		Long: `Makes the place where applications keep their leases and progress. One table or file serves many applications.
What exists already is left as it is, so the command may be repeated.

A DynamoDB table is made with on-demand billing; a Postgres or MySQL database gets four tables. Workers never make them by
themselves: they need no permission for it. A SQLite file is also made by the first worker that names it. Redis needs
nothing; its settings are looked at.

A URL of Postgres or MySQL may have ?weir_prefix=P for the names of the tables ("weir_" by default) and ?weir_schema=S for the
schema or database they are in; one of Redis ?weir_prefix=P ("weir:") and ?weir_replicas=N, how many replicas must
have a write.`,
		Example: `  weir store create --store dynamodb:weir
  weir store create --store sqlite:weir.db
  weir store create --store postgres://weir@db/shop
  weir store create --store postgres://weir@db/shop --print | psql`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := require(cmd, "store"); err != nil {
				return err
			}
			u, err := parseStore(url)
			if err != nil {
				return err
			}
			if u.kind == storeMemory {
				return usagef("memory: is made anew by every worker: there is nothing to create")
			}
			if print {
				return printSchema(t, u)
			}
			store, err := u.open(cmd.Context(), t, &f, true, true)
			if err != nil {
				return err
			}
			err = store.ready(cmd.Context(), t)
			if err := errors.Join(err, store.Close()); err != nil {
				return err
			}
			_, err = fmt.Fprintf(t.out, "%s is ready\n", redact.URL(url))
			return err
		},
	}
	registerStore(cmd, &url)
	cmd.Flags().BoolVar(&print, "print", false, "print the statements for Postgres or MySQL instead of running them")
	f.register(cmd, true)
	return cmd
}

// printSchema prints the statements that would be run.
func printSchema(t terminal, u storeURL) error {
	if u.kind != storeServer {
		return usagef("--print is for Postgres and MySQL: nothing else is made by statements")
	}
	place, err := serverstore.Parse(u.name)
	if err != nil {
		return err
	}
	store, err := place.Open()
	if err != nil {
		return err
	}
	schema := store.Schema()
	if err := store.Close(); err != nil {
		return err
	}
	if schema == "" {
		return usagef("--print: Redis needs no statements, there is nothing to make")
	}
	_, err = fmt.Fprint(t.out, schema)
	return err
}

// ready makes sure that a server which was prepared is one that can be used, and says what about it could lose progress.
func (s openStore) ready(ctx context.Context, t terminal) error {
	server, ok := s.Store.(*serverstore.Store)
	if !ok {
		return nil
	}
	if _, err := s.view(ctx, "weir"); err != nil {
		return err
	}
	warnings, err := server.Warnings(ctx)
	for _, w := range warnings {
		t.note("%s", w)
	}
	return err
}
