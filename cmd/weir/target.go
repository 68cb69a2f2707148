package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/lease"
)

// target is the application that a command is about, and where its leases are.
type target struct {
	aws   awsFlags
	app   string
	store string
}

func (g *target) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&g.app, "app", "", "application, by `NAME`")
	g.registerStore(cmd)
	err := cmd.RegisterFlagCompletionFunc("app", func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return g.complete(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err)
	}
}

func (g *target) registerStore(cmd *cobra.Command) {
	registerStore(cmd, &g.store)
	g.aws.register(cmd, true)
	g.aws.role.register(cmd)
}

// complete offers the applications of the store that the command line names already.
func (g *target) complete(ctx context.Context) []cobra.Completion {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	url, err := parseStore(g.store)
	if err != nil || url.kind == storeMemory {
		return nil
	}
	store, err := url.open(ctx, cli.Silent, &g.aws, false, false)
	if err != nil {
		return nil
	}
	defer func() { _ = store.Close() }() // only read from
	admin, err := store.admin()
	if err != nil {
		return nil
	}
	apps, _ := admin.Apps(ctx) // no applications are no completion
	return apps
}

// url checks the command line.
func (g *target) url(cmd *cobra.Command, flags ...string) (storeURL, error) {
	if err := cli.Require(cmd, append(flags, "store")...); err != nil {
		return storeURL{}, err
	}
	url, err := parseStore(g.store)
	if err != nil {
		return url, err
	}
	if url.kind == storeMemory {
		return url, cli.Usagef("memory: belongs to the worker that uses it: nobody else can look into it")
	}
	if f := cmd.Flags().Lookup("app"); f != nil && f.Value.Type() == "string" { // else they are several
		if err := lease.CheckApp(g.app); err != nil {
			return url, cli.Usagef("--app: %s", strings.TrimPrefix(err.Error(), "lease: "))
		}
	}
	return url, nil
}

// open opens the store and looks at the application, which has to be there.
func (g *target) open(ctx context.Context, t cli.Terminal, url storeURL) (openStore, lease.View, error) {
	store, err := url.open(ctx, t, &g.aws, false, false)
	if err != nil {
		return store, lease.View{}, err
	}
	view, err := store.view(ctx, g.app)
	if err == nil && len(view.Leases)+len(view.Workers)+len(view.Paused) == 0 {
		err = g.absent()
	}
	if err != nil {
		_ = store.Close() // only read from
		return store, view, err
	}
	return store, view, nil
}

func (g *target) absent() error {
	return fmt.Errorf("there is no application %s in that store: check --app and --store; \"weir group list\" shows what is there", cli.Visible(g.app))
}

// checkNew refuses the name of an application that no worker could have. Who looks after one that
// is there may call it what it is called.
func (g *target) checkNew() error {
	if consumerForm.MatchString(g.app) {
		return nil
	}
	return cli.Usagef("--app %.140q: no worker can have an application of that name: use 1 to 128 of a-z, A-Z, 0-9, _ . -", g.app)
}

// streamsOf are the streams that have leases, sorted.
func streamsOf(leases []lease.Lease) []string {
	var names []string
	for _, l := range leases {
		names = append(names, l.Stream)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// leasesOf are the leases of a stream, of all streams for "". One that has none is an error.
func leasesOf(app string, leases []lease.Lease, stream string) ([]lease.Lease, error) {
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
		return nil, fmt.Errorf("application %s has no leases of a stream %s: it has some of %s", app, stream, cli.List(streamsOf(leases)))
	}
	return found, nil
}
