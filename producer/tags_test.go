package producer

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weir-go/weir/aggregate"
	"github.com/weir-go/weir/kinesistest"
)

// tagsOf returns the value of the tag "n" of each record in the stream, by data.
func tagsOf(server *kinesistest.Server) map[string]string {
	tags := map[string]string{}
	for data, spots := range copiesOf(server) {
		tags[data] = spots[0].tag
	}
	return tags
}

// Records keep their tags, alone and next to other records.
func TestTags(t *testing.T) {
	inBubble(t, 2, Options{}, func(t *testing.T, server *kinesistest.Server, p *Producer) {
		for _, count := range []int{1, 100} { // the first one is alone
			var pending []*Pending
			for i := range count {
				r := Record{PartitionKey: fmt.Sprint("key", i%7), Data: fmt.Appendf(nil, "%d of %d", i, count)}
				if i%2 == 0 {
					r.Tags = r.Tags.With("n", string(r.Data))
				}
				one, err := p.Put(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				pending = append(pending, one)
			}
			flushed(t, p)
			tags := tagsOf(server)
			for i, one := range pending {
				data, want := fmt.Sprintf("%d of %d", i, count), ""
				if i%2 == 0 {
					want = data
				}
				got, err := one.Wait(t.Context())
				if tag, there := tags[data]; err != nil || tag != want || !there || got.Untagged || got.Packed != (count > 1) {
					t.Errorf("%q has the tag %q, and %+v, %v", data, tag, got, err)
				}
			}
		}
		if c := p.Counts(); c.BufferedBytes != 0 || c.StoredEntries == 0 {
			t.Errorf("%+v", c)
		}
		closed(t, p)
	})
}

// The result of a record says if its tags were dropped.
func TestDroppedTags(t *testing.T) {
	var inner aggregate.Builder
	if err := inner.Add("k", "", []byte("inner")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		options Options
		prepare func(*testing.T, *kinesistest.Server)
		data    string
		kept    bool
	}{
		{name: "larger than other containers", data: strings.Repeat("x", 1<<20-2000), kept: true},
		{name: "no room for tags", data: strings.Repeat("x", 1<<20-100)},
		{name: "no aggregation", options: Options{NoAggregation: true}, data: "x"},
		{name: "an aggregate", data: string(inner.AppendContainer(nil))},
		{name: "a stream that distributes records", prepare: autoStream, data: "x"},
		{name: "no permission to list shards", prepare: func(_ *testing.T, server *kinesistest.Server) {
			server.CreateStream("s", 1)
			server.Control("ListShards", func(*kinesistest.Call) kinesistest.Fault {
				return kinesistest.Fault{Err: &kinesistest.Error{Code: "AccessDeniedException"}}
			})
		}, data: "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.prepare == nil {
				c.prepare = func(_ *testing.T, server *kinesistest.Server) { server.CreateStream("s", 1) }
			}
			synctest.Test(t, func(t *testing.T) {
				server := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
				c.prepare(t, server)
				p := newProducer(t, server, c.options)
				one, err := p.Put(t.Context(), Record{PartitionKey: "k", Data: []byte(c.data), Tags: aggregate.Tags{}.With("n", "tag")})
				if err != nil {
					t.Fatal(err)
				}
				got, err := one.Wait(t.Context())
				if err != nil || got.Untagged == c.kept || got.Packed {
					t.Errorf("%+v, %v", got, err)
				}
				if tag := tagsOf(server)[c.data]; (tag == "tag") != c.kept {
					t.Errorf("the tag is %q", tag)
				}
				closed(t, p)
			})
		})
	}
}
