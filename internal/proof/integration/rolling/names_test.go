package rolling_test

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-go/weir/deadletter"
	"github.com/weir-go/weir/internal/proof/integration/older"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/worker"
	"github.com/weir-go/weir/internal/proof/scenario"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
)

// sharedStores contains every kind of store that processes of two versions can share.
var sharedStores = slices.Concat(stores, []storeKind{
	{servers.MySQLStore, "MySQL", func(t *testing.T) string { return servers.MySQL(t).MySQLDSN("weir") }, mysqlURL},
	{servers.MySQLStore, "MariaDB", func(t *testing.T) string { return servers.MariaDB(t).MySQLDSN("weir") }, mysqlURL},
	{servers.RedisStore, "Redis", func(t *testing.T) string { return servers.Redis(t).Addr },
		func(place string) []string { return []string{"redis://" + place} }},
})

// mysqlURL returns the URL of a data source name for the command.
func mysqlURL(dsn string) []string {
	_, rest, _ := strings.Cut(dsn, "(")
	addr, _, _ := strings.Cut(rest, ")")
	return []string{"mysql://weir@" + addr + "/weir"}
}

// TestWorkersFromBeforeTheNames replaces workers from before the public API got its present names
// by workers of this version, one after another, and then the reverse. Records flow all the time.
// Two shards are split while both versions run, and some records fail or are dead-lettered. The
// older version has created the store. The test checks that no record is lost, repeated or out of
// order, and that the checkpoints move.
func TestWorkersFromBeforeTheNames(t *testing.T) {
	before := older.UnpackCommit(t, older.BeforeNames)
	program := before.Tests(t, failingHandler...)
	for _, c := range sharedStores {
		t.Run(c.name, func(t *testing.T) {
			place := c.place(t)
			url := c.url(place)
			before.CreateStore(t, url[0], url[1:]...)
			const workers = 3
			d := deployment{
				name: "names: three processes replaced, and back", workers: workers, records: 20_000, perSecond: 1000,
				programs: slices.Concat(slices.Repeat([]string{program}, workers), make([]string, workers), slices.Repeat([]string{program}, workers)),
			}
			if *full {
				d.records, d.perSecond = 200_000, 5000
			}
			d.failing = &failures{records: d.records}
			d.first = func() {
				if err := servers.PrepareStore(t.Context(), c.kind, place); err != nil {
					t.Fatal(err)
				}
			}
			s := sharing{kind: c.kind, place: place}
			var parent string
			d.replaced = func(srv *kinesistest.Server, n int) {
				switch s.checkpointsMoved(t, n); n {
				case 1, workers + 2: // both versions run
					open := srv.OpenShards(stream)
					parent = open[len(open)/2]
					srv.Split(stream, parent)
				case 2*workers + 1: // the end
					s.everythingIsChecked(t, srv)
				}
			}
			d.run(t, c.kind, c.name, place)
		})
	}
}

// failingHandler adds the words [worker.Rejected] and [worker.FailsOnce] to the handler of the
// older version, in the API of that version.
var failingHandler = []older.Edit{
	{File: "internal/proof/integration/worker/worker.go", Old: "const Kills = \"kills\"\n", New: `const Kills = "kills"

var failed = map[string]bool{}
`},
	{File: "internal/proof/integration/worker/worker.go", Old: "\t\t\tif rest == Kills {\n", New: `
			if rest == "` + worker.Rejected + `" || rest == "` + worker.FailsOnce + `" && !failed[r.SequenceNumber] {
				failed[r.SequenceNumber] = true
				if _, err := journal.WriteString(lines.String()); err != nil {
					return err
				}
				err := errors.New("the record fails")
				if rest == "` + worker.Rejected + `" {
					err = weir.Reject(err)
				}
				return weir.FailedAt(r, err)
			}
			if rest == Kills {
`},
}

// failures makes some records of a run fail. A nil *failures makes none fail.
type failures struct{ records int }

