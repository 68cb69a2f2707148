package behaviour

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/shard"
)

// The named shards and their descendants are read, and no others.
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

// A Reader may begin anywhere in a shard: at a record, after it, or inside an aggregate. The
// descendants of the shard are read from their beginning.
func TestReaderBeginsAtASequenceNumber(t *testing.T) {
	for _, reading := range []weir.FanOutMode{weir.FanOutOff, weir.FanOutRegister} {
		t.Run(reading.String(), func(t *testing.T) {
			bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
				shardID, _ := srv.Put("s", "k", []byte("1"))
				srv.Put("s", "k", packed(t, "a", 3))
				_, third := srv.Put("s", "k", []byte("3"))
				srv.Put("s", "k", []byte("4"))
				srv.Split("s", shardID)
				srv.Put("s", "k", []byte("5"))
				srv.Put("s", "other", []byte("not of the shard"))
				if reading == weir.FanOutRegister {
					srv.RegisterConsumer("s", "me")
				}
				read := func(start weir.Position) (got []weir.Record) {
					opts := weir.ReaderOptions{Stream: "s", Shards: []string{shardID}, Start: start, UntilTip: true, Logger: quiet, FanOut: weir.FanOut{Mode: reading}}
					if reading == weir.FanOutRegister {
						opts.FanOut.Name = "me"
					}
					r, err := weir.NewReader(srv.Client(), opts)
					if err != nil {
						t.Fatal(err)
					}
					for rec, err := range r.Records(t.Context()) {
						if err != nil {
							t.Fatal(err)
						}
						got = append(got, rec)
					}
					return got
				}
				all := read(weir.Oldest)
				if want := "1, a 1, a 2, a 3, 3, 4, 5"; strings.Join(data(all), ", ") != want {
					t.Fatalf("read %q", data(all))
				}
				before, err := shard.Before(third)
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(data(read(before)), ", "); got != "3, 4, 5" {
					t.Errorf("before the third: %s", got)
				}
				for i := range 6 {
					if got, want := data(read(all[i].Position())), data(all[i+1:]); !slices.Equal(got, want) {
						t.Errorf("after %q: %q, want %q", all[i].Data, got, want)
					}
				}
			})
		})
	}
}

func TestAReaderThatBeginsInAShardNamesIt(t *testing.T) {
	bubble(t, 2, func(t *testing.T, srv *kinesistest.Server) {
		_, sequence := srv.Put("s", "k", []byte("1"))
		at, err := shard.After(sequence)
		if err != nil {
			t.Fatal(err)
		}
		for _, shards := range [][]string{nil, srv.OpenShards("s")} {
			if _, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: "s", Start: at, Shards: shards}); err == nil ||
				!strings.Contains(err.Error(), "is a position in one shard") {
				t.Errorf("%d shards: %v", len(shards), err)
			}
		}
		if _, err := weir.NewReader(srv.Client(), weir.ReaderOptions{Stream: "s", Start: shard.End, Shards: srv.OpenShards("s")[:1]}); err == nil {
			t.Error("it begins at the end")
		}
	})
}
