package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/spf13/cobra"

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
)

const storeKinds = `memory: (forgotten at the end), sqlite:PATH (a file for the processes of one machine) or dynamodb:TABLE`

// A table may also be named by its ARN.
var tableForm = regexp.MustCompile(`^([a-zA-Z0-9_.-]{3,255}|arn:[a-z0-9-]+:dynamodb:[a-z0-9-]+:\d{12}:table/[a-zA-Z0-9_.-]{3,255})$`)

func parseStore(s string) (storeURL, error) {
	kind, name, found := strings.Cut(s, ":")
	u := storeURL{kind, name}
	switch {
	case !found:
		return u, usagef("--store %q is not a store: use %s", s, storeKinds)
	case kind == storeMemory && name == "", kind == storeSQLite && name != "":
		return u, nil
	case kind == storeMemory:
		return u, usagef("--store %q: memory: takes nothing after the colon", s)
	case kind == storeSQLite:
		return u, usagef("--store %q names no file: write it like sqlite:weir.db", s)
	case kind == storeDynamo && tableForm.MatchString(name):
		return u, nil
	case kind == storeDynamo:
		return u, usagef("--store %q: a DynamoDB table has 3 to 255 of a-z, A-Z, 0-9, _ . -, as in dynamodb:weir", s)
	}
	return u, usagef("--store %q: there is no store of that kind: use %s", s, storeKinds)
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
	return err
}

type noClose struct{}

func (noClose) Close() error { return nil }

// open opens a store. make says that it may be made if it does not exist; SQLite files always are when a worker opens
// them, DynamoDB tables only when somebody says so, since they cost money and need permissions that workers should not have.
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
	cmd.Flags().StringVar(url, "store", "", "where leases and progress are kept: sqlite:`PATH`, dynamodb:TABLE or memory:")
	err := cmd.RegisterFlagCompletionFunc("store", cobra.FixedCompletions(
		[]cobra.Completion{"sqlite:\ta file for one machine", "dynamodb:\ta table", "memory:\tforgotten at the end"},
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
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a DynamoDB table or a SQLite file for applications",
		Long: `Makes the place where applications keep their leases and progress. One table or file serves many applications.
What exists already is left as it is, so the command may be repeated.

A DynamoDB table is made with on-demand billing. Workers never make one by themselves: they need no permission for it.
A SQLite file is also made by the first worker that names it.`,
		Example: `  weir store create --store dynamodb:weir
  weir store create --store sqlite:weir.db`,
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
			store, err := u.open(cmd.Context(), t, &f, true, true)
			if err != nil {
				return err
			}
			if err := store.Close(); err != nil {
				return err
			}
			_, err = fmt.Fprintf(t.out, "%s is ready\n", url)
			return err
		},
	}
	registerStore(cmd, &url)
	f.register(cmd, true)
	return cmd
}
