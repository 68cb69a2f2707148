package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/figures"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/internal/change"
	"github.com/weir-go/weir/internal/foreign"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// foreignTable is where a client keeps the checkpoints of one application and stream.
type foreignTable interface {
	// read returns the content. The error is a types.ResourceNotFoundException if there is no
	// table.
	read(ctx context.Context) (foreign.State, error)
	// write carries out a write. It returns false if the row has changed since it was read.
	write(ctx context.Context, w foreign.Write) (bool, error)
	// create makes missing tables.
	create(ctx context.Context) error
	close()
}

// oldForeign watches the checkpoints of another client.
type oldForeign struct {
	foreignTable
	place  string
	client string
	watch  *foreign.Watch
	last   foreign.State
}

func (f *oldForeign) look(ctx context.Context) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, scanBound)
	defer cancel()
	state, err := f.read(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", f.place, err)
	}
	f.watch.See(began, state)
	f.last = state
	return nil
}

func (f *oldForeign) stopped(ctx context.Context, t cli.Terminal, wait bool) error {
	if left := f.watch.Left(); left > 0 {
		t.Note("watching %s for %s: no row may change", f.place, figures.Duration(left))
	}
	said := ""
	for {
		running := f.watch.Running()
		switch {
		case len(running) > 0 && !wait:
			return fmt.Errorf(
				"workers of %s run: %s; stop them first, or give --watch to wait for their end",
				f.client, cli.List(running),
			)
		case len(running) == 0 && f.watch.Left() == 0:
			return nil
		}
		if names := cli.List(running); len(running) > 0 && names != said {
			said = names
			t.Note("waiting for the end of %s", names)
		}
		pause := time.NewTimer(min(lookEvery, max(f.watch.Left(), 100*time.Millisecond)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		}
		if err := f.look(ctx); err != nil {
			return fmt.Errorf("weir could not find out whether workers of %s run: %w", f.client, err)
		}
	}
}

func (f *oldForeign) unchanged(ctx context.Context) error {
	now, err := f.read(ctx)
	if err != nil {
		return err
	}
	if f.watch.Changed(now) {
		return fmt.Errorf("a worker of %s has started: %s has changed since the plan was made; "+
			"stop it and run the command again", f.client, f.place)
	}
	return nil
}

// begin opens the old side, and queries the stream.
func (o *foreignOptions) begin(
	ctx context.Context, t cli.Terminal,
) (*oldForeign, *kinesis.Client, operate.Answer, map[string]string, error) {
	service, err := o.AWS.Kinesis(ctx, t)
	if err != nil {
		return nil, nil, operate.Answer{}, nil, err
	}
	about, err := awsconf.AskStream(ctx, service, o.stream)
	if err != nil {
		return nil, nil, about, nil, explainStream(o.stream, err)
	}
	var first map[string]string
	if o.of.client == foreign.Lifion {
		if first, err = firstNumbers(ctx, service, o.stream); err != nil {
			return nil, nil, about, nil, explainStream(o.stream, err)
		}
	}
	table, err := o.open(ctx, t, about.Stream, first)
	if err != nil {
		return nil, nil, about, nil, err
	}
	old := &oldForeign{
		foreignTable: table, place: o.place(), client: o.client, watch: foreign.NewWatch(),
	}
	return old, service, about, first, nil
}

// there moves progress from the client to weir.
func (o *foreignOptions) there(ctx context.Context, t cli.Terminal) error {
	old, service, about, _, err := o.begin(ctx, t)
	if err != nil {
		return err
	}
	defer old.close()
	if err := old.look(ctx); err != nil {
		return err
	}
	if len(old.last.Rows) == 0 {
		return fmt.Errorf("%s has no checkpoints of application %s for stream %s: check --old-app, "+
			"--stream and the table", old.place, o.oldApp, about.Name)
	}
	store, err := o.store.Open(ctx, t, &o.AWS, true, false)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // the writes are complete
	if err := o.bothStopped(ctx, t, store, old); err != nil {
		return err
	}
	view, err := store.ReadApp(ctx, o.app)
	if err != nil {
		return err
	}
	if o.starts.Tip.IsZero() {
		o.starts.Tip = shard.At(earliest(about.Now, old.last.Last))
	}
	plan, err := foreign.There(o.of.client, old.last, about.Stream, o.starts)
	if err != nil {
		return failed(err)
	}
	seen := readCheckpoints(ctx, t, service, o.stream, plan.Leases)
	if plan, err = change.Settle(plan, seen); err != nil {
		return failed(err)
	}
	if o.rewind > 0 {
		plan = foreign.Rewind(plan, seen, earliest(about.Now, old.last.Last).Add(-o.rewind))
	}
	if o.repeat {
		if plan, err = foreign.Again(plan); err != nil {
			return failed(err)
		}
	}
	steps, err := change.Adopt(plan.Leases, view, o.replace)
	if err != nil {
		return failed(err)
	}
	r := report{App: o.app, Table: old.place, Notes: plan.Notes, was: "OLD", to: "WEIR"}
	was := map[lease.Key]string{}
	for _, row := range old.last.Rows {
		was[lease.Key{Stream: about.Name, Shard: row.Shard}] = cmp0(row.Raw)
	}
	r.addSteps(steps, was)
	return o.carryOut(ctx, t, store, old, &r, steps, plan.Leases)
}

// cmp0 returns a stored value, or a word for a row without one.
func cmp0(raw string) string {
	if raw == "" {
		return "no position"
	}
	return raw
}

// earliest returns the earlier time. A zero time does not count.
func earliest(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}

// back moves progress from weir to the client.
func (o *foreignOptions) back(ctx context.Context, t cli.Terminal) error {
	store, err := o.store.Open(ctx, t, &o.AWS, false, false)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // only read from
	old, _, about, first, err := o.begin(ctx, t)
	if err != nil {
		return err
	}
	defer old.close()
	if err := o.weirStopped(ctx, t, store); err != nil {
		return err
	}
	var missing *types.ResourceNotFoundException
	absent := false
	if err := old.look(ctx); errors.As(err, &missing) {
		absent = true
		t.Note("there is no table %s: it is made with the checkpoints", old.place)
	} else if err != nil {
		return err
	} else if err := old.stopped(ctx, t, o.watch); err != nil {
		return err
	}
	view, err := store.ReadApp(ctx, o.app)
	if err != nil {
		return err
	}
	ours, err := target.LeasesOf(o.app, view.Leases, about.Name)
	if err != nil {
		return err
	}
	plan, err := foreign.Back(o.of.client, ours, about.Stream, old.last, foreign.BackOptions{
		Group: o.groupTable != "", First: first, Replace: o.replace,
	})
	if err != nil {
		return failed(err)
	}
	r := &report{
		App: o.app, Table: old.place, Notes: plan.Notes, was: "WEIR", to: "OLD", Steps: []stepInfo{},
	}
	for _, w := range plan.Writes {
		info := stepInfo{
			Stream: about.Name, Shard: w.Row.Shard, Was: w.From, Have: w.Row.Raw,
			To: cmp0(w.Raw), Why: w.Why, State: "planned",
		}
		if w.Stays {
			info.State = string(operate.Unchanged)
		}
		r.Steps = append(r.Steps, info)
	}
	if o.out == cli.FormatText {
		if err := r.write(t.Out); err != nil {
			return err
		}
	}
	if !o.yes {
		return o.end(t, r, cli.Count(r.count("planned"), "row")+
			" would be written; nothing was changed. Add --yes to do so.")
	}
	if target.NotEnded(view) > 0 {
		if err := o.weirStopped(ctx, t, store); err != nil {
			return failed(err)
		}
	}
	if absent {
		if err := old.create(ctx); err != nil {
			return failed(err)
		}
	} else if err := old.unchanged(ctx); err != nil {
		return failed(err)
	}
	return o.writeBack(ctx, t, old, r, plan.Writes)
}

// writeBack writes the rows, and verifies the result.
func (o *foreignOptions) writeBack(
	ctx context.Context, t cli.Terminal, old *oldForeign, r *report, writes []foreign.Write,
) error {
	done, meanwhile := 0, 0
	for i, w := range writes {
		if w.Stays {
			continue
		}
		happened, err := old.write(ctx, w)
		if err != nil {
			return errors.Join(
				fmt.Errorf("%d rows were written, then: %w; run the command again for the rest", done, err),
				o.encode(t, r),
			)
		}
		if happened {
			r.Steps[i].State = string(operate.Done)
			done++
		} else {
			r.Steps[i].State = string(operate.Meanwhile)
			meanwhile++
		}
	}
	if meanwhile > 0 {
		return errors.Join(
			fmt.Errorf("%d rows were written, and %d changed meanwhile: stop the workers of %s and "+
				"run the command again", done, meanwhile, o.client),
			o.encode(t, r),
		)
	}
	now, err := old.read(ctx)
	if err != nil {
		return fmt.Errorf("the rows were written, but could not be read again: %w", err)
	}
	if found := foreign.Unwritten(writes, now); len(found) > 0 {
		return fmt.Errorf("the rows were written, but %s; run the command again", cli.List(found))
	}
	r.Verified = true
	return o.end(t, r, fmt.Sprintf(
		"%s written and read again, %d were there already. Workers of %s may start now.",
		cli.Count(done, "row"), len(writes)-done, o.client,
	))
}

// firstNumbers returns the first sequence number of each shard.
func firstNumbers(
	ctx context.Context, client *kinesis.Client, stream string,
) (map[string]string, error) {
	first := map[string]string{}
	in := &kinesis.ListShardsInput{}
	in.StreamName, in.StreamARN = awsconf.NameOrARN(stream)
	for {
		out, err := client.ListShards(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, sh := range out.Shards {
			if sh.SequenceNumberRange != nil {
				id := aws.ToString(sh.ShardId)
				first[id] = aws.ToString(sh.SequenceNumberRange.StartingSequenceNumber)
			}
		}
		if out.NextToken == nil {
			return first, nil
		}
		in = &kinesis.ListShardsInput{NextToken: out.NextToken}
	}
}
