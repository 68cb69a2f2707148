package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
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
type storeURL struct {
	kind, name string
	table      *dynamostore.Settings // of a DynamoDB table that is made; nil without any
}

// String is the URL as it was given.
func (u storeURL) String() string {
	if u.kind == storeServer {
		return u.name
	}
	return u.kind + ":" + u.name
}

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

// storeVariable names the store where --store does not: other users of the machine see a command
// line, but not this.
const storeVariable = "WEIR_STORE"

func parseStore(s string) (storeURL, error) {
	from := "--store"
	if s == os.Getenv(storeVariable) {
		from = storeVariable
	}
	kind, name, found := strings.Cut(s, ":")
	u := storeURL{kind: kind, name: name}
	if slices.Contains(serverstore.Schemes, kind) && strings.HasPrefix(name, "//") {
		if _, err := serverstore.Parse(s); err != nil {
			return u, usagef("%s %s: %v", from, redact.URL(s), err)
		}
		return storeURL{kind: storeServer, name: s}, nil
	}
	if kind == storeDynamo {
		return parseTable(from, s, name)
	}
	switch {
	case !found:
		return u, usagef("%s %q is not a store: use %s", from, redact.URL(s), storeKinds)
	case kind == storeMemory && name == "", kind == storeSQLite && name != "":
		return u, nil
	case kind == storeMemory:
		return u, usagef("%s %q: memory: takes nothing after the colon", from, redact.URL(s))
	case kind == storeSQLite:
		return u, usagef("%s %q names no file: write it like sqlite:weir.db", from, s)
	}
	return u, usagef("%s %q: there is no store of that kind: use %s", from, redact.URL(s), storeKinds)
}

// openStore is a store and how to let go of it.
type openStore struct {
	lease.Store
	io.Closer
	url   storeURL
	place string // where the service is, for DynamoDB
	peer  *peer  // nil where there is no service
}

// view reads an application once. It is how a command finds out whether the store can be used,
// before it begins.
func (s openStore) view(ctx context.Context, app string) (lease.View, error) {
	var v lease.View
	err := s.asks(ctx, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
		defer cancel()
		v, err = s.Store.View(ctx, app, "")
		return err
	})
	return v, s.trouble(err)
}

// trouble puts an error of the store in the words of this command.
func (s openStore) trouble(err error) error {
	if s.url.kind == storeServer && errors.Is(err, syscall.ECONNREFUSED) {
		return plainError{fmt.Sprintf("nothing answers%s, where the store %s should be: is the server running, and is --store right?", addressOf(err), redact.URL(s.url.name)), err}
	}
	var table *types.ResourceNotFoundException
	if errors.As(err, &table) {
		return plainError{fmt.Sprintf("there is no DynamoDB table %s%s: make it once, with \"weir store create --store %s:%s\", or let a worker do it, with \"weir consume --create-store\"",
			s.url.name, s.place, s.url.kind, s.url.name), err}
	}
	if s.url.kind != storeDynamo && errors.Is(err, lease.ErrSetup) && strings.Contains(err.Error(), "SchemaSince(") {
		_, what, _ := strings.Cut(err.Error(), "the tables have ")
		what, _, _ = strings.Cut(what, ":")
		url := redact.URL(s.url.String())
		return plainError{fmt.Sprintf("the tables in %s have %s: bring them up to date once, with \"weir store create --store %s\"; what is in them stays, "+
			"and workers of the older version need not stop for it", url, what, url), err}
	}
	if s.url.kind == storeServer && errors.Is(err, lease.ErrSetup) && strings.Contains(err.Error(), "call Migrate") {
		url := redact.URL(s.url.name)
		return plainError{fmt.Sprintf("the database %s has no tables of this version of weir that this user may see: make them once, with \"weir store create --store %s\", "+
			"or let a worker do it, with \"weir consume --create-store\"", url, url), err}
	}
	if s.url.kind == storeSQLite && errors.Is(err, lease.ErrSetup) && strings.Contains(err.Error(), "call Migrate") {
		return plainError{fmt.Sprintf("the SQLite file %s has no tables of this version of weir: check the path, or make them with \"weir store create --store sqlite:%s\"",
			s.url.name, s.url.name), err}
	}
	if s.url.kind == storeServer && err != nil && !errors.Is(err, lease.ErrSetup) && !errors.Is(err, context.Canceled) {
		if said := foreignStore(s.url.name); said != "" {
			return plainError{said, err}
		}
	}
	if s.url.kind == storeSQLite && errors.Is(err, lease.ErrSetup) {
		return plainError{ofFile(s.url.name, setupText(err)), err}
	}
	return err
}

