package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/sink/s3sink"
)

// objectAge is how long a worker waits for more records of an object.
const objectAge = 2 * time.Second

// cutOne of so many requests to S3 gets no answer although it was carried out.
const cutOne = 37

// objects are the effects in a bucket. What was read stays read: the chains only grow.
type objects struct {
	address string // of the server
	cut     string // … of the same behind a proxy that loses answers, which workers use

	sink *s3sink.Sink
	at   map[string]weir.Position // by shard, how far its chain was read
	read map[string][]verdict.Put
}

// newObjects starts an S3 server.
func newObjects(t testing.TB) *objects {
	server := servers.S3(t)
	proxy := servers.NewProxy(t, server.Addr)
	var n atomic.Int64
	proxy.CutAnswers(func([]byte) bool { return n.Add(1)%cutOne == 0 })
	return &objects{address: server.Addr, cut: proxy.Addr, at: map[string]weir.Position{}, read: map[string][]verdict.Put{}}
}

func objectsOn(address string) (*s3sink.Sink, error) {
	return s3sink.New(servers.S3Client(address), servers.Bucket, s3sink.Options{
		Prefix: app, Partition: s3sink.Unpartitioned, Lines: s3sink.Envelopes, Plain: true, MaxAge: objectAge,
	})
}

func (o *objects) prepare(context.Context) (err error) {
	o.sink, err = objectsOn(o.address)
	return err
}

func (o *objects) count(ctx context.Context) (n int64, err error) {
	for id, err := range o.sink.Shards(ctx, stream) {
		if err != nil {
			return 0, err
		}
		for made, err := range o.sink.Objects(ctx, stream, id, o.at[id]) {
			if err != nil {
				return 0, err
			}
			if err := o.add(ctx, made); err != nil {
				return 0, err
			}
		}
	}
	for _, all := range o.read {
		n += int64(len(all))
	}
	return n, nil
}

// add reads the next object of a chain.
func (o *objects) add(ctx context.Context, made s3sink.Object) (err error) {
	if made.Key != "" {
		lines, err := o.sink.Open(ctx, made)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lines.Close()) }()
		for scan := bufio.NewScanner(lines); scan.Scan(); {
			var line struct{ Key, Data string }
			if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
				return err
			}
			put, err := parseRecord(line.Key, []byte(line.Data))
			if err != nil {
				return err
			}
			o.read[made.Shard] = append(o.read[made.Shard], verdict.Put{Key: put.Key, Number: put.Number})
		}
	}
	o.at[made.Shard] = made.To
	return nil
}

// all are the effects shard by shard: a shard's ID is higher than those of its parents, so the
// records of a key are in order.
func (o *objects) all(ctx context.Context) (all []verdict.Put, err error) {
	if _, err := o.count(ctx); err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(o.read)) {
		all = append(all, o.read[id]...)
	}
	return all, nil
}

// writeObjects is a worker whose records are lines of objects.
func (w worker) writeObjects(ctx context.Context, c *weir.Consumer) error {
	sink, err := objectsOn(w.S3)
	if err != nil {
		return err
	}
	return c.RunShards(ctx, sink.Handlers())
}
