package behaviour

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
)

func TestReaderReadsParentsBeforeChildren(t *testing.T) {
	for _, endOnEmptyPage := range []bool{false, true} {
		bubbleWith(t, kinesistest.Config{EndOnEmptyPage: endOnEmptyPage}, 2, func(t *testing.T, srv *kinesistest.Server) {
			s := newSink(t)
			fill(srv, s, 10, 3)
			open := srv.OpenShards("s")
			merged := srv.Merge("s", open[0], open[1])
			fill(srv, s, 10, 3)
			srv.Split("s", merged)
			fill(srv, s, 10, 3)
			r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: "s", UntilTip: true})
			if err != nil {
				t.Fatal(err)
			}
			ends := 0
			for b, err := range r.Batches(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if err := s.write(b); err != nil {
					t.Error(err)
				}
				if b.End {
					ends++
				}
			}
			s.judge()
			if ends != 3 {
				t.Errorf("%d shards ended, want 3", ends)
			}
			if s.again != 0 {
				t.Errorf("%d records came twice", s.again)
			}
		})
	}
}

// Later reads never change records that a Reader has yielded.
func TestWhatAReaderYieldedStays(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: "s"})
		if err != nil {
			t.Fatal(err)
		}
		s := newSink(t)
		fill(srv, s, 10, 5)
		var kept [][]weir.Record
		var then [][]string
		records := 0
		for b, err := range r.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			var data []string
			for _, rec := range b.Records {
				data = append(data, rec.PartitionKey+"|"+string(rec.Data))
			}
			kept, then = append(kept, b.Records), append(then, data)
			if records += len(b.Records); records >= 500 {
				break
			}
			fill(srv, s, 10, 2)
		}
		for i, batch := range kept {
			for n, rec := range batch {
				if now := rec.PartitionKey + "|" + string(rec.Data); now != then[i][n] {
					t.Fatalf("record %d of batch %d was %q and is %q", n, i, then[i][n], now)
				}
			}
		}
	})
}

func TestReaderFollowsUntilItIsLeft(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *kinesistest.Server) {
		srv.Put("s", "k", []byte("before"))
		r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: srv.StreamARN("s"), Start: weir.Latest})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		go func() {
			for i := range 3 {
				time.Sleep(5 * time.Second)
				srv.Put("s", "k", []byte{byte('1' + i)})
			}
		}()
		var got []string
		for rec, err := range r.Records(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(rec.Data))
			if len(got) == 2 {
				break
			}
		}
		if !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("got %q", got)
		}
		time.Sleep(10 * time.Second) // until the producer has ended
	})
}

func TestReaderYieldsLastingFailuresAndGoesOn(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		srv.Put("s", "k", []byte("1"))
		srv.Control("GetRecords", func(c *kinesistest.Call) kinesistest.Fault {
			if c.N <= 7 {
				return kinesistest.Fault{Err: &kinesistest.Error{Code: "InternalFailure"}}
			}
			return kinesistest.Fault{}
		})
		r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: "s"})
		if err != nil {
			t.Fatal(err)
		}
		failures := 0
		for rec, err := range r.Records(t.Context()) {
			if err != nil {
				failures++
				if !strings.Contains(err.Error(), "InternalFailure") {
					t.Errorf("the error does not name its cause: %v", err)
				}
				continue
			}
			if string(rec.Data) != "1" {
				t.Errorf("got %q", rec.Data)
			}
			break
		}
		if failures != 1 {
			t.Errorf("%d failures were yielded, want one for seven in a row", failures)
		}
	})
}

func TestReaderEndsWithItsContext(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: "s"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		var last error
		for _, err := range r.Records(ctx) {
			last = err
		}
		if !errors.Is(last, context.DeadlineExceeded) {
			t.Errorf("the last error is %v", last)
		}
	})
}

func TestReaderErrors(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		if _, err := weir.NewReader(nil, weir.ReaderOptions{Stream: "a b", Polling: weir.Polling{IdleInterval: 1}, MaxMemory: 1}); err == nil ||
			!strings.Contains(err.Error(), "client is nil") || !strings.Contains(err.Error(), "stream name") || !strings.Contains(err.Error(), "IdleInterval") ||
			!strings.Contains(err.Error(), "ReaderOptions.MaxMemory 1 must be between 16 MiB and 1 TiB") {
			t.Errorf("NewReader: %v", err)
		}
		for opts, want := range map[string]string{"nowhere": "does not exist", "s": "no shard"} {
			r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: opts, Shards: []string{"shardId-000000000099"}})
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, err := range r.Records(t.Context()) {
				n++
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("stream %s: %v, want %q", opts, err, want)
				}
			}
			if n != 1 {
				t.Errorf("stream %s: yielded %d times", opts, n)
			}
		}
	})
}

// The Reader reads the next answer of GetRecords while the caller still uses the records of the
// previous answer. These records do not change.
func TestReaderLeavesWhatItHandedOutAlone(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		s := newSink(t)
		fill(srv, s, 10, 20)
		r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: "s"})
		if err != nil {
			t.Fatal(err)
		}
		rounds := 0
		for b, err := range r.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if rounds++; rounds <= 4 {
				fill(srv, s, 10, 20)
			}
			for i := range b.Records {
				time.Sleep(20 * time.Millisecond)
				one := *b
				one.Records = b.Records[i : i+1]
				if err := s.write(&one); err != nil {
					t.Error(err)
				}
			}
			if rounds > 4 && s.missing() == 0 {
				break
			}
		}
		s.judge()
	})
}

// Records that arrive after a long failure are yielded after the failure. This holds even if the
// loop was busy with another shard in the meantime.
func TestReaderYieldsWhatComesAfterAFailure(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		first, _ := srv.Put("s", "a", []byte("first"))
		other := slices.DeleteFunc(srv.OpenShards("s"), func(id string) bool { return id == first })[0]
		failures := 0
		srv.Control("GetShardIterator", func(c *kinesistest.Call) kinesistest.Fault {
			if c.Shard != other {
				return kinesistest.Fault{}
			}
			if failures++; failures > 5 {
				return kinesistest.Fault{}
			}
			return kinesistest.Fault{Err: &kinesistest.Error{Code: "InternalFailure"}}
		})
		for i, id := 0, first; id != other; i++ {
			id, _ = srv.Put("s", string(rune('b'+i)), []byte("other"))
		}
		r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: "s"})
		if err != nil {
			t.Fatal(err)
		}
		failed, busy := false, false
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for b, err := range r.Batches(ctx) {
			switch {
			case err != nil && strings.Contains(err.Error(), "InternalFailure"):
				failed = true
			case err != nil:
				t.Fatal(err)
			case b.Shard == first && !busy:
				busy = true
				time.Sleep(10 * time.Minute)
			}
			if err == nil && b.Shard == other {
				break
			}
		}
		if !failed || !busy {
			t.Errorf("failed %t, busy %t", failed, busy)
		}
	})
}
