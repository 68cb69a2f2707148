package s3sink_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/internal/proof/fakes3"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/sink/s3sink"
	"github.com/weir-go/weir/store/memstore"
)

// isObject reports whether a key is that of an object and not of a link.
func isObject(key string) bool { return key != "" && !strings.Contains(key, "_weir/") }

// If a writer dies between writing a link and its object, the next writer writes the object. It
// uses the end in the link, although its own options would make the object end elsewhere.
func TestAnObjectThatWasBegunIsWrittenByTheNextOwner(t *testing.T) {
	for name, more := range map[string]int{"and goes on": 20, "and there is nothing more": 0} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
				put(srv, 1, 5)
				first := sink(t, bucket, s3sink.Options{MaxBytes: 50, MaxAge: 10 * time.Second})
				stop := start(t, srv, memstore.New(), first.PullHandler())
				time.Sleep(15 * time.Second)
				written := len(bucket.Keys())
				bucket.Control(func(c fakes3.Call) fakes3.Fault { // links can be written, objects cannot
					if c.Method == "PUT" && isObject(c.Key) {
						return fakes3.Deny
					}
					return fakes3.None
				})
				put(srv, 6, 15)
				time.Sleep(15 * time.Second)
				stop()
				bucket.Control(nil)
				if n := len(bucket.Keys()); n != written+1 {
					t.Fatalf("%q", bucket.Keys())
				}
				begun, _ := chains(t, first)
				at, err := first.Position(t.Context(), "s", "shardId-000000000000")
				if err != nil || at != begun[len(begun)-1].To {
					t.Errorf("the position is %v, %v: behind the object that is not there", at, err)
				}

				put(srv, 16, 15+more)
				second := sink(t, bucket, s3sink.Options{MaxBytes: 1000, MaxAge: 3 * time.Second, Plain: true})
				stop = start(t, srv, memstore.New(), second.PullHandler())
				time.Sleep(30 * time.Second)
				stop()
				check(t, second, bucket, inStream(srv))
			})
		})
	}
}

// If the answer to a write is lost, the write is neither made twice nor skipped. The answer may be
// lost once, or for all three attempts of the SDK.
func TestALostAnswerIsHarmless(t *testing.T) {
	for name, lost := range map[string]int{"once": 1, "every time": 3} {
		for what, of := range map[string]func(string) bool{"a link": func(key string) bool { return !isObject(key) }, "an object": isObject} {
			t.Run(name+", of "+what, func(t *testing.T) {
				bubble(t, 1, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
					s := sink(t, bucket, s3sink.Options{MaxBytes: 30})
					s.Trust()
					stop := start(t, srv, memstore.New(), s.PullHandler())
					put(srv, 1, 10)
					time.Sleep(5 * time.Second)
					n := 0
					bucket.Control(func(c fakes3.Call) fakes3.Fault {
						if c.Method == "PUT" && of(c.Key) && n < lost {
							n++
							return fakes3.Lose
						}
						return fakes3.None
					})
					put(srv, 11, 20)
					time.Sleep(2 * time.Minute)
					stop()
					check(t, s, bucket, inStream(srv))
					if n != lost {
						t.Errorf("%d answers were lost", n)
					}
				})
			})
		}
	}
}

// The end of a shard is the last link of its chain, with and without records before it.
func TestTheEndOfAShard(t *testing.T) {
	for name, silence := range map[string]time.Duration{"right after records": 0, "after silence": time.Hour} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
				s := sink(t, bucket, s3sink.Options{})
				store := memstore.New()
				stop := start(t, srv, store, s.PullHandler())
				put(srv, 1, 7)
				time.Sleep(silence)
				parent := srv.OpenShards("s")[0]
				srv.Split("s", parent)
				put(srv, 8, 20)
				time.Sleep(time.Minute)
				stop()
				check(t, s, bucket, inStream(srv))
				at, err := s.Position(t.Context(), "s", parent)
				if err != nil || !at.IsEnd() {
					t.Errorf("the position is %v, %v", at, err)
				}
				objects, _ := chains(t, s)
				i := slices.IndexFunc(objects, func(o s3sink.Object) bool { return o.To.IsEnd() })
				if i < 0 || (objects[i].Key == "") != (silence > 0) || objects[i].Shard != parent {
					t.Errorf("%+v", objects)
				}
				for o, err := range s.Objects(t.Context(), "s", parent, shard.End) {
					t.Errorf("after the end: %+v, %v", o, err)
				}
				// The leases are lost, but a finished shard is not written again.
				before := len(bucket.Keys())
				stop = start(t, srv, memstore.New(), s.PullHandler())
				time.Sleep(time.Minute)
				stop()
				if after := len(bucket.Keys()); after != before {
					t.Errorf("%d objects became %d", before, after)
				}
			})
		})
	}
}

