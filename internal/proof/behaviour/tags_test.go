package behaviour

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// tagsOf returns the tags of a record as text.
func tagsOf(r weir.Record) string { return fmt.Sprint(maps.Collect(r.Tags().All())) }

// putTagged puts aggregates and plain records. In the aggregates, every second record has a tag
// with its own name. It returns the data of each record with its tags.
func putTagged(t *testing.T, srv *kinesistest.Server) (want map[string]string) {
	t.Helper()
	want = map[string]string{}
	for i := range 6 {
		var b aggregate.Builder
		for j := range 5 {
			name, tags := fmt.Sprint("packed ", i, " ", j), aggregate.Tags{}
			want[name] = "map[]"
			if j%2 == 0 {
				tags = tags.With("name", name)
				want[name] = fmt.Sprint(map[string]string{"name": name})
			}
			if err := b.AddTagged(fmt.Sprint("key ", j), "", []byte(name), tags); err != nil {
				t.Fatal(err)
			}
		}
		srv.Put("s", "a", b.AppendContainer(nil))
		for j := range i { // a page may also contain plain records
			name := fmt.Sprint("plain ", i, " ", j)
			want[name] = "map[]"
			srv.Put("s", "a", []byte(name))
		}
	}
	return want
}

func TestEachRecordHasTheTagsThatWerePackedWithIt(t *testing.T) {
	t.Setenv("WEIR_POISON", "1")
	for name, opts := range map[string]weir.Options{
		"plain":            {},
		"own":              {Aggregates: weir.UnpackOwn},
		"small batches":    {Batching: weir.Batching{MaxRecords: 2}},
		"reused":           {Batching: weir.Batching{MaxRecords: 2}, ReuseBuffers: true},
		"fan-out":          {FanOut: weir.FanOut{Mode: weir.FanOutRegister}, ReuseBuffers: true},
		"waiting":          {Batching: weir.Batching{MaxRecords: 7, MaxWait: time.Second}},
		"waiting, reused":  {Batching: weir.Batching{MaxRecords: 7, MaxWait: time.Second}, ReuseBuffers: true},
		"keys in parallel": {Concurrency: weir.Concurrency{Keys: 4}},
		"filtered":         {Filter: weir.Filter{By: everyOther{}}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
				want := putTagged(t, srv)
				if opts.Filter.By != nil {
					maps.DeleteFunc(want, func(data, _ string) bool { return data[len(data)-1]%2 == 1 })
				}
				var mu sync.Mutex
				got, calls := map[string]string{}, 0
				stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
					mu.Lock()
					defer mu.Unlock()
					for _, r := range b.Records {
						got[string(r.Data)] = tagsOf(r)
					}
					// If the handler changes the slice, no record gets the tags of another record.
					for i := range b.Records {
						b.Records[i] = b.Records[0]
					}
					if calls++; calls%3 == 0 {
						return errors.New("again")
					}
					return nil
				})
				time.Sleep(2 * time.Minute)
				if err := stop(); err != nil {
					t.Error(err)
				}
				if !maps.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		})
	}
}

type everyOther struct{}

func (everyOther) Match(data []byte, _ string, _ time.Time) (matches, isJSON bool) {
	return data[len(data)-1]%2 == 0, true
}

func TestTagsOfRecordsThatAReaderReads(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		want := putTagged(t, srv)
		r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: "s", UntilTip: true, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		var kept []weir.Record
		for b, err := range r.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, b.Records...)
		}
		for _, r := range kept {
			got[string(r.Data)] = tagsOf(r)
			if r.Stream() != "s" || r.ID() == "" {
				t.Errorf("%s is of %q", r.Data, r.Stream())
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if none := (weir.Record{}).Tags(); !none.IsZero() {
			t.Error("a record that weir did not make has tags")
		}
		// A copy of a record does not keep its tags if its sequence number is changed.
		i := slices.IndexFunc(kept, func(r weir.Record) bool { return !r.Tags().IsZero() })
		other := kept[i]
		other.SequenceNumber = kept[len(kept)-1].SequenceNumber
		if !other.Tags().IsZero() {
			t.Error("tags of another record")
		}
	})
}
