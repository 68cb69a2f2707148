// Package stores opens the store that the flag --store names, and creates its tables. It watches
// calls to stores that are services. It explains their errors in the terms of the command line.
package stores

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
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/dynamostore"
)

// Store is a lease store that can be closed.
type Store struct {
	lease.Store
	io.Closer
	url   URL
	place string      // address of the service, for DynamoDB
	Peer  *peers.Peer // nil if the store is not a service
}

// ReadApp reads an application once. Commands call it first to find out whether the store can be
// used.
func (s Store) ReadApp(ctx context.Context, app string) (lease.View, error) {
	var v lease.View
	err := s.Ask(ctx, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
		defer cancel()
		v, err = s.Store.View(ctx, app, "")
		return err
	})
	return v, s.Explain(err)
}

// Explain explains an error of the store in the terms of the command line.
func (s Store) Explain(err error) error {
	if s.url.Kind == Server && errors.Is(err, syscall.ECONNREFUSED) {
		return explain.PlainError{Text: fmt.Sprintf("nothing answers%s, where the store %s should be: is the server running, and is --store right?", explain.AddressOf(err), redact.URL(s.url.name)), Cause: err}
	}
	var table *types.ResourceNotFoundException
	if errors.As(err, &table) {
		return explain.PlainError{Text: fmt.Sprintf("there is no DynamoDB table %s%s: make it once, with \"weir store create --store %s:%s\", or let a worker do it, with \"weir consume --create-store\"",
			s.url.name, s.place, s.url.Kind, s.url.name), Cause: err}
	}
	if s.url.Kind != Dynamo && errors.Is(err, lease.ErrSetup) && strings.Contains(err.Error(), "SchemaSince(") {
		_, what, _ := strings.Cut(err.Error(), "the tables have ")
		what, _, _ = strings.Cut(what, ":")
		url := redact.URL(s.url.String())
		return explain.PlainError{Text: fmt.Sprintf("the tables in %s have %s: bring them up to date once, with \"weir store create --store %s\"; what is in them stays, "+
			"and workers of the older version need not stop for it", url, what, url), Cause: err}
	}
	if s.url.Kind == Server && errors.Is(err, lease.ErrSetup) && strings.Contains(err.Error(), "call Migrate") {
		url := redact.URL(s.url.name)
		return explain.PlainError{Text: fmt.Sprintf("the database %s has no tables of this version of weir that this user may see: make them once, with \"weir store create --store %s\", "+
			"or let a worker do it, with \"weir consume --create-store\"", url, url), Cause: err}
	}
	if s.url.Kind == SQLite && errors.Is(err, lease.ErrSetup) && strings.Contains(err.Error(), "call Migrate") {
		return explain.PlainError{Text: fmt.Sprintf("the SQLite file %s has no tables of this version of weir: check the path, or make them with \"weir store create --store sqlite:%s\"",
			s.url.name, s.url.name), Cause: err}
	}
	if s.url.Kind == Server && err != nil && !errors.Is(err, lease.ErrSetup) && !errors.Is(err, context.Canceled) {
		if said := explain.WhatAnswers(s.url.name); said != "" {
			return explain.PlainError{Text: said, Cause: err}
		}
	}
	if s.url.Kind == SQLite && errors.Is(err, lease.ErrSetup) {
		return explain.PlainError{Text: ofFile(s.url.name, explain.SetupText(err)), Cause: err}
	}
	return err
}

// ofFile adapts a store's message about its setup to a SQLite file, and adds the file's name.
func ofFile(name, text string) string {
	if strings.Contains(text, "tables of these names") { // a file has no prefix that the user could change
		return fmt.Sprintf("the SQLite file %s has tables of weir's names that weir did not make: name another file", name)
	}
	if about, found := strings.CutPrefix(text, "the file "); found {
		return fmt.Sprintf("the SQLite file %s %s", name, about)
	}
	return fmt.Sprintf("the SQLite file %s: %s", name, text)
}

type noClose struct{}

func (noClose) Close() error { return nil }

// openServer opens the server that --store names, without calling it. Errors are about the URL.
// They do not contain the URL, because the mistake may be in its password.
func openServer(place serverstore.Place) (*serverstore.Store, error) {
	server, err := place.Open()
	if err != nil {
		return nil, cli.Usagef("--store: %s", explain.Parameters.Replace(explain.OneLine(err.Error())))
	}
	return server, nil
}

// Migrate creates the tables of a store on a server or in DynamoDB.
func (s Store) Migrate(ctx context.Context) error {
	switch server := s.Store.(type) {
	case *serverstore.Store:
		if server.Schema() == "" {
			return nil // Redis needs no tables, so there is no call
		}
		// Creating tables may take longer than an answer, so check first whether the server
		// answers.
		if _, err := s.View(ctx, "weir", ""); err != nil && peers.Unanswered(err) {
			return err
		}
		if err := s.Ask(ctx, server.Migrate); err != nil {
			return fmt.Errorf("%s: %w", redact.URL(s.url.name), err)
		}
	case *dynamostore.Store:
		if err := s.Ask(ctx, server.Migrate); err != nil {
			return fmt.Errorf("table %s: %w", s.url.name, err)
		}
	}
	return nil
}

