package s3sink_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/internal/proof/fakes3"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/sink/s3sink"
	"github.com/weir-go/weir/store/memstore"
)

// bubble runs f in virtual time, with a stream "s".
func bubble(t *testing.T, shards int, f func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv, err := kinesistest.Start(kinesistest.Config{InMemory: true, NoLimits: true})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		srv.CreateStream("s", shards)
		f(t, srv, fakes3.New())
	})
}

// client returns a client of the fake.
func client(bucket *fakes3.Server) *s3.Client {
	return s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: aws.String("http://s3.test"), UsePathStyle: true, HTTPClient: bucket,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, nil
		}),
	})
}

func sink(t *testing.T, bucket *fakes3.Server, o s3sink.Options) *s3sink.Sink {
	t.Helper()
	s, err := s3sink.New(client(bucket), "b", o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts a worker. stop ends the worker gracefully.
func start(t *testing.T, srv *kinesistest.Server, store lease.Store, h weir.PullHandler, change ...func(*weir.Options)) (stop func()) {
	t.Helper()
	o := weir.Options{App: "app", Streams: []string{"s"}, Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&o)
	}
	c, err := weir.New(srv.Client(), store, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.RunPull(ctx, h) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func put(srv *kinesistest.Server, from, to int) {
	for i := from; i <= to; i++ {
		srv.Put("s", fmt.Sprint("key-", i), fmt.Appendf(nil, `{"n":%d}`, i))
	}
}

// inStream returns the payloads of each shard.
func inStream(srv *kinesistest.Server) map[string][]string {
	all := map[string][]string{}
	for _, r := range srv.Records("s") {
		all[r.Shard] = append(all[r.Shard], string(r.Data))
	}
	return all
}

// chains returns the objects of all chains, and their lines by shard.
func chains(t *testing.T, s *s3sink.Sink) (objects []s3sink.Object, lines map[string][]string) {
	t.Helper()
	lines = map[string][]string{}
	for shard, err := range s.Shards(t.Context(), "s") {
		if err != nil {
			t.Fatal(err)
		}
		for o, err := range s.Objects(t.Context(), "s", shard, weir.Position{}) {
			if err != nil {
				t.Fatal(err)
			}
			objects = append(objects, o)
			lines[shard] = append(lines[shard], content(t, s, o)...)
		}
	}
	return objects, lines
}

func content(t *testing.T, s *s3sink.Sink, o s3sink.Object) (lines []string) {
	t.Helper()
	r, err := s.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		lines = append(lines, in.Text())
	}
	if err := in.Err(); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	return lines
}

// faults returns the problems with the objects. According to the chains and to a listing of the
// bucket, each record of the stream must be in exactly one object, and in order.
func faults(t *testing.T, s *s3sink.Sink, bucket *fakes3.Server, want map[string][]string) (wrong []string) {
	t.Helper()
	objects, lines := chains(t, s)
	for shard, all := range want {
		if got := lines[shard]; !slices.Equal(got, all) {
			wrong = append(wrong, fmt.Sprintf("%s has %d records and %d lines: %.300q", shard, len(all), len(got), got))
		}
	}
	var keys []string
	for _, o := range objects {
		if o.Key != "" {
			keys = append(keys, o.Key)
		}
	}
	slices.Sort(keys)
	listed := slices.DeleteFunc(bucket.Keys(), func(k string) bool { return strings.Contains(k, "_weir/") })
	if !slices.Equal(keys, listed) {
		wrong = append(wrong, fmt.Sprintf("the chains have %d objects, and the bucket %d: %q", len(keys), len(listed), listed))
	}
	return wrong
}

func check(t *testing.T, s *s3sink.Sink, bucket *fakes3.Server, want map[string][]string) {
	t.Helper()
	for _, w := range faults(t, s, bucket, want) {
		t.Error(w)
	}
}

func TestEachRecordIsInOneObject(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		s := sink(t, bucket, s3sink.Options{Prefix: "raw", MaxBytes: 100})
		store := memstore.New()
		stop := start(t, srv, store, s.PullHandler())
		put(srv, 1, 100)
		time.Sleep(10 * time.Second)
		objects, _ := chains(t, s)
		if len(objects) < 10 {
			t.Errorf("%d objects of about 100 bytes", len(objects))
		}
		time.Sleep(2 * time.Minute) // no records arrive, so the rest is written because of its age
		check(t, s, bucket, inStream(srv))
		if n := s.Waiting(); n != 0 {
			t.Errorf("%d bytes wait", n)
		}
		put(srv, 101, 150)
		srv.Split("s", srv.OpenShards("s")[0])
		put(srv, 151, 200)
		time.Sleep(10 * time.Second)
		stop() // writes the remaining records
		check(t, s, bucket, inStream(srv))
		for _, o := range objects {
			hour := time.Now().UTC().Format("dt=2006-01-02/hour=15/")
			if !strings.HasPrefix(o.Key, "raw/s/"+hour+o.Shard+"-49") || !strings.HasSuffix(o.Key, ".ndjson.gz") {
				t.Errorf("an object is called %s", o.Key)
			}
		}

		// The objects contain all records before the checkpoints, and these records are not written
		// again.
		view, err := store.View(t.Context(), "app", "")
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range view.Leases {
			at, err := s.Position(t.Context(), "s", l.Shard)
			if err != nil || at != l.Position {
				t.Errorf("%s: the checkpoint is %v, the objects go to %v, %v", l.Shard, l.Position, at, err)
			}
		}
		// The leases are lost, so the records after the end of the objects are read again.
		before := len(bucket.Keys())
		stop = start(t, srv, memstore.New(), s.PullHandler())
		time.Sleep(2 * time.Minute)
		stop()
		if after := len(bucket.Keys()); after != before {
			t.Errorf("%d objects became %d", before, after)
		}
		check(t, s, bucket, inStream(srv))
	})
}

