package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// move is what the commands for all clients share.
type move struct {
	AWS      awsconf.Flags
	client   string // for people
	app      string
	to, from string
	failover time.Duration
	replace  bool
	watch    bool
	yes      bool
	out      cli.Format

	store stores.URL
	// moved is called after the leases were written to weir. It may be nil.
	moved func(ctx context.Context, t cli.Terminal, store stores.Store)
}

// oldSide watches the tables of another client.
type oldSide interface {
	// stopped waits until the client's workers have stopped. If wait is false, it returns an error
	// that names them as soon as it sees that one runs.
	stopped(ctx context.Context, t cli.Terminal, wait bool) error
	// unchanged returns an error if a row has changed since the last look.
	unchanged(ctx context.Context) error
}

// register registers the flags that all clients have.
func (o *move) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.app, "app", "", "application of weir, by `NAME`")
	f.StringVar(
		&o.to,
		"to",
		"",
		"`URL` of the store that gets the progress, as for --store of the other commands",
	)
	f.StringVar(&o.from, "from", "", "`URL` of the store whose progress the old client gets")
	f.BoolVar(&o.replace, "replace", false, "also move leases back that are further on in weir")
	f.BoolVar(
		&o.watch,
		"watch",
		false,
		"wait until the old side has stopped, then begin at once; needs --yes",
	)
	f.BoolVar(&o.yes, "yes", false, "carry the plan out")
	o.AWS.Register(cmd, true)
	o.AWS.Role.Register(cmd)
	o.out.Register(cmd, "output format")
}

// check checks the flags that all clients have.
func (o *move) check(cmd *cobra.Command) (err error) {
	flag, url := "--to", o.to
	switch {
	case (o.to == "") == (o.from == ""):
		return cli.Usagef(
			"%s needs --to for the way to weir, or --from for the way back",
			cmd.CommandPath(),
		)
	case o.from != "":
		flag, url = "--from", o.from
	}
	if o.store, err = stores.ParseFlag(flag, url); err != nil {
		return err
	}
	if o.store.Kind == stores.Memory {
		return cli.Usagef(
			"%s memory: exists only inside the worker that uses it: no other process can use it",
			flag,
		)
	}
	if !awsconf.NameForm.MatchString(o.app) || lease.CheckApp(o.app) != nil {
		return cli.Usagef(
			"--app %.140q is not the name of an application: use 1 to 128 of a-z, A-Z, 0-9, _ . -",
			o.app,
		)
	}
	if o.watch && !o.yes {
		return cli.Usagef(
			"--watch writes as soon as the old side has stopped, so it cannot ask: add --yes",
		)
	}
	return nil
}

// parseStart parses a position that is the same in all shards: a time, or the oldest record.
func parseStart(flag, s string) (shard.Position, error) {
	if s == "" {
		return shard.Position{}, nil
	}
	p, err := shard.Parse(s)
	if err != nil || p.Kind() != shard.Time && p.Kind() != shard.First {
		return p, cli.Usagef(
			"%s %.60q: want a time such as 2026-01-31T12:00:00Z, or oldest",
			flag,
			s,
		)
	}
	if p.Kind() == shard.Time && p.Time().After(time.Now().Add(time.Minute)) {
		return p, cli.Usagef("%s %s is in the future", flag, s)
	}
	return p, nil
}

// failed adds to err the information that nothing was changed.
func failed(err error) error { return fmt.Errorf("nothing was changed: %w", err) }

// bothStopped returns an error if a worker of the old side or of weir runs. With --watch it instead
// pauses the application, so that workers of weir can be started and wait. It then waits until the
// workers of the old side have stopped.
func (o *move) bothStopped(
	ctx context.Context,
	t cli.Terminal,
	store stores.Store,
	table oldSide,
) error {
	view, err := store.ReadApp(ctx, o.app)
	if err != nil {
		return err
	}
	if !o.watch {
		err := target.RefuseWhileRunning(
			ctx,
			t,
			store,
			o.app,
			view,
			(&target.LookFlag{}).UntilDead(view),
		)
		if err != nil {
			return fmt.Errorf("%w, or give --watch, which lets them wait", err)
		}
		return table.stopped(ctx, t, false)
	}
	for _, l := range view.Leases {
		if l.Owner != "" {
			return fmt.Errorf(
				"application %s has a lease of %s already: stop its workers, start them again "+
					"after this command has begun",
				o.app,
				l.Key,
			)
		}
	}
	if _, err := operate.SetPause(ctx, store, o.app, view, "", true, cli.Operator()+" with weir migrate"); err != nil {
		return failed(store.Explain(err))
	}
	t.Note(
		"application %s is paused until its leases are there; its workers may be started now",
		o.app,
	)
	if err := table.stopped(ctx, t, true); err != nil {
		return fmt.Errorf("%w; application %s stays paused: run the command again", err, o.app)
	}
	return nil
}

