package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/internal/proof/integration/chaos/cut"
	"github.com/weir-go/weir/internal/proof/integration/chaos/verdict"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/sink/s3sink"
)

const objects = "out"

// bucketSink returns a sink that uses the given client. Its objects are small, so that faults often
// occur while links are written.
func bucketSink(client *s3.Client) (*s3sink.Sink, error) {
	return s3sink.New(client, servers.Bucket, s3sink.Options{Prefix: objects, Lines: s3sink.Envelopes, MaxAge: time.Second})
}

// write runs a worker that writes its records into objects.
func (w worker) write(ctx context.Context, c *weir.Consumer) error {
	sink, err := bucketSink(servers.S3Client(w.Bucket))
	if err != nil {
		return err
	}
	return c.RunPull(ctx, sink.PullHandler())
}

// bucket is the object server, with the data that has been read from it.
type bucket struct {
	server *servers.Database
	client *s3.Client
	sink   *s3sink.Sink
	chains map[string]*followed // by shard
	shards []string             // sorted
}

// followed is the chain of a shard, as far as it has been read.
type followed struct {
	to      weir.Position
	objects int
	rows    []verdict.Put
}

func (s *stage) prepareBucket(t testing.TB) (err error) {
	b := &bucket{server: servers.S3(t), chains: map[string]*followed{}}
	b.client = servers.S3Client(b.server.Addr)
	s.bucket = b
	b.sink, err = bucketSink(b.client)
	return err
}

// follow reads the data that was written since its last call.
func (b *bucket) follow(ctx context.Context) error {
	b.shards = b.shards[:0]
	for id, err := range b.sink.Shards(ctx, stream) {
		if err != nil {
			return err
		}
		b.shards = append(b.shards, id)
		f := b.chains[id]
		if f == nil {
			f = &followed{}
			b.chains[id] = f
		}
		for o, err := range b.sink.Objects(ctx, stream, id, f.to) {
			if err == nil {
				err = b.read(ctx, f, o)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// read adds the lines of an object.
func (b *bucket) read(ctx context.Context, f *followed, o s3sink.Object) error {
	content, err := b.sink.Open(ctx, o)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(content)
	for lines.Scan() {
		var line struct{ Key, Data string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", o.Key, err), content.Close())
		}
		p, err := parseRecord(line.Key, []byte(line.Data))
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", o.Key, err), content.Close())
		}
		f.rows = append(f.rows, verdict.Put{Key: p.Key, Number: p.Number})
	}
	f.to = o.To
	if o.Key != "" {
		f.objects++
	}
	return errors.Join(lines.Err(), content.Close())
}

// rows returns the lines of all chains. The name of a shard sorts after the names of its ancestors,
// so the lines of a key are in order.
func (b *bucket) rows() (all []verdict.Put) {
	for _, id := range b.shards {
		all = append(all, b.chains[id].rows...)
	}
	return all
}

// allLines returns the lines of all objects. It also checks that each object belongs to a chain.
func (s *stage) allLines(ctx context.Context) ([]verdict.Put, error) {
	if err := s.bucket.follow(ctx); err != nil {
		return nil, err
	}
	chained, there := 0, 0
	for _, f := range s.bucket.chains {
		chained += f.objects
	}
	prefix := objects + "/" + stream + "/"
	pages := s3.NewListObjectsV2Paginator(s.bucket.client, &s3.ListObjectsV2Input{Bucket: aws.String(servers.Bucket), Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Contents {
			if !strings.HasSuffix(aws.ToString(o.Key), "/") { // folders
				there++
			}
		}
	}
	s.say("%d objects in %d chains", chained, len(s.bucket.chains))
	if chained != there {
		s.blame("%d objects are in chains, and %d are there", chained, there)
	}
	return s.bucket.rows(), nil
}

// cutBucket cuts one worker or all workers off from the bucket.
func (s *stage) cutBucket(r round, all bool) error {
	proxies, lives := s.struck(r, all, func(w *slot) *cut.Proxy { return w.bucket })
	d, mode := r.between(time.Second, 1, 9), cut.Mode(r.mode)
	f := s.begin(r, verdict.Fault{Lives: lives}, "%s", lasting(mode, d))
	return s.cutOff(f, mode, d, proxies, nil)
}