// ofFile is what a store says about its setup, about the SQLite file of that name.
func ofFile(name, text string) string {
	if strings.Contains(text, "tables of these names") { // a file has no prefix to choose
		return fmt.Sprintf("the SQLite file %s has tables of weir's names that weir did not make: name another file", name)
	}
	if about, found := strings.CutPrefix(text, "the file "); found {
		return fmt.Sprintf("the SQLite file %s %s", name, about)
	}
	return fmt.Sprintf("the SQLite file %s: %s", name, text)
}

type noClose struct{}

func (noClose) Close() error { return nil }

// open opens a store. make says that it may be made if it does not exist; SQLite files always are
// when a worker opens them, tables of a service only when somebody says so, since they may cost
// money and need permissions that workers should not have.
func (u storeURL) open(ctx context.Context, t terminal, f *awsFlags, newFile, newTable bool) (openStore, error) {
	switch u.kind {
	case storeMemory:
		return openStore{Store: memstore.New(), Closer: noClose{}, url: u}, nil
	case storeSQLite:
		file, err := sqlitefile.Open(ctx, u.name, newFile)
		if err != nil {
			return openStore{}, openStore{url: u}.trouble(err)
		}
		return openStore{Store: file, Closer: file, url: u}, nil
	case storeServer:
		place, err := serverstore.Parse(u.name)
		if err != nil {
			return openStore{}, err
		}
		server, err := openServer(place)
		if err != nil {
			return openStore{}, err
		}
		open := openStore{Store: server, Closer: server, url: u, peer: f.peer(ctx, "the store "+redact.URL(u.name))}
		if newTable {
			if err := open.create(ctx); err != nil {
				return openStore{}, errors.Join(err, server.Close())
			}
		}
		return open, nil
	default:
		client, err := f.dynamodb(ctx, t)
		if err != nil {
			return openStore{}, err
		}
		store := dynamostore.New(client, dynamostore.Options{Table: u.name, Settings: u.settings()})
		place := " in " + client.Options().Region
		if at := client.Options().BaseEndpoint; at != nil {
			place = " at " + *at
		}
		open := openStore{store, noClose{}, u, place, f.tables}
		if newTable {
			if err := open.create(ctx); err != nil {
				return openStore{}, err
			}
		}
		return open, nil
	}
}

// openServer opens what --store names. Nothing is asked yet: an error is about the URL, which is
// not shown, since what is wrong with it may be where its password is.
func openServer(place serverstore.Place) (*serverstore.Store, error) {
	server, err := place.Open()
	if err != nil {
		return nil, usagef("--store: %s", parameters.Replace(oneLine(err.Error())))
	}
	return server, nil
}

// create makes the tables of a store on a server.
func (s openStore) create(ctx context.Context) error {
	switch server := s.Store.(type) {
	case *serverstore.Store:
		if server.Schema() == "" {
			return nil // it asks nothing, so nothing answers
		}
		// what is made may take longer than an answer
		if _, err := s.View(ctx, "weir", ""); err != nil && unanswered(err) {
			return err
		}
		if err := s.asks(ctx, server.Create); err != nil {
			return fmt.Errorf("%s: %w", redact.URL(s.url.name), err)
		}
	case *dynamostore.Store:
		if err := s.asks(ctx, server.CreateTable); err != nil {
			return fmt.Errorf("table %s: %w", s.url.name, err)
		}
	}
	return nil
}