// weirStopped returns when no worker of weir runs. Without --watch it returns an error if a worker
// runs.
func (o *move) weirStopped(ctx context.Context, t cli.Terminal, store stores.Store) error {
	for waiting := false; ; waiting = true {
		view, err := store.ReadApp(ctx, o.app)
		if err != nil {
			return err
		}
		say := t
		if waiting {
			say = cli.Silent
		}
		err = target.RefuseWhileRunning(
			ctx,
			say,
			store,
			o.app,
			view,
			(&target.LookFlag{}).UntilDead(view),
		)
		var running target.RunningError
		switch {
		case err == nil || !errors.As(err, &running):
			return err
		case !o.watch:
			return fmt.Errorf("%w, or give --watch to wait for their end", err)
		case !waiting:
			t.Note("waiting for the end of the workers of %s", o.app)
		}
		pause := time.NewTimer(lookEvery / 2)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		}
	}
}

// carryOut shows the plan, carries it out with --yes, and verifies the result.
func (o *move) carryOut(
	ctx context.Context,
	t cli.Terminal,
	store stores.Store,
	table oldSide,
	r *report,
	steps []change.Step,
	want []change.Wanted,
) error {
	if o.out == cli.FormatText {
		if err := r.write(t.Out); err != nil {
			return err
		}
	}
	todo := r.count("planned")
	if !o.yes {
		return o.end(t, r, leases(todo)+
			" would be written; nothing was changed. Add --yes to do so.")
	}
	if err := table.unchanged(ctx); err != nil {
		return failed(err)
	}
	shown := cli.NewBar(t, "writing leases", len(steps))
	out := operate.CarryOut(ctx, store, o.app, steps, shown.Advance)
	shown.Done()
	for i, s := range steps {
		r.Steps[i].State = string(out.State[s.Key])
	}
	if out.Left > 0 {
		err := fmt.Errorf(
			"%d of %d leases were written, and the others changed meanwhile: run the command again",
			out.Done,
			todo,
		)
		if out.Err != nil {
			err = fmt.Errorf(
				"%d of %d leases were written, then: %w; run the command again for the rest",
				out.Done,
				todo,
				store.Explain(out.Err),
			)
		}
		return errors.Join(err, o.encode(t, r))
	}
	if err := o.verify(ctx, store, table, want); err != nil {
		return err
	}
	r.Verified = true
	if o.moved != nil {
		o.moved(ctx, t, store)
	}
	return o.end(
		t,
		r,
		fmt.Sprintf(
			"%s written and read again, %d were there already. Application %s continues where "+
				"%s stopped.",
			leases(out.Done),
			len(steps)-todo,
			o.app,
			o.client,
		),
	)
}

// verify compares the store with the plan, and checks that the tables of the old side are
// unchanged. With --watch it then ends the pause of the application.
func (o *move) verify(
	ctx context.Context, store stores.Store, table oldSide, want []change.Wanted,
) error {
	view, err := store.ReadApp(ctx, o.app)
	if err != nil {
		return fmt.Errorf("the leases were written, but could not be read again: %w", err)
	}
	if found := change.Differences(want, view); len(found) > 0 {
		return fmt.Errorf("the leases were written, but %s; run the command again", cli.List(found))
	}
	if err := table.unchanged(ctx); err != nil {
		return fmt.Errorf(
			"the leases were written, but %w; until then start no worker of application %s",
			err,
			o.app,
		)
	}
	if o.watch {
		if _, err := operate.SetPause(ctx, store, o.app, view, "", false, ""); err != nil {
			return fmt.Errorf(
				"the leases were written, but application %s stays paused: %w",
				o.app,
				store.Explain(err),
			)
		}
	}
	return nil
}

// end prints the last sentence of the report.
func (o *move) end(t cli.Terminal, r *report, sentence string) error {
	if o.out == cli.FormatJSON {
		return o.encode(t, r)
	}
	err := cli.Textf(t.Out, "\n")
	for _, part := range wrap(sentence, columns) {
		err = errors.Join(err, cli.Textf(t.Out, "%s\n", part))
	}
	return err
}

func (o *move) encode(t cli.Terminal, r *report) error {
	if o.out != cli.FormatJSON {
		return nil
	}
	return json.NewEncoder(t.Out).Encode(r)
}