// Before a handoff, all records that the writer holds are written to an object, and are marked as
// done.
func TestAHandOffWritesWhatIsHeld(t *testing.T) {
	bubble(t, 4, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		s := sink(t, bucket, s3sink.Options{MaxAge: time.Hour})
		store := memstore.New()
		named := func(name string) func(*weir.Options) { return func(o *weir.Options) { o.Worker = name } }
		stop := start(t, srv, store, s.PullHandler(), named("one"))
		put(srv, 1, 100)
		time.Sleep(30 * time.Second)
		if objects, _ := chains(t, s); len(objects) > 0 {
			t.Fatalf("%d objects", len(objects))
		}
		other := start(t, srv, store, s.PullHandler(), named("two"))
		time.Sleep(time.Minute)
		// There is one object for each of the two shards that were handed off.
		if objects, _ := chains(t, s); len(objects) != 2 {
			t.Errorf("%d objects", len(objects))
		}
		stop()
		other()
		check(t, s, bucket, inStream(srv))
		if objects, _ := chains(t, s); len(objects) != 4 {
			t.Errorf("%d objects of 4 shards", len(objects))
		}
	})
}

// If S3 does not answer, the lease is still handed off after HandoffTimeout. The held records are
// not written.
func TestAHandOffDoesNotWaitForS3(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		store := memstore.New()
		stuck, free := sink(t, bucket, s3sink.Options{MaxAge: time.Hour}), sink(t, bucket, s3sink.Options{MaxAge: 5 * time.Second})
		stop := start(t, srv, store, stuck.PullHandler(), func(o *weir.Options) { o.Worker = "one" })
		put(srv, 1, 20)
		time.Sleep(10 * time.Second)
		var hangs atomic.Bool
		hangs.Store(true)
		bucket.Control(func(c fakes3.Call) fakes3.Fault {
			if hangs.Load() && c.Method == "PUT" {
				<-c.Context.Done()
				return fakes3.Cut
			}
			return fakes3.None
		})
		other := start(t, srv, store, free.PullHandler(), func(o *weir.Options) { o.Worker = "two" })
		time.Sleep(50 * time.Second)
		hangs.Store(false)
		time.Sleep(2 * time.Minute)
		view, err := store.View(t.Context(), "app", "")
		if err != nil {
			t.Fatal(err)
		}
		if a, b := view.Leases[0].Owner, view.Leases[1].Owner; a == b {
			t.Errorf("both leases belong to %s", a)
		}
		stop()
		other()
		check(t, free, bucket, inStream(srv))
	})
}

// A worker that has lost its leases drops the records that it holds.
func TestALostLeaseIsLeftAtOnce(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		s := sink(t, bucket, s3sink.Options{MaxAge: time.Hour})
		var why error
		h := s.PullHandler()
		of := h.Pull
		h.Pull = func(ctx context.Context, sh *weir.Puller) error {
			why = of(ctx, sh)
			return why
		}
		store := &cutStore{Store: memstore.New()}
		stop := start(t, srv, store, h)
		put(srv, 1, 10)
		time.Sleep(10 * time.Second)
		store.cut.Store(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if why == nil || s.Waiting() != 0 || slices.ContainsFunc(bucket.Keys(), isObject) {
			t.Errorf("%v, %d bytes wait, %q", why, s.Waiting(), bucket.Keys())
		}
		store.cut.Store(false)
		time.Sleep(time.Minute)
		stop()
		check(t, s, bucket, inStream(srv))
	})
}

