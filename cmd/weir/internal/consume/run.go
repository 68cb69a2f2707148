package consume

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/cmd/weir/internal/cli"
	"github.com/weir-go/weir/cmd/weir/internal/explain"
	"github.com/weir-go/weir/cmd/weir/internal/oldside"
	"github.com/weir-go/weir/cmd/weir/internal/peers"
	"github.com/weir-go/weir/cmd/weir/internal/redact"
	"github.com/weir-go/weir/cmd/weir/internal/stores"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/dynamostore"
	"github.com/weir-go/weir/store/memstore"
)

// begin opens the store, and checks that the streams and the store answer. A worker retries errors
// without end, so begin reports errors that exist from the start. With --wait, an outage is not an
// error.
func (o *options) begin(ctx context.Context, t cli.Terminal, client *kinesis.Client, url stores.URL) (stores.Store, error) {
	if o.new.Given {
		err := peers.Persist(ctx, o.aws.Wait, o.aws.Service, func() error { return o.new.MakeAll(ctx, t, o.aws.Patient(client), o.streams) })
		if err != nil {
			return stores.Store{}, err
		}
	}
	if err := o.aws.Greet(ctx, client, o.streams...); err != nil {
		return stores.Store{}, err
	}
	store, err := url.Open(ctx, t, &o.aws, true, false)
	if err != nil {
		return store, err
	}
	err = peers.Persist(ctx, o.aws.Wait, store.Peer, func() error {
		if o.newTable {
			if err := store.Migrate(ctx); err != nil {
				return err
			}
			if table, ok := store.Store.(*dynamostore.Store); ok {
				if err := store.TellDifferences(ctx, t, table); err != nil {
					return err
				}
			}
		}
		_, err := store.ReadApp(ctx, o.app)
		return err
	})
	if err != nil {
		err = errors.Join(err, store.Close())
	}
	return store, err
}

func (o *options) run(ctx context.Context, t cli.Terminal, url stores.URL, from weir.Position) (err error) {
	log := o.log.Handler(t.Err)
	if o.log == cli.LogJSON {
		cli.SpeakThrough(t, log, o.app, o.worker)
	}
	o.aws.HTTP2, o.aws.Reads = o.fanOut.On(), true
	client, err := o.aws.Kinesis(ctx, t)
	if err != nil {
		return err
	}
	quiet := newLeases(log.WithAttrs([]slog.Attr{slog.String("app", o.app), slog.String("worker", o.worker)}), o.verbose)
	options := o.options(slog.New(&leases{log, quiet.leaseCounts}), from)
	told, err := o.metrics.observe(&options)
	if err != nil {
		return err
	}
	trial, err := weir.New(client, memstore.New(), options) // validate the options before creating a store
	if err != nil {
		return cli.Usage(explain.InFlags(err))
	}
	form := func() (deadletter.Lambda, error) { return o.lambdasForm(client.Options().Region) }
	if err := o.failures.open(ctx, t, &o.aws, o.streams, form); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.failures.letters.Close()) }()
	to, err := o.destination(ctx, t, client.Options().Region)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.close()) }()

	var healthy atomic.Pointer[weir.Consumer]
	healthy.Store(trial) // while the store is opened: alive, but not ready
	told.watch(trial)
	stop, err := observers{o.health, o.metrics.addr, told.of}.serve(ctx, t, func() checked { return healthy.Load() })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	written, err := told.write(ctx, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, written()) }()
	store, err := o.begin(ctx, t, client, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if url.Kind == stores.Memory {
		t.Note("the store is memory: no other worker shares it, and the progress is forgotten at the end")
	}
	consumer, err := weir.New(client, store.Store, options)
	if err != nil {
		return err
	}
	healthy.Store(consumer)
	told.watch(consumer)
	cli.SpeakThrough(t, log, o.app, o.worker) // earlier messages are for the person who started the worker
	tale := story{log: slog.New(quiet), consumer: consumer, leases: quiet, worker: o.worker}
	tale.past = func(ctx context.Context, since int64) ([]lease.HistoryChunk, error) {
		return store.RecentHistory(ctx, o.app, since)
	}
	tale.log.Info("the worker starts", "version", cli.ThisBuild().Version, "store", redact.URL(url.String()), "streams", o.streams, "flags", o.given)
	dynamo := func() (*dynamodb.Client, error) { return o.aws.DynamoDB(ctx, t) }
	defer oldside.Start(ctx, store, o.app, dynamo, tale.log)()
	work := func(ctx context.Context) error {
		return ended(t, store, tale.run(ctx, func(ctx context.Context) error { return to.run(ctx, consumer) }))
	}
	if !o.until.on() {
		return work(ctx)
	}
	e := ending{
		untilFlags: o.until, t: t, client: client, consumer: consumer, store: store.Store,
		app: o.app, worker: o.worker, streams: o.streams,
	}
	return e.run(ctx, work)
}

// ended returns the error of the command after its worker has returned err.
func ended(t cli.Terminal, store stores.Store, err error) error {
	broken := explain.NotKept(err)
	if errors.Is(err, syscall.EPIPE) {
		t.Note("standard output was closed, so the worker stopped; records that were not read from it will be handled again")
		return broken
	}
	if broken != nil {
		return broken
	}
	return store.Explain(err)
}