// ready checks that a prepared server can be used. It prints warnings about settings that could
// cause lost progress, and settings in the URL that an existing DynamoDB table does not have.
func (s Store) ready(ctx context.Context, t cli.Terminal) error {
	if table, ok := s.Store.(*dynamostore.Store); ok {
		return s.TellDifferences(ctx, t, table)
	}
	server, ok := s.Store.(*serverstore.Store)
	if !ok {
		return nil
	}
	if _, err := s.ReadApp(ctx, "weir"); err != nil {
		return err
	}
	warnings, err := server.Warnings(ctx)
	for _, w := range warnings {
		t.Note("%s", w)
	}
	return err
}

// Ask makes a call to the store. If the store is a service, the call is watched.
func (s Store) Ask(ctx context.Context, do func(context.Context) error) error {
	switch {
	case s.Peer == nil:
		return do(ctx)
	case s.url.Kind != Server:
		// Creating a table of DynamoDB takes several calls. The HTTP client reports the answer of
		// each, so do not limit the time of the whole function.
		return s.Peer.Ask(ctx, do)
	}
	return s.Peer.Ask(ctx, func(ctx context.Context) error {
		ctx, cancel := s.Peer.UntilDue(ctx)
		defer cancel()
		return do(ctx)
	})
}

// View calls View of the store, and watches the call.
func (s Store) View(ctx context.Context, app, since string) (v lease.View, err error) {
	err = s.Ask(ctx, func(ctx context.Context) error {
		v, err = s.Store.View(ctx, app, since)
		return err
	})
	return v, err
}

// Apply calls Apply of the store, and watches the call.
func (s Store) Apply(ctx context.Context, app string, actions []lease.Action) (did []bool, err error) {
	err = s.Ask(ctx, func(ctx context.Context) error {
		did, err = s.Store.Apply(ctx, app, actions)
		return err
	})
	return did, err
}

// RecentHistory returns the history of an application from the minute since on. The error is
// [errors.ErrUnsupported] if the store keeps no history.
func (s Store) RecentHistory(
	ctx context.Context, app string, since int64,
) (chunks []lease.HistoryChunk, err error) {
	historian, can := s.Store.(lease.Historian)
	if !can || !s.Abilities().Has(lease.KeepHistory) {
		return nil, errors.ErrUnsupported
	}
	err = s.Ask(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		chunks, err = historian.History(ctx, app, since)
		return err
	})
	return chunks, err
}

// Admin returns the administrative interface of the store, or an error if the store has none.
func (s Store) Admin() (lease.Admin, error) {
	if admin, ok := s.Store.(lease.Admin); ok {
		return notedAdmin{s, admin}, nil
	}
	return nil, fmt.Errorf("a %s store cannot list or remove applications", s.url.Kind)
}

// TellDifferences prints the settings in the URL that the existing table does not have.
func (s Store) TellDifferences(ctx context.Context, t cli.Terminal, table *dynamostore.Store) error {
	if s.url.table == nil {
		return nil
	}
	var differences []string
	err := s.Ask(ctx, func(ctx context.Context) (err error) {
		differences, err = table.Differences(ctx)
		return err
	})
	for _, d := range differences {
		t.Note("table %s is left as it is, although %s", s.url.name, cli.Visible(d))
	}
	return err
}

// notedAdmin is the administrative interface of a store whose calls are watched.
type notedAdmin struct {
	of Store
	lease.Admin
}

func (a notedAdmin) Apps(ctx context.Context) (apps []string, err error) {
	err = a.of.Ask(ctx, func(ctx context.Context) error {
		apps, err = a.Admin.Apps(ctx)
		return err
	})
	return operate.Apps(apps), err
}

func (a notedAdmin) Remove(ctx context.Context, app string) error {
	return a.of.Ask(ctx, func(ctx context.Context) error { return a.Admin.Remove(ctx, app) })
}

// Shown is a store for pages: it lists its applications and returns errors for users.
type Shown struct{ Store }

// View calls View of the store.
func (s Shown) View(ctx context.Context, app, since string) (lease.View, error) {
	v, err := s.Store.View(ctx, app, since)
	return v, s.said(err)
}

// Apps makes Shown a lease.Admin.
func (s Shown) Apps(ctx context.Context) ([]string, error) {
	admin, err := s.Admin()
	if err != nil {
		return nil, err
	}
	apps, err := admin.Apps(ctx)
	return apps, s.said(err)
}

// Apply calls Apply of the store.
func (s Shown) Apply(ctx context.Context, app string, actions []lease.Action) ([]bool, error) {
	did, err := s.Store.Apply(ctx, app, actions)
	return did, s.said(err)
}

// Remove fails, because a page never removes an application.
func (s Shown) Remove(context.Context, string) error {
	return errors.New("this page cannot remove applications")
}

// PutHistory fails, because a page only reads the history.
func (s Shown) PutHistory(context.Context, string, lease.HistoryChunk) error {
	return errors.New("this page cannot write history")
}

// History makes Shown a lease.Historian.
func (s Shown) History(ctx context.Context, app string, since int64) (chunks []lease.HistoryChunk, err error) {
	if chunks, err = s.RecentHistory(ctx, app, since); errors.Is(err, errors.ErrUnsupported) {
		return nil, fmt.Errorf("a %s store keeps no history", s.url.Kind)
	}
	return chunks, s.said(err)
}

func (s Shown) said(err error) error {
	if err == nil {
		return nil
	}
	return explain.PlainError{Text: explain.Error(s.Explain(err)), Cause: err}
}
