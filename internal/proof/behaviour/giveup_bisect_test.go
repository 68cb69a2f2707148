package behaviour

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
)

// Each bad record among hundreds is found with the shortest pauses. After a bad record is found,
// its own failures make the pauses longer.
func TestABadRecordIsFoundSoon(t *testing.T) {
	bubble(t, 1, func(t *testing.T, srv *kinesistest.Server) {
		const n, halvings = 512, 9
		for i := range n {
			srv.Put("s", "k", fmt.Append(nil, i))
		}
		box := &letterbox{}
		opts := weir.Options{Retry: weir.Retry{MinBackoff: 100 * time.Millisecond, MaxBackoff: time.Hour}, OnFailure: weir.FailurePolicy{Destination: box, MaxAttempts: 3, Bisect: true, OutageGrace: -1}}
		var alone []time.Duration
		bad := map[string]bool{"0": true, "300": true, "511": true}
		single := map[string]time.Time{}
		stop := start(t, srv.Client(), memstore.New(), opts, func(_ context.Context, b *weir.Batch) error {
			some := slices.ContainsFunc(b.Records, func(r weir.Record) bool { return bad[string(r.Data)] })
			if first := string(b.Records[0].Data); len(b.Records) == 1 && some {
				if last, again := single[first]; again {
					alone = append(alone, time.Since(last))
				}
				single[first] = time.Now()
			}
			if some {
				return errOnceMore
			}
			return nil
		})
		time.Sleep(20 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got := box.data(); !slices.Equal(got, []string{"0", "300", "511"}) {
			t.Errorf("letters of %v", got)
		}
		for i, pause := range alone { // the second pause follows two failures
			if least := (50 * time.Millisecond) << (i % 2); pause < least || pause > 2*least {
				t.Errorf("the pauses between calls with a bad record alone are %v", alone)
			}
		}
		letters := box.letters()
		took := letters[0].GivenUp.Sub(letters[0].FirstFailure)
		if most := (halvings + 1 + 2) * opts.Retry.MinBackoff; took > most {
			t.Errorf("the first was found and dead-lettered in %v, want %v at most", took, most)
		}
	})
}
