package behaviour

import (
	"bytes"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
)

// A Reader with fan-out releases the records that it has yielded. It can read more than its memory
// limit in total.
func TestReaderByFanOutReadsMoreThanItsMemory(t *testing.T) {
	bubbleWith(t, kinesistest.Config{NoLimits: true}, 1, func(t *testing.T, srv *kinesistest.Server) {
		big := bytes.Repeat([]byte{'x'}, 1<<20-1)
		const n = 150
		for range n {
			srv.Put("s", "k", big)
		}
		r, err := weir.NewReader(srv.Client(), weir.ReaderOptions{
			Stream: "s", UntilTip: true, FanOut: weir.FanOut{Mode: weir.FanOutTemporary, Name: "me"}, Logger: quiet,
		})
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, err := range r.Records(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got++
		}
		if got != n {
			t.Errorf("%d of %d records", got, n)
		}
		if polls := srv.Requests("GetRecords"); polls > 0 {
			t.Errorf("it polled %d times", polls)
		}
	})
}
