package rolling_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/worker"
	"github.com/weir-go/weir/internal/proof/scenario"
	"github.com/weir-go/weir/kinesistest"
)

// TestARecordThatKillsItsProcess puts one record that ends every process that handles it. None of
// the five processes is restarted.
func TestARecordThatKillsItsProcess(t *testing.T) {
	for _, c := range stores {
		t.Run(c.kind, func(t *testing.T) {
			place := c.place(t)
			if err := servers.PrepareStore(t.Context(), c.kind, place); err != nil {
				t.Fatal(err)
			}
			kill(t, c.kind, place)
		})
	}
}

func kill(t *testing.T, kind, place string) {
	const workers, shards, records, perSecond = 5, 10, 20_000, 500
	srv := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true})
	srv.CreateStream(stream, shards)
	dir := t.TempDir()
	letters := filepath.Join(dir, "letters")
	var all []*worker.Worker
	for i := range workers {
		all = append(all, worker.Start(t, worker.Setup{
			Kinesis: srv.URL(), Kind: kind, Place: place, App: "killer", Stream: stream, Name: fmt.Sprintf("w%d", i), Idle: 200 * time.Millisecond, Letters: letters,
		}, dir))
	}
	var put producer
	var producing sync.WaitGroup
	producing.Go(func() { put.run(t.Context(), srv, records, perSecond) })
	t.Cleanup(producing.Wait)

	var handled []scenario.Handled
	until := func(what string, is func() bool) {
		t.Helper()
		every := time.NewTicker(200 * time.Millisecond)
		defer every.Stop()
		for bound := time.Now().Add(patience); !is(); <-every.C {
			for _, w := range all {
				more, err := w.More()
				if err != nil {
					t.Fatal(err)
				}
				handled = append(handled, more...)
			}
			if time.Now().After(bound) {
				t.Fatalf("%s: %d of %d records are put, %d handled", what, put.done.Load(), records, len(handled))
			}
		}
	}
	until("work of everybody", func() bool {
		return !slices.ContainsFunc(all, func(w *worker.Worker) bool {
			return !slices.ContainsFunc(handled, func(h scenario.Handled) bool { return h.Worker == w.Name })
		})
	})
	began := time.Now()
	bad, _ := srv.Put(stream, "bad", []byte("1 "+worker.Kills))
	box := deadletter.File(letters)
	given := func() (items []deadletter.Item) {
		for i, err := range box.Items(context.Background()) {
			if err == nil {
				items = append(items, i)
			}
		}
		return items
	}
	until("a letter", func() bool { return len(given()) > 0 })
	// All records must be handled: records from before and after the dead letter, of the same shard
	// and of other shards.
	put.hurry.Store(true)
	until("every record", func() bool {
		if put.done.Load() < records {
			return false
		}
		v, err := scenario.Judge(put.put, handled)
		return err == nil && v.Lost == 0
	})

	var deaths, told []time.Duration
	for _, w := range all {
		if at := w.Told(); !at.IsZero() {
			told = append(told, at.Sub(began))
		}
		if at := w.Killed(); !at.IsZero() {
			deaths = append(deaths, at.Sub(began))
		} else {
			w.Stop(t)
		}
	}
	slices.Sort(deaths)
	slices.Sort(told)
	v, err := scenario.Judge(put.put, handled)
	if err != nil {
		t.Fatal(err)
	}
	items := given()
	t.Logf("%s: %s; the workers died after %v, it was told after %v, the dead letter after %v", kind, v, deaths, told, items[0].GivenUp.Sub(began))
	if len(items) != 1 || items[0].PartitionKey != "bad" || items[0].Shard != bad || items[0].Reason != deadletter.Killed || items[0].Attempts != 3 {
		t.Errorf("letters: %+v", items)
	}
	if v.Lost != 0 || v.Disorder != 0 {
		t.Errorf("%s: %q", v, v.Complaints)
	}
	what := fmt.Sprintf("a record kills its process, %s, five processes: ", kind)
	table.Count(what+"processes that died", []int{len(deaths)}, 3)
	if len(deaths) != 3 || len(told) == 0 {
		t.Fatalf("%d of %d processes died, and it was told %d times", len(deaths), workers, len(told))
	}
	table.Add("  from its arrival until it was told", told[:1], time.Minute)
	table.Add("  from its arrival until its dead letter", []time.Duration{items[0].GivenUp.Sub(began)}, -1)
	table.Count("  other records lost", []int{v.Lost}, 0)
}
