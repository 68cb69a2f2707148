package migrate

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/oldside"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
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
	o.moved = func(ctx context.Context, t cli.Terminal, store stores.Store) {
		err := operate.Remember(ctx, store, o.app, operate.Move{
			Kind: oldside.KCL, Table: o.table, Sum: kcl.Sum(table.last), At: time.Now(),
		})
		if err != nil {
			t.Note("\"weir doctor\" will not warn of workers of the KCL that start later, because the "+
				"store could not note the table: %s", explain.Error(store.Explain(err)))
		}
	}
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

// plan plans all streams, and compares the plan with the streams.
func (o *kclOptions) plan(
	ctx context.Context,
	t cli.Terminal,
	service *kinesis.Client,
	table kcl.Table,
	streams []string,
) (all change.Plan, err error) {
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
		if plan, err = change.Settle(plan, readCheckpoints(ctx, t, service, name, plan.Leases)); err != nil {
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
	r.addSteps(steps, was)
}

// addSteps adds the steps to the report. was contains the old side's values.
func (r *report) addSteps(steps []change.Step, was map[lease.Key]string) {
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
