package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/peers"
	"github.com/weir-go/weir/cmd/weir/internal/redact"
	"github.com/weir-go/weir/cmd/weir/internal/serverstore"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/dynamostore"
)

// openStore is a store and how to let go of it.
type openStore struct {
	lease.Store
	io.Closer
	url   storeURL
	place string      // where the service is, for DynamoDB
	peer  *peers.Peer // nil where there is no service
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
		return explain.PlainError{Text: fmt.Sprintf("nothing answers%s, where the store %s should be: is the server running, and is --store right?", explain.AddressOf(err), redact.URL(s.url.name)), Cause: err}
	}
	var table *types.ResourceNotFoundException
	if errors.As(err, &table) {
		return explain.PlainError{Text: fmt.Sprintf("there is no DynamoDB table %s%s: make it once, with \"weir store create --store %s:%s\", or let a worker do it, with \"weir consume --create-store\"",
			s.url.name, s.place, s.url.kind, s.url.name), Cause: err}
	}
	if s.url.kind != storeDynamo && errors.Is(err, lease.ErrSetup) && strings.Contains(err.Error(), "SchemaSince(") {
		_, what, _ := strings.Cut(err.Error(), "the tables have ")
		what, _, _ = strings.Cut(what, ":")
		url := redact.URL(s.url.String())
		return explain.PlainError{Text: fmt.Sprintf("the tables in %s have %s: bring them up to date once, with \"weir store create --store %s\"; what is in them stays, "+
			"and workers of the older version need not stop for it", url, what, url), Cause: err}
	}
	if s.url.kind == storeServer && errors.Is(err, lease.ErrSetup) && strings.Contains(err.Error(), "call Migrate") {
		url := redact.URL(s.url.name)
		return explain.PlainError{Text: fmt.Sprintf("the database %s has no tables of this version of weir that this user may see: make them once, with \"weir store create --store %s\", "+
			"or let a worker do it, with \"weir consume --create-store\"", url, url), Cause: err}
	}
	if s.url.kind == storeSQLite && errors.Is(err, lease.ErrSetup) && strings.Contains(err.Error(), "call Migrate") {
		return explain.PlainError{Text: fmt.Sprintf("the SQLite file %s has no tables of this version of weir: check the path, or make them with \"weir store create --store sqlite:%s\"",
			s.url.name, s.url.name), Cause: err}
	}
	if s.url.kind == storeServer && err != nil && !errors.Is(err, lease.ErrSetup) && !errors.Is(err, context.Canceled) {
		if said := explain.WhatAnswers(s.url.name); said != "" {
			return explain.PlainError{Text: said, Cause: err}
		}
	}
	if s.url.kind == storeSQLite && errors.Is(err, lease.ErrSetup) {
		return explain.PlainError{Text: ofFile(s.url.name, explain.SetupText(err)), Cause: err}
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

// openServer opens what --store names. Nothing is asked yet: an error is about the URL, which is
// not shown, since what is wrong with it may be where its password is.
func openServer(place serverstore.Place) (*serverstore.Store, error) {
	server, err := place.Open()
	if err != nil {
		return nil, cli.Usagef("--store: %s", explain.Parameters.Replace(explain.OneLine(err.Error())))
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
		if _, err := s.View(ctx, "weir", ""); err != nil && peers.Unanswered(err) {
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

// ready makes sure that a server which was prepared is one that can be used, and says what about it
// could lose progress.
func (s openStore) ready(ctx context.Context, t cli.Terminal) error {
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
		t.Note("%s", w)
	}
	return err
}

// asks makes a call to the store, which is noted where the store is a service.
func (s openStore) asks(ctx context.Context, do func(context.Context) error) error {
	switch {
	case s.peer == nil:
		return do(ctx)
	case s.url.kind != storeServer:
		// The HTTP client tells of DynamoDB's answers: a table takes longer to be made than they
		// do.
		return s.peer.Ask(ctx, do)
	}
	return s.peer.Ask(ctx, func(ctx context.Context) error {
		ctx, cancel := s.peer.UntilDue(ctx)
		defer cancel()
		return do(ctx)
	})
}

// View is that of the store.
func (s openStore) View(ctx context.Context, app, since string) (v lease.View, err error) {
	err = s.asks(ctx, func(ctx context.Context) error {
		v, err = s.Store.View(ctx, app, since)
		return err
	})
	return v, err
}

// Apply is that of the store.
func (s openStore) Apply(ctx context.Context, app string, actions []lease.Action) (did []bool, err error) {
	err = s.asks(ctx, func(ctx context.Context) error {
		did, err = s.Store.Apply(ctx, app, actions)
		return err
	})
	return did, err
}

// admin is what the store offers beside its contract.
func (s openStore) admin() (lease.Admin, error) {
	if admin, ok := s.Store.(lease.Admin); ok {
		return storeAdmin{s, admin}, nil
	}
	return nil, fmt.Errorf("a %s store cannot list or remove applications", s.url.kind)
}

// tellDifferences says what a table has not of the settings in its URL.
func (s openStore) tellDifferences(ctx context.Context, t cli.Terminal, table *dynamostore.Store) error {
	if s.url.table == nil {
		return nil
	}
	var differences []string
	err := s.asks(ctx, func(ctx context.Context) (err error) {
		differences, err = table.Differences(ctx)
		return err
	})
	for _, d := range differences {
		t.Note("table %s is left as it is, although %s", s.url.name, cli.Visible(d))
	}
	return err
}

// storeAdmin is what a store offers beside its contract, through calls that are noted.
type storeAdmin struct {
	of openStore
	lease.Admin
}

func (a storeAdmin) Apps(ctx context.Context) (apps []string, err error) {
	err = a.of.asks(ctx, func(ctx context.Context) error {
		apps, err = a.Admin.Apps(ctx)
		return err
	})
	return apps, err
}

func (a storeAdmin) Remove(ctx context.Context, app string) error {
	return a.of.asks(ctx, func(ctx context.Context) error { return a.Admin.Remove(ctx, app) })
}

// shownStore is a store that lists its applications, with errors for people.
type shownStore struct{ openStore }

// View is that of the store.
func (s shownStore) View(ctx context.Context, app, since string) (lease.View, error) {
	v, err := s.openStore.View(ctx, app, since)
	return v, s.said(err)
}

// Apps makes it a lease.Admin.
func (s shownStore) Apps(ctx context.Context) ([]string, error) {
	admin, err := s.admin()
	if err != nil {
		return nil, err
	}
	apps, err := admin.Apps(ctx)
	return apps, s.said(err)
}

// Apply is that of the store.
func (s shownStore) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	did, err := s.openStore.Apply(ctx, app, actions)
	return did, s.said(err)
}

// Remove is not for a page.
func (s shownStore) Remove(context.Context, string) error {
	return errors.New("a page removes nothing")
}

// PutHistory is not for a page that only looks.
func (s shownStore) PutHistory(context.Context, string, lease.HistoryChunk) error {
	return errors.New("this page only looks")
}

// History makes it a lease.Historian.
func (s shownStore) History(ctx context.Context, app string, since int64) (chunks []lease.HistoryChunk, err error) {
	historian, can := s.Store.(lease.Historian)
	if !can {
		return nil, fmt.Errorf("a %s store keeps no history", s.url.kind)
	}
	err = s.asks(ctx, func(ctx context.Context) error {
		chunks, err = historian.History(ctx, app, since)
		return err
	})
	return chunks, s.said(err)
}

func (s shownStore) said(err error) error {
	if err == nil {
		return nil
	}
	return explain.PlainError{Text: explain.Error(s.trouble(err)), Cause: err}
}
