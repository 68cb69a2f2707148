// Package rolling_test replaces worker processes one after another while records flow. The new
// processes have the same version or another one. The tests check the output of the handlers: no
// record is lost, no record is duplicated, and the records of every key are in order.
package rolling_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir/internal/proof/integration/older"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/worker"
	"github.com/weir-go/weir/internal/proof/scenario"
	"github.com/weir-go/weir/kinesistest"
)

const (
	shards = 30
	keys   = 1000
	// patience is the time limit of each wait. It is long, because machines are shared.
	patience = 3 * time.Minute
)

// storeKind is a store that processes can share.
type storeKind struct {
	kind, name string
	place      func(*testing.T) string
	url        func(place string) []string // arguments of the command for the store at a place
}

// stores contains the stores that most tests use.
var stores = []storeKind{
	{servers.SQLiteStore, "SQLite", func(t *testing.T) string { return filepath.Join(t.TempDir(), "leases.db") },
		func(place string) []string { return []string{"sqlite:" + place} }},
	{servers.PostgresStore, "Postgres", func(t *testing.T) string { return servers.Postgres(t).PostgresURL("weir") },
		func(place string) []string { return []string{place} }},
	{servers.DynamoDBStore, "DynamoDB Local", func(t *testing.T) string { return servers.DynamoDBLocal(t).URL },
		func(place string) []string { return []string{"dynamodb:weir", "--dynamodb-endpoint", place} }},
}

func TestTenProcessesAreReplacedOneAfterAnother(t *testing.T) {
	for _, c := range stores {
		t.Run(c.kind, func(t *testing.T) {
			place := c.place(t)
			if err := servers.PrepareStore(t.Context(), c.kind, place); err != nil {
				t.Fatal(err)
			}
			d := deployment{name: "rolling restart of ten processes", workers: 10, programs: make([]string, 20), records: 50_000, perSecond: 2500}
			if *full {
				d.records, d.perSecond = 1_000_000, 10_000
			}
			d.run(t, c.kind, c.name, place)
		})
	}
}

// TestAnUpgradeAndTheWayBack replaces processes of the previous version by processes of this
// version, and then the reverse. The previous version has created the store.
func TestAnUpgradeAndTheWayBack(t *testing.T) {
	before := older.Unpack(t)
	program := before.Tests(t)
	for _, c := range stores {
		t.Run(c.kind, func(t *testing.T) {
			place := c.place(t)
			url := c.url(place)
			before.CreateStore(t, url[0], url[1:]...)
			d := deployment{name: "upgrade of four processes and the way back", workers: 4,
				programs: slices.Concat(slices.Repeat([]string{program}, 4), make([]string, 4), slices.Repeat([]string{program}, 4)),
				records:  20_000, perSecond: 1000}
			d.first = func() {
				if err := servers.PrepareStore(t.Context(), c.kind, place); err != nil {
					t.Fatal(err)
				}
			}
			d.run(t, c.kind, c.name, place)
		})
	}
}

// deployment is a run of an application whose processes are replaced one after another.
type deployment struct {
	name    string
	workers int
	// programs contains the programs of all processes in the order of their start. "" means this
	// program. The later processes replace the first ones.
	programs           []string
	first              func() // called before the first process is replaced; may be nil
	records, perSecond int

	// failing, if set, makes the handlers of some records fail. See [failures].
	failing *failures
	// replaced is called after a process was replaced, and once more at the end, when all records
	// are handled and no process runs. It may be nil.
	replaced func(srv *kinesistest.Server, n int)
}