// A program can follow the objects of a chain, starting after the last one that it has seen.
func TestObjectsAreFollowed(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		s := sink(t, bucket, s3sink.Options{MaxBytes: 20})
		stop := start(t, srv, memstore.New(), s.PullHandler())
		id, at := srv.OpenShards("s")[0], weir.Position{}
		var lines []string
		for i := range 20 {
			put(srv, i*5, i*5+4)
			time.Sleep(time.Second)
			for o, err := range s.Objects(t.Context(), "s", id, at) {
				if err != nil || o.From != at {
					t.Fatalf("%+v after %v, %v", o, at, err)
				}
				at = o.To
				lines = append(lines, content(t, s, o)...)
			}
		}
		stop()
		if all := inStream(srv)[id]; !slices.Equal(lines, all[:len(lines)]) || len(lines) < 90 {
			t.Errorf("%d of %d lines", len(lines), len(all))
		}
		one := func(after weir.Position) error {
			for _, err := range s.Objects(t.Context(), "s", id, after) {
				return err
			}
			return nil
		}
		if err := one(shard.Oldest); err == nil || !strings.Contains(err.Error(), "no object begins at oldest") {
			t.Errorf("%v", err)
		}
		bucket.Delete("_weir/s/" + id + "/start")
		if err := one(weir.Position{}); err == nil || !strings.Contains(err.Error(), "was removed") {
			t.Errorf("%v", err)
		}
	})
}

// A writer may begin to read after the end of a chain that another writer has created in the
// meantime. It must leave no gap in the chain.
func TestAWriterThatBeganElsewhere(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		put(srv, 1, 10)
		time.Sleep(time.Second)
		late := sink(t, bucket, s3sink.Options{MaxAge: 30 * time.Second})
		stopLate := start(t, srv, memstore.New(), late.PullHandler(), func(o *weir.Options) { o.Start = weir.Latest })
		time.Sleep(5 * time.Second)
		early := sink(t, bucket, s3sink.Options{MaxBytes: 20})
		early.Trust()
		objects := 0
		bucket.Control(func(c fakes3.Call) fakes3.Fault {
			if c.Method == "PUT" && objects > 0 {
				return fakes3.Deny
			}
			if c.Method == "PUT" && isObject(c.Key) {
				objects++
			}
			return fakes3.None
		})
		stopEarly := start(t, srv, memstore.New(), early.PullHandler(), func(o *weir.Options) { o.App = "early" })
		time.Sleep(5 * time.Second)
		stopEarly()
		bucket.Control(nil)
		if _, lines := chains(t, late); len(lines["shardId-000000000000"]) != 2 {
			t.Fatalf("%q", lines)
		}
		put(srv, 11, 20)
		time.Sleep(5 * time.Minute)
		stopLate()
		check(t, late, bucket, inStream(srv))
	})
}

// No object ends inside an aggregate.
func TestAggregatesAreKeptTogether(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		var want []string
		for i := range 5 {
			var p aggregate.Builder
			for j := range 7 {
				text := fmt.Sprintf(`{"aggregate":%d,"n":%d}`, i, j)
				want = append(want, text)
				if err := p.Add(fmt.Sprint("key-", j), "", []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			srv.Put("s", "a", p.Append(nil))
		}
		s := sink(t, bucket, s3sink.Options{MaxBytes: 30, Lines: s3sink.Payloads})
		stop := start(t, srv, memstore.New(), s.PullHandler(), func(o *weir.Options) { o.Batching.MaxRecords = 3 })
		time.Sleep(5 * time.Second)
		stop()
		objects, lines := chains(t, s)
		if got := lines["shardId-000000000000"]; !slices.Equal(got, want) || len(objects) != 5 {
			t.Errorf("%d objects: %q", len(objects), got)
		}
	})
}

// The records of a claimed object may have left the stream before the object was written. The chain
// then continues with the remaining records.
func TestAnObjectWhoseRecordsAreGone(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server, bucket *fakes3.Server) {
		s := sink(t, bucket, s3sink.Options{})
		bucket.Control(func(c fakes3.Call) fakes3.Fault {
			if c.Method == "PUT" && isObject(c.Key) {
				return fakes3.Deny
			}
			return fakes3.None
		})
		store := memstore.New()
		stop := start(t, srv, store, s.PullHandler())
		put(srv, 1, 5)
		time.Sleep(2 * time.Minute)
		stop()
		bucket.Control(nil)
		time.Sleep(30 * time.Hour) // the stream keeps records for a day
		put(srv, 6, 9)
		stop = start(t, srv, store, s.PullHandler())
		time.Sleep(2 * time.Minute)
		stop()
		check(t, s, bucket, inStream(srv)) // the records that are still in the stream
		if objects, _ := chains(t, s); len(objects) != 2 {
			t.Errorf("%+v", objects)
		}
	})
}
