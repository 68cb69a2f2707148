package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir/cmd/weir/internal/awsconf"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/oldside"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/cmd/weir/internal/target"
	"github.com/weir-go/weir/internal/kcl"
	"github.com/weir-go/weir/internal/kcl/leasetable"
	"github.com/weir-go/weir/internal/operate"
	"github.com/weir-go/weir/lease"
)

// back moves progress from weir to the KCL.
func (o *kclOptions) back(ctx context.Context, t cli.Terminal) error {
	store, err := o.store.Open(ctx, t, &o.AWS, false, false)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // only read from
	client, err := o.AWS.DynamoDB(ctx, t)
	if err != nil {
		return err
	}
	service, err := o.AWS.Kinesis(ctx, t)
	if err != nil {
		return err
	}
	if err := o.weirStopped(ctx, t, store); err != nil {
		return err
	}
	table := &old{client: client, name: o.table, watch: kcl.NewWatch(o.failover)}
	var missing *types.ResourceNotFoundException
	absent := false
	if err := table.look(ctx); errors.As(err, &missing) {
		absent = true
		t.Note("there is no table %s: it is made with the leases", o.table)
	} else if err != nil {
		return err
	}
	if !absent {
		if err := table.stopped(ctx, t, o.watch); err != nil {
			return err
		}
	}
	// Read the leases only after the last worker of weir has stopped, so that no progress is
	// missing.
	view, err := store.ReadApp(ctx, o.app)
	if err != nil {
		return err
	}
	if len(view.Leases) == 0 {
		return fmt.Errorf(
			"application %s has no leases in that store: check --app and --from",
			o.app,
		)
	}
	plan, r, err := o.planBack(ctx, service, view.Leases, table.last)
	if err != nil {
		return failed(err)
	}
	if o.out == cli.FormatText {
		if err := r.write(t.Out); err != nil {
			return err
		}
	}
	todo := r.count("planned")
	if !o.yes {
		return o.end(
			t,
			r,
			fmt.Sprintf(
				"%s would be written; nothing was changed. Add --yes to do so.",
				leases(todo),
			),
		)
	}
	if absent {
		if err := leasetable.Create(ctx, client, o.table); err != nil {
			return failed(err)
		}
	}
	return o.writeBack(ctx, t, store, table, r, plan)
}

// planBack plans the leases of the KCL for all streams.
func (o *kclOptions) planBack(
	ctx context.Context,
	service *kinesis.Client,
	all []lease.Lease,
	table kcl.Table,
) ([]kcl.Write, *report, error) {
	streams := o.streams
	if len(streams) == 0 {
		streams = target.StreamsOf(all)
	}
	single := len(table.Leases) > 0 && table.Leases[0].Stream.IsZero() ||
		len(table.Leases) == 0 && !o.several
	if len(streams) > 1 && single {
		return nil, nil, cli.Usagef(
			"application %s reads %s, and the table is for one stream: give one --stream, or "+
				"--multi-stream for a new table",
			o.app,
			cli.List(streams),
		)
	}
	r := &report{App: o.app, Table: o.table, was: "WEIR", to: "KCL", Steps: []stepInfo{}}
	var writes []kcl.Write
	for _, stream := range streams {
		name := awsconf.StreamName(nameIn(stream))
		ours, err := target.LeasesOf(o.app, all, name)
		if err != nil {
			return nil, nil, err
		}
		about, err := awsconf.AskStream(ctx, service, nameIn(stream))
		if err != nil {
			return nil, nil, explainStream(name, err)
		}
		var id kcl.StreamID
		var have []kcl.Lease
		if single {
			have = table.Leases
		} else if id, have, err = streamID(about, table, stream); err != nil {
			return nil, nil, err
		}
		plan, err := kcl.Back(ours, about.Stream, id, have, o.starts.AtTimestamp, o.replace)
		if err != nil {
			return nil, nil, err
		}
		writes = append(writes, plan.Writes...)
		r.Notes = append(r.Notes, plan.Notes...)
		for _, w := range plan.Writes {
			info := stepInfo{
				Stream: name,
				Shard:  w.Lease.Shard,
				Was:    w.From,
				Have:   w.Was.String(),
				To:     w.Lease.At.String(),
				Why:    w.Why,
				State:  "planned",
			}
			if w.Stays {
				info.State = string(operate.Unchanged)
			}
			r.Steps = append(r.Steps, info)
		}
	}
	return writes, r, nil
}