const (
	rejectedEvery  = 500 // every 500th record is dead-lettered
	failsOnceEvery = 403 // every 403rd record fails once in each process
)

// word returns the word for the i-th record.
func (f *failures) word(i int) string {
	switch {
	case f == nil:
		return ""
	case i%rejectedEvery == rejectedEvery/2:
		return worker.Rejected
	case i%failsOnceEvery == failsOnceEvery/2:
		return worker.FailsOnce
	}
	return ""
}

// count returns the number of records that are dead-lettered.
func (f *failures) count() int {
	if f == nil {
		return 0
	}
	n := 0
	for i := range f.records {
		if f.word(i) == worker.Rejected {
			n++
		}
	}
	return n
}

// file returns the path of the file for dead letters, or "".
func (f *failures) file(dir string) string {
	if f == nil {
		return ""
	}
	return filepath.Join(dir, "letters")
}

// read returns the dead letters of both versions as handled records.
func (f *failures) read(t *testing.T, dir string) (all []scenario.Handled) {
	t.Helper()
	if f == nil {
		return nil
	}
	for item, err := range deadletter.File(f.file(dir)).Items(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		number, word, _ := strings.Cut(string(item.Data), " ")
		n, err := strconv.Atoi(number)
		if err != nil || word != worker.Rejected || item.Reason != deadletter.Rejected {
			t.Errorf("the dead letter %s has the data %q and the reason %s", item.ID, item.Data, item.Reason)
		}
		all = append(all, scenario.Handled{
			At: item.GivenUp.UnixNano(), Worker: item.Worker, Shard: item.Shard, Epoch: item.Epoch, Key: item.PartitionKey, N: n,
		})
	}
	return all
}

// sharing observes the checkpoints in a store.
type sharing struct {
	kind, place string
	last        map[lease.Key]shard.Position
}

// checkpointsMoved checks that no checkpoint went back since the last call, and that at least half
// of them moved.
func (s *sharing) checkpointsMoved(t *testing.T, n int) {
	t.Helper()
	now := map[lease.Key]shard.Position{}
	moved := 0
	for _, l := range s.view(t).Leases {
		now[l.Key] = l.Position
		before, known := s.last[l.Key]
		switch {
		case !known || before.IsEnd():
			moved++
		case l.Position.Compare(before) < 0:
			t.Errorf("replacement %d: the checkpoint of %s went from %s back to %s", n, l.Key, before, l.Position)
		case l.Position.Compare(before) > 0:
			moved++
		}
	}
	for key := range s.last {
		if _, exists := now[key]; !exists {
			t.Errorf("replacement %d: the lease of %s is gone", n, key)
		}
	}
	if moved < len(now)/2 {
		t.Errorf("replacement %d: only %d of %d checkpoints moved", n, moved, len(now))
	}
	s.last = now
}

// everythingIsChecked checks that every checkpoint has passed the last record of its shard, and
// that no lease has an owner.
func (s *sharing) everythingIsChecked(t *testing.T, srv *kinesistest.Server) {
	t.Helper()
	open := srv.OpenShards(stream)
	last := srv.LastRecords(stream)
	leases := s.view(t).Leases
	if len(leases) != shards+4 { // two splits
		t.Errorf("there are %d leases, want %d", len(leases), shards+4)
	}
	for _, l := range leases {
		if l.Owner != "" {
			t.Errorf("%s is still owned by %s", l.Key, l.Owner)
		}
		want, err := shard.After(last[l.Shard].SequenceNumber)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(open, l.Shard) {
			want = shard.End
		}
		if l.Position != want {
			t.Errorf("the checkpoint of %s is %s, want %s", l.Key, l.Position, want)
		}
	}
}

func (s *sharing) view(t *testing.T) lease.View {
	t.Helper()
	store, closer, err := servers.OpenStore(s.kind, s.place)
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	v, err := store.View(t.Context(), "rolling", "")
	if err != nil {
		t.Fatal(err)
	}
	return v
}
