package group

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/internal/operate"
)

type deleteOptions struct {
	target.Flags
	guard
	out cli.Format
}

func deleteCommand(t cli.Terminal) *cobra.Command {
	var o deleteOptions
	cmd := &cobra.Command{
		Use:   "delete --app NAME --store URL",
		Short: "Delete an application and its progress",
		Long: `Deletes everything that a store has for an application: leases, checkpoints,
workers and pauses. A worker that starts with its name afterwards begins a new
application. Streams are not changed. If the application registered a consumer
for fan-out, remove it with "weir fanout remove".

The command refuses while workers run and asks for confirmation. Before it
deletes, it writes the progress to a file, which "weir group import" restores.`,
		Example: `  weir group delete --app billing --store sqlite:billing.db
  weir group delete --app billing --store dynamodb:weir --yes --dump billing.ndjson`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := o.URL(cmd, "app")
			if err != nil {
				return err
			}
			if err := o.check(cmd, t); err != nil {
				return err
			}
			return o.run(cmd.Context(), t, url)
		},
	}
	o.Flags.Register(cmd)
	o.guard.register(cmd)
	o.registerDump(cmd)
	o.out.Register(cmd, "output format")
	return cmd
}

func (o *deleteOptions) run(ctx context.Context, t cli.Terminal, url stores.URL) error {
	store, view, err := o.Open(ctx, t, url)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // the writes are complete, so an error does not matter
	admin, err := store.Admin()
	if err != nil {
		return err
	}
	if err := target.RefuseWhileRunning(ctx, t, store, o.App, view, o.look.UntilDead(view)); err != nil {
		return err
	}
	if !o.yes {
		if err := cli.Confirm(ctx, t, fmt.Sprintf("Delete application %s with %s?", o.App, cli.Count(len(view.Leases), "lease")), o.App); err != nil {
			return err
		}
	}
	// Time has passed since the command read the application, especially while the user answered.
	// Remove does not check whether the application is still as it was, so read it again.
	now, err := store.ReadApp(ctx, o.App)
	if err != nil {
		return err
	}
	if running := target.BeatBetween(view, now); len(running) > 0 {
		return target.RunningError{Running: running}
	}
	view = now
	path, err := target.DumpProgress(o.App, view, o.dump, time.Now())
	if err != nil {
		return fmt.Errorf("nothing was deleted, because the progress could not be saved: %w", err)
	}
	t.Note("the progress is in %s; \"weir group import\" brings it back", path)
	if err := admin.Remove(ctx, o.App); err != nil {
		return fmt.Errorf("application %s may be deleted in part, run the command again: %w", o.App, store.Explain(err))
	}
	if err := operate.Forget(ctx, store, o.App, "", ""); err != nil {
		t.Note("the note about the table that the application came from stays: %s", explain.Error(store.Explain(err)))
	}
	if o.out == cli.FormatJSON {
		return json.NewEncoder(t.Out).Encode(struct {
			App    string `json:"app"`
			Leases int    `json:"leases"`
			Dump   string `json:"dump"`
		}{o.App, len(view.Leases), path})
	}
	err = cli.Textf(t.Out, "application %s and its %s are deleted\n", o.App, cli.Count(len(view.Leases), "lease"))
	return err
}
