package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/internal/dump"
	"github.com/weir-go/weir/lease"
)

func exportCommand(t cli.Terminal) *cobra.Command {
	var g target.Flags
	cmd := &cobra.Command{
		Use:   "export --app NAME --store URL FILE|-",
		Short: "Write an application's progress to a file",
		Long: `Writes the progress of an application to a file, or with - to standard output,
as lines of JSON: first a line about the file, then one line per lease with its
position as text. The file is a snapshot: to export the final progress, stop the
workers first. The command changes nothing and never overwrites a file.

"weir group import" reads the file into the same store or another one. In this
way an application moves between stores.`,
		Example: `  weir group export --app billing --store sqlite:billing.db billing.ndjson
  weir group export --app billing --store sqlite:billing.db - | weir group import --app billing --store dynamodb:weir --yes -`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			url, err := g.URL(cmd, "app")
			if err != nil {
				return err
			}
			store, view, err := g.Open(cmd.Context(), t, url)
			if err != nil {
				return err
			}
			defer func() { _ = store.Close() }() // the store was only read
			f := dump.Of(g.App, view)
			if args[0] == "-" {
				return dump.Write(t.Out, f)
			}
			if err := target.WriteDump(args[0], f); err != nil {
				return err
			}
			t.Note("%s of %s are in %s", cli.Count(len(f.Leases), "lease"), g.App, args[0])
			return nil
		},
		ValidArgsFunction: files,
	}
	g.Register(cmd)
	return cmd
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return cli.Usagef("%s needs one FILE, or - for the standard one", cmd.CommandPath())
	}
	return nil
}

func files(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

type importOptions struct {
	target.Flags
	guard
	out     cli.Format
	replace bool
}

func importCommand(t cli.Terminal) *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import --app NAME --store URL FILE|-",
		Short: "Restore an application's progress from a file",
		Long: `Restores the leases of a file that "weir group export" wrote, or that reset or
delete saved: checkpoints, epochs and pauses. The whole file is checked first.
Leases that the store already has are overwritten only with --replace, and
leases that the file does not have stay. --app may differ from the application
in the file.

The command refuses while workers run and asks for confirmation. If the store
fails in between, the command says what was done and can be run again.

A SQLite file is created if necessary. Other stores have to exist: see "weir
store create".`,
		Example: `  weir group import --app billing --store dynamodb:weir billing.ndjson
  weir group import --app billing --store sqlite:billing.db --replace weir-billing-20260131T120000Z.ndjson
  weir group export --app billing --store sqlite:billing.db - | weir group import --app billing --store dynamodb:weir --yes -`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			url, err := o.URL(cmd, "app")
			if err != nil {
				return err
			}
			if err := o.CheckNew(); err != nil {
				return err
			}
			if args[0] == "-" && !o.yes {
				return cli.Usagef("%s - reads leases from standard input, so it cannot ask for confirmation there: add --yes", cmd.CommandPath())
			}
			if err := o.check(cmd, t); err != nil {
				return err
			}
			return o.run(cmd.Context(), t, url, args[0])
		},
		ValidArgsFunction: files,
	}
	o.Flags.Register(cmd)
	o.guard.register(cmd)
	cmd.Flags().BoolVar(&o.replace, "replace", false, "move leases that already are in the store to the positions in the file")
	o.out.Register(cmd, "output format")
	return cmd
}

// importReport is the output of group import.
type importReport struct {
	App    string     `json:"app"`
	From   string     `json:"from"` // the application from which the file was exported
	Paused []string   `json:"paused,omitempty"`
	Steps  []stepInfo `json:"steps"`
}

func (o *importOptions) run(ctx context.Context, t cli.Terminal, url stores.URL, path string) error {
	file, err := readDump(t, path)
	if err != nil {
		return err
	}
	store, err := url.Open(ctx, t, &o.AWS, true, false)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // the writes are complete, so an error does not matter
	view, err := store.ReadApp(ctx, o.App)
	if err != nil {
		return err
	}
	if err := target.RefuseWhileRunning(ctx, t, store, o.App, view, o.look.UntilDead(view)); err != nil {
		return err
	}
	steps, err := change.Restore(file.Leases, view, o.replace)
	if err != nil {
		return err
	}
	if file.App != o.App {
		t.Note("the file is of application %s, and becomes %s", file.App, o.App)
	}
	n := toDo(steps)
	if o.out == cli.FormatText {
		fmt.Fprint(t.Out, stepsText(steps))
	}
	if n > 0 && !o.yes {
		if err := cli.Confirm(ctx, t, fmt.Sprintf("Bring %s to %s?", cli.Count(n, "lease"), o.App), "yes"); err != nil {
			return err
		}
	}
	// Pause first. Otherwise a worker could take a lease before the pause.
	err = pauseAll(ctx, store, o.App, file.Paused)
	var out outcome
	if err == nil {
		out = carryOut(ctx, t, store, o.App, steps)
	}
	report := importReport{o.App, file.App, file.Paused, stepInfos(steps, out.State)}
	if o.out == cli.FormatJSON {
		err = errors.Join(err, json.NewEncoder(t.Out).Encode(report))
	} else if err == nil {
		err = cli.Textf(t.Out, "\n%s brought, %s were there already.%s\n", cli.Count(out.Done, "lease"), figures.Count(len(steps)-n), pausedText(file.Paused))
	}
	return errors.Join(out.failure("brought"), err)
}

func pauseAll(ctx context.Context, store stores.Store, app string, streams []string) error {
	if len(streams) == 0 {
		return nil
	}
	note := lease.PauseNote{By: cli.Operator() + " with weir group import", At: time.Now()}.String()
	var actions []lease.Action
	for _, s := range streams {
		actions = append(actions, lease.Action{Kind: lease.Pause, Stream: s, On: true, Note: note})
	}
	did, err := store.Apply(ctx, app, actions)
	if err != nil {
		return fmt.Errorf("nothing was brought: %w", store.Explain(err))
	}
	for _, happened := range did {
		if !happened {
			return fmt.Errorf("nothing was brought: with what is paused already more than %d streams would be", lease.MaxPaused)
		}
	}
	return nil
}

func readDump(t cli.Terminal, path string) (dump.File, error) {
	in := t.In
	name := "standard input"
	if path != "-" {
		file, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return dump.File{}, fmt.Errorf("there is no file %s", path)
		}
		if err != nil {
			return dump.File{}, fmt.Errorf("the file %s cannot be read: %w", path, cli.RootError(err))
		}
		defer func() { _ = file.Close() }() // the file was only read
		if info, err := file.Stat(); err == nil && info.IsDir() {
			return dump.File{}, fmt.Errorf("%s is a directory: name a file", path)
		}
		in, name = file, path
	}
	f, err := dump.Read(in)
	if err != nil {
		return f, fmt.Errorf("%s: %w; nothing was changed", name, err)
	}
	return f, nil
}
