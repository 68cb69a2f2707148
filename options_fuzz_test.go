package weir_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// FuzzOptions gives New whatever a program may read from a file: it makes a consumer, or an error that names the field.
func FuzzOptions(f *testing.F) {
	f.Add("billing", "orders", "host 1", "", 0, 0, 0, int64(0), int64(0))
	f.Add("", "", strings.Repeat("w", 300), "c", -1, -1, -1, int64(-1), int64(-1))
	f.Add("a/b", "arn:aws:kinesis:us-east-1:000000000000:stream/orders", "\xff", "\x00", 10001, 1<<40, 1<<20, int64(time.Hour), int64(1))
	f.Add("a", "arn:aws:kinesis:eu-west-1:1:stream/", "w", "name", 1, 16<<20, 1, int64(time.Second), int64(time.Minute))
	client := kinesistest.NewServer(f, kinesistest.Config{InMemory: true}).Client()
	f.Fuzz(func(t *testing.T, app, stream, worker, consumer string, batch, memory, leases int, beat, failover int64) {
		c, err := weir.New(client, memstore.New(), weir.Options{
			App: app, Streams: []string{stream}, Worker: worker, FanOutName: consumer, Batch: batch, MaxMemory: memory, MaxLeases: leases,
			BeatInterval: time.Duration(beat), FailoverAfter: time.Duration(failover),
		})
		switch {
		case (c == nil) == (err == nil):
			t.Errorf("%v and %v", c, err)
		case err != nil && (!strings.Contains(err.Error(), "Options.") && !strings.Contains(err.Error(), "stream") || strings.Contains(err.Error(), "%!")):
			t.Errorf("%v", err)
		}
		_ = fmt.Sprintf("%+v", c)
	})
}
