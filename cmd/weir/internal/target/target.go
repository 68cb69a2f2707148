// Package target handles the application that a command reads or changes. It contains the flags for
// the application and its store. It checks whether workers are running, and writes progress to
// files.
package target

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/lease"
)

// Flags contains the flags that select an application and the store of its leases.
type Flags struct {
	AWS   awsconf.Flags
	App   string
	Store string
}

func (g *Flags) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&g.App, "app", "", "application, by `NAME`")
	g.RegisterStore(cmd)
	err := cmd.RegisterFlagCompletionFunc("app", func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return g.complete(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err)
	}
}

func (g *Flags) RegisterStore(cmd *cobra.Command) {
	stores.Register(cmd, &g.Store)
	g.AWS.Register(cmd, true)
	g.AWS.Role.Register(cmd)
}

// complete returns the applications in the store that the command line names, for shell completion.
func (g *Flags) complete(ctx context.Context) []cobra.Completion {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	url, err := stores.Parse(g.Store)
	if err != nil || url.Kind == stores.Memory {
		return nil
	}
	store, err := url.Open(ctx, cli.Silent, &g.AWS, false, false)
	if err != nil {
		return nil
	}
	defer func() { _ = store.Close() }() // the store was only read
	admin, err := store.Admin()
	if err != nil {
		return nil
	}
	apps, _ := admin.Apps(ctx) // an error means no completion
	return apps
}

// URL checks the flags and returns the URL of the store.
func (g *Flags) URL(cmd *cobra.Command, flags ...string) (stores.URL, error) {
	if err := cli.Require(cmd, append(flags, "store")...); err != nil {
		return stores.URL{}, err
	}
	url, err := stores.Parse(g.Store)
	if err != nil {
		return url, err
	}
	if url.Kind == stores.Memory {
		return url, cli.Usagef("memory: exists only inside the worker that uses it: no other process can read it")
	}
	if f := cmd.Flags().Lookup("app"); f != nil && f.Value.Type() == "string" { // otherwise the flag accepts several applications
		if err := lease.CheckApp(g.App); err != nil {
			return url, cli.Usagef("--app: %s", strings.TrimPrefix(err.Error(), "lease: "))
		}
	}
	return url, nil
}

// Open opens the store and reads the application, which must exist.
func (g *Flags) Open(ctx context.Context, t cli.Terminal, url stores.URL) (stores.Store, lease.View, error) {
	store, err := url.Open(ctx, t, &g.AWS, false, false)
	if err != nil {
		return store, lease.View{}, err
	}
	view, err := store.ReadApp(ctx, g.App)
	if err == nil && len(view.Leases)+len(view.Workers)+len(view.Paused) == 0 {
		err = g.absent()
	}
	if err != nil {
		_ = store.Close() // the store was only read
		return store, view, err
	}
	return store, view, nil
}

func (g *Flags) absent() error {
	return fmt.Errorf("there is no application %s in that store: check --app and --store; \"weir group list\" shows what is there", cli.Visible(g.App))
}

// CheckNew returns an error if a new application cannot have the name. Commands for existing
// applications accept any name.
func (g *Flags) CheckNew() error {
	if awsconf.NameForm.MatchString(g.App) {
		return nil
	}
	return cli.Usagef("--app %.140q is not the name of an application: use 1 to 128 of a-z, A-Z, 0-9, _ . -", g.App)
}

// StreamsOf returns the sorted names of the streams that have leases.
func StreamsOf(leases []lease.Lease) []string {
	var names []string
	for _, l := range leases {
		names = append(names, l.Stream)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// LeasesOf returns the leases of a stream. An empty name means all streams. A stream without leases
// is an error.
func LeasesOf(app string, leases []lease.Lease, stream string) ([]lease.Lease, error) {
	if stream == "" {
		return leases, nil
	}
	var found []lease.Lease
	for _, l := range leases {
		if l.Stream == stream {
			found = append(found, l)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("application %s has no leases of a stream %s: it has some of %s", app, stream, cli.List(StreamsOf(leases)))
	}
	return found, nil
}
