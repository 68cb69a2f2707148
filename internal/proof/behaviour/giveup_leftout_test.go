package behaviour

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/event"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// If a destination leaves out dead letters because their records are already handled, these records
// count as handled, and the log says that they get no dead letter.
func TestRecordsWithoutADeadLetterCountAsHandled(t *testing.T) {
	for _, leaves := range []int{0, 2, 3} {
		bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
			names := putSome(t, srv, false)[:3]
			box := &letterbox{}
			events := 0
			var log bytes.Buffer
			opts := weir.Options{
				App: "app", Streams: []string{"s"}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				Batching: weir.Batching{MaxRecords: 3},
				OnEvent:  event.On(func(_ context.Context, e event.DeadLettered) { events += e.Records }),
			}
			opts.OnFailure = weir.FailurePolicy{MaxAttempts: 1, OutageGrace: -1}
			opts.OnFailure.Destination = deadletter.Func(func(ctx context.Context, all []deadletter.Letter) error {
				var left deadletter.LeftOutError
				for _, l := range all[:leaves] {
					left.IDs = append(left.IDs, l.ID)
				}
				if err := box.Put(ctx, all[leaves:]); err != nil || leaves == 0 {
					return err
				}
				return &left
			})
			c, err := weir.New(srv.Client(), memstore.New(), opts)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- c.Run(ctx, weir.HandlerFunc(func(_ context.Context, b *weir.Batch) error {
					if string(b.Records[0].Data) == names[0] {
						return errOnceMore
					}
					return nil
				}))
			}()
			time.Sleep(time.Minute)
			synctest.Wait()
			n := c.Counts()
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			put := len(names) - leaves
			if got := box.data(); !slices.Equal(got, names[leaves:]) || events != put {
				t.Errorf("dead letters of %q, events of %d", got, events)
			}
			all := n.RecordsHandled + n.RecordsDeadLettered
			if n.RecordsDeadLettered != uint64(put) || all != n.RecordsRead || n.DeadLettersFailed != 0 {
				t.Errorf("%d left out: %+v", leaves, n)
			}
			for text, want := range map[string]bool{
				`records that failed get no dead letter, because they were handled before; the shard continues`: leaves > 0,
				`records were dead-lettered; the shard continues`:                                               put > 0,
			} {
				if strings.Contains(log.String(), text) != want {
					t.Errorf("%d left out: the log has %q: %v", leaves, text, !want)
				}
			}
		})
	}
}
