package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/internal/kcl"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// there moves progress from the KCL to weir.
func (o *kclOptions) there(ctx context.Context, t cli.Terminal) error {
	client, err := o.AWS.DynamoDB(ctx, t)
	if err != nil {
		return err
	}
	table := &old{client: client, name: o.table, watch: kcl.NewWatch(o.failover)}
	if err := table.look(ctx); err != nil {
		return err
	}
	if len(table.last.Leases) == 0 {
		return nothing(o.table)
	}
	streams, err := o.streamsOf(table.last)
	if err != nil {
		return err
	}
	service, err := o.AWS.Kinesis(ctx, t)
	if err != nil {
		return err
	}
	// Choose the start of leases at LATEST before the workers of the KCL have stopped. Otherwise
	// these leases would skip the records that arrive after the stop.
	if err := o.pinLatest(ctx, service, streams); err != nil {
		return err
	}
	store, err := o.store.Open(ctx, t, &o.AWS, true, false)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // the writes are complete
	if err := o.bothStopped(ctx, t, store, table); err != nil {
		return err
	}

	view, err := store.ReadApp(ctx, o.app)
	if err != nil {
		return err
	}
	plan, err := o.plan(ctx, t, service, table.last, streams)
	if err != nil {
		return failed(err)
	}
	steps, err := change.Adopt(plan.Leases, view, o.replace)
	if err != nil {
		return failed(err)
	}
	r := report{App: o.app, Table: o.table, Notes: plan.Notes, was: "KCL", to: "WEIR"}
	r.plan(steps, table.last, streams)
	return o.carryOut(ctx, t, store, table, &r, steps, plan.Leases)
}

// streamsOf returns the streams to move. The flags name them. Without such flags, the table names
// them.
func (o *kclOptions) streamsOf(table kcl.Table) ([]string, error) {
	if len(o.streams) > 0 {
		if kcl.StreamsOf(table) == nil && len(o.streams) > 1 {
			return nil, cli.Usagef(
				"table %s is about one stream: give one --stream, not %d",
				o.table,
				len(o.streams),
			)
		}
		return o.streams, nil
	}
	if streams := kcl.StreamsOf(table); streams != nil {
		return streams, nil
	}
	return nil, cli.Usagef("table %s does not name its stream: add --stream", o.table)
}

// nameIn returns the name or the ARN by which the service knows a stream.
func nameIn(stream string) string {
	if id, err := kcl.ParseStreamID(stream); err == nil {
		return id.Name
	}
	return stream
}

// pinLatest sets the start of leases at LATEST to the current time of the service, unless --latest
// sets it.
func (o *kclOptions) pinLatest(
	ctx context.Context,
	service *kinesis.Client,
	streams []string,
) error {
	if !o.starts.Latest.IsZero() {
		return nil
	}
	about, err := awsconf.AskStream(ctx, service, nameIn(streams[0]))
	if err != nil {
		return explainStream(nameIn(streams[0]), err)
	}
	o.starts.Latest = shard.At(about.Now)
	return nil
}

// bothStopped returns an error if a worker of the KCL or of weir runs. With --watch it instead
// pauses the application, so that workers of weir can be started and wait. It then waits until the
// workers of the KCL have stopped.
func (o *kclOptions) bothStopped(
	ctx context.Context,
	t cli.Terminal,
	store stores.Store,
	table *old,
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
	if _, err := operate.SetPause(ctx, store, o.app, view, "", true); err != nil {
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

// plan plans all streams, and compares the plan with the streams.
func (o *kclOptions) plan(
	ctx context.Context,
	t cli.Terminal,
	service *kinesis.Client,
	table kcl.Table,
	streams []string,
) (all kcl.Plan, err error) {
	for _, stream := range streams {
		name := nameIn(stream)
		chosen := stream
		if name == stream {
			chosen = awsconf.StreamName(stream)
		}
		found, err := kcl.Select(table, chosen)
		if err != nil {
			return all, err
		}
		about, err := awsconf.AskStream(ctx, service, name)
		if err != nil {
			return all, explainStream(name, err)
		}
		if about.Denied != nil {
			t.Note(
				"when stream %s was created stays unknown: %s",
				name,
				explain.Error(about.Denied),
			)
		}
		plan, err := kcl.There(found, about.Stream, o.starts)
		if err != nil {
			return all, err
		}
		if plan, err = kcl.Settle(plan, readCheckpoints(ctx, t, service, name, plan.Leases)); err != nil {
			return all, err
		}
		all.Leases = append(all.Leases, plan.Leases...)
		all.Notes = append(all.Notes, plan.Notes...)
	}
	return all, nil
}

// plan adds the steps to the report.
func (r *report) plan(steps []change.Step, table kcl.Table, streams []string) {
	was := map[lease.Key]string{}
	for _, stream := range streams {
		name := awsconf.StreamName(nameIn(stream))
		for _, l := range table.Leases {
			if l.Stream.IsZero() || l.Stream.Name == name {
				was[lease.Key{Stream: name, Shard: l.Shard}] = l.At.String()
			}
		}
	}
	for _, s := range steps {
		info := stepInfo{
			Stream: s.Stream,
			Shard:  s.Shard,
			Was:    was[s.Key],
			Have:   s.From.String(),
			To:     s.To.String(),
			Why:    s.Why,
			State:  "planned",
		}
		if len(s.Actions) == 0 {
			info.State = string(operate.Unchanged)
		}
		r.Steps = append(r.Steps, info)
	}
}

// carryOut shows the plan, carries it out with --yes, and verifies the result.
func (o *kclOptions) carryOut(
	ctx context.Context,
	t cli.Terminal,
	store stores.Store,
	table *old,
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
	return o.end(
		t,
		r,
		fmt.Sprintf(
			"%s written and read again, %d were there already. Application %s continues where "+
				"the KCL stopped.",
			leases(out.Done),
			len(steps)-todo,
			o.app,
		),
	)
}

// verify compares the store with the plan, and checks that the table of the KCL is unchanged. With
// --watch it then ends the pause of the application.
func (o *kclOptions) verify(
	ctx context.Context, store stores.Store, table *old, want []change.Wanted,
) error {
	view, err := store.ReadApp(ctx, o.app)
	if err != nil {
		return fmt.Errorf("the leases were written, but could not be read again: %w", err)
	}
	if found := kcl.Differences(want, view); len(found) > 0 {
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
		if _, err := operate.SetPause(ctx, store, o.app, view, "", false); err != nil {
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
func (o *kclOptions) end(t cli.Terminal, r *report, sentence string) error {
	if o.out == cli.FormatJSON {
		return o.encode(t, r)
	}
	err := cli.Textf(t.Out, "\n")
	for _, part := range wrap(sentence, columns) {
		err = errors.Join(err, cli.Textf(t.Out, "%s\n", part))
	}
	return err
}

func (o *kclOptions) encode(t cli.Terminal, r *report) error {
	if o.out != cli.FormatJSON {
		return nil
	}
	return json.NewEncoder(t.Out).Encode(r)
}