// streamID returns the ID of a stream in a table of several streams, and the stream's leases in the
// table. If the table does not have the stream, streamID makes the ID from the stream's account,
// name and creation time.
func streamID(
	about operate.Answer,
	table kcl.Table,
	stream string,
) (kcl.StreamID, []kcl.Lease, error) {
	name := about.Name
	if id, err := kcl.ParseStreamID(stream); err == nil {
		found, _ := kcl.Select(table, stream) // it may be new
		return id, found, nil
	}
	for _, l := range table.Leases {
		if l.Stream.Name == name {
			found, err := kcl.Select(table, name)
			return l.Stream, found, err
		}
	}
	parts := strings.Split(about.ARN, ":")
	if len(parts) < 6 || about.Born == 0 {
		return kcl.StreamID{}, nil, fmt.Errorf(
			"the account and the creation time of stream %s are unknown: name it as --stream "+
				"ACCOUNT:%s:EPOCH, as the KCL's configuration does",
			name,
			name,
		)
	}
	id, err := kcl.ParseStreamID(fmt.Sprintf("%s:%s:%d", parts[4], name, about.Born/1000))
	return id, nil, err
}

// writeBack writes the leases, and verifies the result.
func (o *kclOptions) writeBack(
	ctx context.Context,
	t cli.Terminal,
	store stores.Store,
	table *old,
	r *report,
	writes []kcl.Write,
) error {
	view, err := store.ReadApp(ctx, o.app)
	if err != nil {
		return failed(err)
	}
	if target.NotEnded(view) > 0 {
		if err := o.weirStopped(ctx, t, store); err != nil {
			return failed(err)
		}
	}
	if err := table.unchanged(ctx); err != nil {
		return failed(err)
	}
	done, meanwhile := 0, 0
	shown := cli.NewBar(t, "writing leases", len(writes))
	defer shown.Done()
	for i, w := range writes {
		if w.Stays {
			continue
		}
		happened, err := leasetable.Write(ctx, table.client, o.table, w)
		if err != nil {
			return errors.Join(
				fmt.Errorf(
					"%d leases were written, then: %w; run the command again for the rest",
					done,
					err,
				),
				o.encode(t, r),
			)
		}
		if r.Steps[i].State = string(operate.Done); happened {
			done++
		} else {
			r.Steps[i].State = string(operate.Meanwhile)
			meanwhile++
		}
		shown.Advance(1)
	}
	if meanwhile > 0 {
		return errors.Join(
			fmt.Errorf(
				"%d leases were written, and %d changed meanwhile: stop the workers of the KCL "+
					"and run the command again",
				done,
				meanwhile,
			),
			o.encode(t, r),
		)
	}
	now, err := table.read(ctx)
	if err != nil {
		return fmt.Errorf("the leases were written, but could not be read again: %w", err)
	}
	if found := kcl.Unwritten(writes, now); len(found) > 0 {
		return fmt.Errorf("the leases were written, but %s; run the command again", cli.List(found))
	}
	r.Verified = true
	if err := operate.Forget(ctx, store, o.app, oldside.KCL, o.table); err != nil {
		t.Note("\"weir doctor\" will report that the KCL runs, because the store could not delete "+
			"its note about the table: %s", explain.Error(store.Explain(err)))
	}
	return o.end(
		t,
		r,
		fmt.Sprintf(
			"%s written and read again, %d were there already. Workers of the KCL may start now "+
				"with the table %s.",
			leases(done),
			len(writes)-done,
			o.table,
		),
	)
}
