package producer

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/kinesistest"
)

// Each record has a number, and the records of a shard one series.
func TestNumbers(t *testing.T) {
	inBubble(t, 2, Options{Numbered: true}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		var pending []*Pending
		for _, count := range []int{1, 100, 3} { // the first one is alone
			for i := range count {
				pending = append(pending, put(t, p, fmt.Sprint("key", i%7), fmt.Sprintf("%d of %d", i, count)))
			}
			flushed(t, p)
		}
		for _, one := range pending {
			if r, err := one.Wait(t.Context()); err != nil || r.Unnumbered {
				t.Errorf("%+v, %v", r, err)
			}
		}
		series, next := map[string]uint64{}, map[uint64]uint64{}
		for _, r := range server.Records("s") {
			var a aggregate.Aggregate
			if packed, err := a.Parse(r.Data); !packed {
				t.Fatalf("%q is not packed: %v", r.Data, err)
			}
			for sub := range a.All() {
				n := sub.Number()
				if before, ok := series[r.Shard]; n.Series == 0 || ok && before != n.Series {
					t.Errorf("%s has the series %d and %d", r.Shard, before, n.Series)
				}
				series[r.Shard] = n.Series
				if next[n.Series]++; n.N != next[n.Series] {
					t.Errorf("number %d of %s follows %d", n.N, r.Shard, next[n.Series]-1)
				}
			}
		}
		if len(series) != 2 || len(next) != 2 {
			t.Errorf("series %v, numbers %v", series, next)
		}
		closed(t, p)
	})
}

// The result of a record says if it has no number.
func TestRecordsWithoutNumbers(t *testing.T) {
	inBubble(t, 1, Options{Numbered: true}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		var inner aggregate.Builder
		if err := inner.Add("key", "", []byte("inside")); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name, data string
			want       bool
		}{
			{"small", "data", false},
			{"an aggregate", string(inner.AppendContainer(nil)), true},
			{"the largest that is packed", strings.Repeat("x", usualRecord-mostOverhead-3), false},
			{"larger", strings.Repeat("x", usualRecord-mostOverhead-2), true},
		} {
			one := put(t, p, "key", c.data)
			flushed(t, p)
			if r, err := one.Wait(t.Context()); err != nil || r.Unnumbered != c.want {
				t.Errorf("%s: %+v, %v", c.name, r, err)
			}
		}
		closed(t, p)
	})
}

// A stream that distributes records by itself has no numbers.
func TestNoNumbersOnAutoStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		autoStream(t, server)
		p := newProducer(t, server, Options{Numbered: true})
		one := put(t, p, "key", "data")
		flushed(t, p)
		if r, err := one.Wait(t.Context()); err != nil || !r.Unnumbered {
			t.Errorf("%+v, %v", r, err)
		}
		closed(t, p)
	})
}

func TestNumbersNeedPackedRecordsInOrder(t *testing.T) {
	server := kinesistest.NewServer(t, kinesistest.Config{})
	for _, o := range []Options{{Unordered: true}, {NoAggregation: true}} {
		o.Stream, o.Numbered = "s", true
		_, err := New(server.Client(), o)
		const want = "producer: Options.Numbered cannot be combined with Unordered or NoAggregation, because only packed records in order have numbers: leave one out"
		if err == nil || err.Error() != want {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
