// Package target is about the application that a command looks at or changes: the flags that name
// it and its store, whether its workers run, and its progress as a file.
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

// Flags is the application that a command is about, and where its leases are.
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

// complete offers the applications of the store that the command line names already.
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
	defer func() { _ = store.Close() }() // only read from
	admin, err := store.Admin()
	if err != nil {
		return nil
	}
	apps, _ := admin.Apps(ctx) // no applications are no completion
	return apps
}

// URL checks the command line.
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
	if f := cmd.Flags().Lookup("app"); f != nil && f.Value.Type() == "string" { // else they are several
		if err := lease.CheckApp(g.App); err != nil {
			return url, cli.Usagef("--app: %s", strings.TrimPrefix(err.Error(), "lease: "))
		}
	}
	return url, nil
}

// Open opens the store and looks at the application, which has to be there.
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
		_ = store.Close() // only read from
		return store, view, err
	}
	return store, view, nil
}

func (g *Flags) absent() error {
	return fmt.Errorf("there is no application %s in that store: check --app and --store; \"weir group list\" shows what is there", cli.Visible(g.App))
}

// CheckNew refuses a name that no worker's application could have. Commands for existing
// applications accept any name.
func (g *Flags) CheckNew() error {
	if awsconf.NameForm.MatchString(g.App) {
		return nil
	}
	return cli.Usagef("--app %.140q is not the name of an application: use 1 to 128 of a-z, A-Z, 0-9, _ . -", g.App)
}

// StreamsOf are the streams that have leases, sorted.
func StreamsOf(leases []lease.Lease) []string {
	var names []string
	for _, l := range leases {
		names = append(names, l.Stream)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// LeasesOf are the leases of a stream, of all streams for "". One that has none is an error.
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