func registerStore(cmd *cobra.Command, url *string) {
	cmd.Flags().StringVar(url, "store", os.Getenv(storeVariable),
		"`URL` of where leases and progress are kept: sqlite:PATH, dynamodb:TABLE, postgres://…, mysql://…, redis://… or memory:; by default what "+storeVariable+" says")
	cmd.Flags().Lookup("store").DefValue = "" // help does not show a password
	err := cmd.RegisterFlagCompletionFunc("store", cobra.FixedCompletions(
		[]cobra.Completion{"sqlite:\ta file for one machine", "dynamodb:\ta table",
			"postgres://\ta database", "mysql://\ta database", "redis://\ta server", "redis-cluster://\ta cluster", "redis-sentinel://\tservers that sentinels watch over", "memory:\tforgotten at the end"},
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
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(storeCreateCommand(t))
	return cmd
}

func storeCreateCommand(t terminal) *cobra.Command {
	var url string
	var f awsFlags
	var print bool
	var since int
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make the tables or the file for applications",
		Long: `Makes the place where applications keep their leases and progress. One table or file serves many applications.
What exists already is left as it is, so the command may be repeated. Tables of an older version of weir are brought up to
date; workers of that version need not stop for it, and may also begin anew afterwards.

A DynamoDB table is made with on-demand billing, unless its URL says otherwise; a Postgres or MySQL database gets four
tables. Workers never make them by themselves: they need no permission for it. A SQLite file is also made by the first
worker that names it. Redis needs nothing; its settings are looked at.

` + aboutTable + `

A URL of Postgres or MySQL may have ?weir_prefix=P for the names of the tables ("weir_" by default) and ?weir_schema=S for the
schema or database they are in; one of Redis ?weir_prefix=P ("weir:") and ?weir_replicas=N, how many replicas must
have a write. redis-cluster:// takes further servers as &addr=HOST:PORT, and so does redis-sentinel://, which names sentinels and
needs ?master_name=NAME; user and password before the @ are for the sentinels there, ?username= and ?password= for the servers.`,
		Example: `  weir store create --store dynamodb:weir
  weir store create --store sqlite:weir.db
  weir store create --store 'dynamodb:weir?kms_key=alias/weir&point_in_time_recovery=true&tag=team=billing'
  weir store create --store dynamodb:weir --print
  weir store create --store postgres://weir@db/shop
  weir store create --store postgres://weir@db/shop --print | psql
  weir store create --store postgres://weir@db/shop --print --since 1 | psql`,
		Args: noArgs,
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
			if since != 0 && !print {
				return usagef("--since is for --print: without it what is missing is found out")
			}
			if print {
				return printSchema(t, u, since)
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
	cmd.Flags().BoolVar(&print, "print", false, "print what makes it instead of doing so: statements for Postgres or MySQL; for DynamoDB, the AWS CLI's command, Terraform and CloudFormation")
	cmd.Flags().IntVar(&since, "since", 0, "with --print: only what brings tables of this older version up to date")
	f.register(cmd, true)
	return cmd
}

// printSchema prints the statements that would be run, on tables of a version or, for 0, where
// there are none.
func printSchema(t terminal, u storeURL, since int) error {
	switch {
	case u.kind == storeDynamo && since == 0:
		_, err := fmt.Fprintln(t.out, u.settings().Definitions(u.name[strings.LastIndex(u.name, "/")+1:]))
		return err
	case u.kind == storeDynamo:
		return usagef("--since is for Postgres and MySQL: a DynamoDB table has no versions")
	case u.kind != storeServer:
		return usagef("--print is for Postgres, MySQL and DynamoDB: nothing else is made by statements")
	}
	place, err := serverstore.Parse(u.name)
	if err != nil {
		return err
	}
	store, err := openServer(place)
	if err != nil {
		return err
	}
	schema := store.Schema()
	var bad error
	if since != 0 && schema != "" {
		schema, bad = store.SchemaSince(since)
	}
	if err := store.Close(); err != nil {
		return err
	}
	if bad != nil {
		return usagef("--since: %v", bad)
	}
	if schema == "" {
		return usagef("--print: Redis needs no statements, there is nothing to make")
	}
	_, err = fmt.Fprint(t.out, schema)
	return err
}

// ready makes sure that a server which was prepared is one that can be used, and says what about it
// could lose progress.
func (s openStore) ready(ctx context.Context, t terminal) error {
	if table, ok := s.Store.(*dynamostore.Store); ok {
		return s.tellDifferences(ctx, t, table)
	}
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
