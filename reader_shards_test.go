package weir_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
)

// Shards that are named are read with their descendants, and no others.
func TestReaderReadsTheShardsThatAreNamed(t *testing.T) {
	bubble(t, 3, func(t *testing.T, srv *kinesistest.Server) {
		named := srv.OpenShards("s")[1]
		put := func(at string) {
			for i := range 30 {
				srv.Put("s", fmt.Sprint(i), []byte(at))
			}
		}
		put("before")
		lower, upper := srv.Split("s", named)
		put("after")
		r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: "s", Shards: []string{named}, UntilTip: true})
		if err != nil {
			t.Fatal(err)
		}
		var read []string
		for b, err := range r.Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if len(b.Records) > 0 && !slices.Contains(read, b.Shard) {
				read = append(read, b.Shard)
			}
		}
		slices.Sort(read)
		want := []string{named, lower, upper}
		slices.Sort(want)
		if !slices.Equal(read, want) {
			t.Errorf("read %q, want %q", read, want)
		}
	})
}