func (d deployment) run(t *testing.T, kind, name, place string) {
	workers, records, perSecond := d.workers, d.records, d.perSecond
	replacements := len(d.programs) - workers
	srv := kinesistest.NewServer(t, kinesistest.Config{NoLimits: true})
	srv.CreateStream(stream, shards)
	dir := t.TempDir()
	var all []*worker.Worker
	hire := func() {
		all = append(all, worker.Start(t, worker.Setup{
			Kinesis: srv.URL(), Kind: kind, Place: place, App: "rolling", Stream: stream, Name: fmt.Sprintf("w%d", len(all)), Idle: 200 * time.Millisecond,
			Program: d.programs[len(all)], Letters: d.failing.file(dir),
		}, dir))
	}
	var handled []scenario.Handled
	look := func() {
		for _, w := range all {
			more, err := w.More()
			if err != nil {
				t.Fatal(err)
			}
			handled = append(handled, more...)
		}
	}
	until := func(what string, is func() bool) {
		t.Helper()
		every := time.NewTicker(200 * time.Millisecond)
		defer every.Stop()
		for bound := time.Now().Add(patience); !is(); <-every.C {
			if time.Now().After(bound) {
				t.Fatalf("waited too long for %s", what)
			}
			look()
		}
	}

	put := &producer{put: map[string]int{}, word: d.failing.word}
	ctx, cancel := context.WithCancel(t.Context())
	var putting sync.WaitGroup
	putting.Go(func() { put.run(ctx, srv, records, perSecond) })
	defer putting.Wait()
	defer cancel()
	for range workers {
		hire()
	}
	seen := func(name string) func() bool {
		return func() bool {
			if put.done.Load() == int64(records) {
				return true // such a slow machine has handled everything
			}
			for i := len(handled) - 1; i >= 0 && i > len(handled)-100*perSecond; i-- {
				if handled[i].Worker == name {
					return true
				}
			}
			return false
		}
	}
	for _, w := range all {
		until("work of "+w.Name, seen(w.Name))
	}
	began := time.Now()
	var stops, replaced []time.Duration
	if d.first != nil {
		d.first()
	}
	for i := range replacements {
		// Spread the replacements over all records.
		until("records", func() bool { return put.done.Load() >= int64(records*(i+1)/(replacements+1)) })
		stops = append(stops, all[i].Stop(t))
		since := time.Now()
		hire()
		until("work of "+all[len(all)-1].Name, seen(all[len(all)-1].Name))
		replaced = append(replaced, time.Since(since))
		if d.replaced != nil {
			d.replaced(srv, i+1)
		}
	}
	took, before := time.Since(began), put.done.Load()
	put.hurry.Store(true)
	until("every record", func() bool {
		return put.done.Load() == int64(records) && len(handled) >= records-d.failing.count()
	})
	for _, w := range all[replacements:] {
		w.Stop(t)
	}
	look()
	if d.replaced != nil {
		d.replaced(srv, replacements+1)
	}
	letters := d.failing.read(t, dir)
	handled = append(handled, letters...)

	v, err := scenario.Judge(put.put, handled)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s; %d records were put until the last of %d processes was replaced, after %v", name, v, before, replacements, took.Round(time.Second))
	if !v.Clean() || v.Duplicates > 0 || v.Put != records || len(letters) != d.failing.count() {
		t.Errorf("%s, %d of %d records dead-lettered: %q", v, len(letters), d.failing.count(), v.Complaints)
	}
	what := fmt.Sprintf("%s, %s, %d records: ", d.name, name, records)
	// The wait of a record starts with its put. The producer shares the machine and may pause too.
	// Records from before the first replacement waited for the start of the first workers, so they
	// do not count.
	longest := map[string]time.Duration{}
	for _, h := range handled {
		if at := put.at[h.Key][h.N-1]; at >= began.UnixNano() {
			longest[h.Shard] = max(longest[h.Shard], time.Duration(h.At-at))
		}
	}
	table.Count(what+"lost", []int{v.Lost}, 0)
	if d.failing != nil {
		table.Count("  dead-lettered", []int{len(letters)}, d.failing.count())
	}
	table.Count("  handled again", []int{v.Duplicates}, 0)
	table.Count("  out of order", []int{v.Disorder}, 0)
	longestWait := 2 * time.Second
	if d.failing != nil {
		longestWait = -1 // a failing record delays the records behind it
	}
	table.Add("  longest wait of a record until it was handled, by shard", slices.Collect(maps.Values(longest)), longestWait)
	table.Add("  time from SIGTERM to the process's end", stops, -1)
	table.Add("  time from the start of a process to its first record", replaced, -1)
}

// producer puts records with many keys at a given rate. If hurry is set, it puts the rest
// immediately.
type producer struct {
	put   map[string]int     // complete after done is set
	at    map[string][]int64 // Unix nanoseconds; complete after done is set
	done  atomic.Int64
	hurry atomic.Bool

	// word returns what follows the number of the i-th record, or "". It may be nil.
	word func(i int) string
}

func (p *producer) run(ctx context.Context, srv *kinesistest.Server, records, perSecond int) {
	const tick = 20 * time.Millisecond
	every := time.NewTicker(tick)
	defer every.Stop()
	put, at := make(map[string]int, keys), make(map[string][]int64, keys)
	for i := 0; i < records; {
		n := int(float64(perSecond) * tick.Seconds())
		if !p.hurry.Load() {
			// Put records more and more slowly, so that the last worker gets some records too.
			n = min(n, (records-i)/200)
		}
		for n = max(1, n); n > 0 && i < records; n-- {
			key := "key-" + strconv.Itoa(i%keys)
			put[key]++
			at[key] = append(at[key], time.Now().UnixNano())
			data := strconv.Itoa(put[key])
			if p.word != nil {
				data = strings.TrimSpace(data + " " + p.word(i))
			}
			srv.Put(stream, key, []byte(data))
			if i++; i == records {
				p.put, p.at = put, at
			}
			p.done.Store(int64(i))
		}
		if p.hurry.Load() && i%5000 != 0 {
			continue
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
}