// An object contains only records of one hour or day, or of any time, depending on the partition.
func TestObjectsAreCutWhereTheHourChanges(t *testing.T) {
	for p, folders := range map[s3sink.Partition]int{s3sink.Hourly: 3, s3sink.Daily: 2, s3sink.Unpartitioned: 1} {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
				// Bubbles begin at midnight.
				time.Sleep(22*time.Hour + 59*time.Minute + 59*time.Second + 500*time.Millisecond)
				for i := range 30 {
					put(srv, i, i)
					time.Sleep(200 * time.Millisecond)
				}
				time.Sleep(time.Hour)
				put(srv, 30, 35)
				s := sink(t, bucket, s3sink.Options{Partition: p})
				stop := start(t, srv, memstore.New(), s.PullHandler())
				time.Sleep(2 * time.Minute)
				stop()
				check(t, s, bucket, inStream(srv))
				in := map[string]bool{}
				objects, _ := chains(t, s)
				for _, o := range objects {
					in[o.Key[:strings.LastIndexByte(o.Key, '/')+1]] = true
				}
				if len(in) != folders || len(objects) != folders {
					t.Errorf("%d objects in %v", len(objects), in)
				}
			})
		})
	}
}

func TestOptions(t *testing.T) {
	bucket := fakes3.New()
	for text, o := range map[string]s3sink.Options{
		"Prefix":    {Prefix: "/a"},
		"Partition": {Partition: 7},
		"Lines":     {Lines: 7},
		"MaxBytes":  {MaxBytes: -1},
		"MaxAge":    {MaxAge: time.Millisecond},
		"MaxMemory": {MaxMemory: 1},
	} {
		if _, err := s3sink.New(client(bucket), "b", o); err == nil || !strings.Contains(err.Error(), "s3sink: Options."+text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := s3sink.New(nil, "", s3sink.Options{Prefix: "a//b"}); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("%v", err)
	}
}

// If a store overwrites objects in spite of the condition, the sink detects that before it handles
// a record.
func TestAStoreWithoutConditionsIsRefused(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		bucket.IgnoreConditions = true
		s := sink(t, bucket, s3sink.Options{})
		var said error
		stop := start(t, srv, memstore.New(), s.PullHandler(), func(o *weir.Options) {
			o.OnEvent = event.On(func(_ context.Context, f event.HandlerFailed) { said = f.Err })
		})
		put(srv, 1, 10)
		time.Sleep(2 * time.Minute)
		stop()
		if said == nil || !strings.Contains(said.Error(), "If-None-Match") || len(bucket.Keys()) != 1 {
			t.Errorf("%v; the bucket has %q", said, bucket.Keys())
		}
	})
}

// During an outage of S3 the sink loses no records, and keeps only as many in memory as allowed.
func TestAnOutageGivesNothingUp(t *testing.T) {
	bubble(t, 4, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		s := sink(t, bucket, s3sink.Options{MaxMemory: 1 << 20, MaxAge: 5 * time.Minute})
		most := int64(0)
		stop := start(t, srv, memstore.New(), s.PullHandler(), func(o *weir.Options) {
			o.Batching.MaxRecords = 10
		})
		for i := range 200 {
			switch i {
			case 50:
				bucket.Control(func(fakes3.Call) fakes3.Fault { return fakes3.Refuse })
			case 100:
				bucket.Control(nil)
			}
			srv.Put("s", fmt.Sprint(i), []byte(`"`+strings.Repeat("x", 50_000)+`"`))
			time.Sleep(time.Second)
			most = max(most, s.Waiting())
		}
		time.Sleep(10 * time.Minute)
		stop()
		check(t, s, bucket, inStream(srv))
		if most > 1<<20*3/2+4*10*51_000 || most < 500_000 {
			t.Errorf("%d bytes waited", most)
		}
	})
}

// RunPull refuses options that do not suit the sink. With ReuseBuffers, the memory of records that
// wait for their object would be reused. The sink handles the batches of a shard one after the
// other, so it needs no Concurrency. It repeats failed writes, so no record needs a Destination.
func TestWrongOptionsForTheSinkAreRefused(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		for option, opts := range map[string]weir.Options{
			"Options.ReuseBuffers": {ReuseBuffers: true},
			"Options.Concurrency":  {Concurrency: weir.Concurrency{Keys: 4}},
			"Options.OnFailure":    {OnFailure: weir.FailurePolicy{Destination: deadletter.File(t.TempDir() + "/letters")}},
		} {
			opts.App, opts.Streams, opts.Logger = "a", []string{"s"}, slog.New(slog.DiscardHandler)
			c, err := weir.New(srv.Client(), memstore.New(), opts)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err = c.RunPull(ctx, sink(t, bucket, s3sink.Options{}).PullHandler())
			cancel()
			if of := (*weir.OptionError)(nil); !errors.As(err, &of) || of.Option != option {
				t.Errorf("RunPull returned %v, want an error about %s", err, option)
			}
		}
		if n := srv.Requests("ListShards") + srv.Requests("GetRecords"); n > 0 {
			t.Errorf("%d requests were made", n)
		}
	})
}
