package page_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/internal/proof/integration/servers"
	"github.com/weir-go/weir/internal/proof/integration/worker"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// While the page is open, a worker process is killed. The page marks it as dead, and then shows
// that its shards move to another worker. The events appear in that order.
func TestAKillIsWatchedLive(t *testing.T) {
	kinesis := kinesistest.NewServer(t)
	kinesis.CreateStream("orders", 4)
	place := "file:" + filepath.Join(t.TempDir(), "leases.db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_txlock=immediate"
	if err := servers.PrepareStore(t.Context(), servers.SQLiteStore, place); err != nil {
		t.Fatal(err)
	}
	store, closer, err := servers.OpenStore(servers.SQLiteStore, place)
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	dir := t.TempDir()
	var workers []*worker.Worker
	for _, name := range []string{"worker-1", "worker-2"} {
		workers = append(workers, worker.Start(t, worker.Setup{Kinesis: kinesis.URL(), Kind: servers.SQLiteStore, Place: place, App: "billing", Stream: "orders", Name: name}, dir))
	}
	s := open(t, store, dashboard.Options{Kinesis: kinesis.Client()})
	s.goTo(chromedp.Navigate(s.url + "app?app=billing"))
	const (
		workerOf = `[...document.querySelectorAll("#over-time ~ .wide tbody tr")].map((r) => r.cells[3].innerText.trim())`
		life     = `[...document.querySelectorAll("#workers ~ .wide tbody tr")].map((r) => r.cells[0].innerText.trim().split(" ")[0] + " " + r.cells[1].innerText.trim())`
	)
	s.until(workerOf + `.filter((w) => w === "worker-1").length === 2 && ` + workerOf + `.filter((w) => w === "worker-2").length === 2`)
	s.until(life + `.join() === "worker-1 alive,worker-2 alive"`)
	s.do(chromedp.Evaluate(`window.stays = true`, nil))

	workers[0].Kill(t)
	s.until(life + `.some((l) => l === "worker-1 silent" || l === "worker-1 ended")`)
	s.picture("killed")
	s.until(workerOf + `.join() === "worker-2,worker-2,worker-2,worker-2" && window.stays === true`)
	s.picture("recovered")

	s.goTo(chromedp.Click(`a[href="events?app=billing"]`))
	const happened = `[...document.querySelectorAll("tbody tr")].map((r) => r.cells[1].innerText)`
	s.until(happened + `.some((e) => e.startsWith("from worker-1, which died, to worker-2"))`)
	s.picture("events-of-a-kill")
	var texts []string
	s.do(chromedp.Evaluate(happened, &texts))
	died, handed := -1, -1
	for i, text := range texts { // newest first
		switch {
		case strings.HasPrefix(text, "worker-1 sends no heartbeats"), strings.HasPrefix(text, "worker-1 was declared dead"):
			died = i
		case strings.HasPrefix(text, "from worker-1, which died, to worker-2"):
			handed = i
		}
	}
	if died < 0 || handed < 0 || died < handed {
		t.Errorf("events, newest first: %q", texts)
	}

	// The filters work like a form. An update of the page does not lose what the user has selected.
	s.do(chromedp.SetValue(`select[name="kind"]`, "death"), chromedp.Evaluate(`performance.clearResourceTimings()`, nil))
	s.until(`performance.getEntriesByType("resource").filter((e) => e.name.includes("part=1")).length > 1 && document.querySelector('select[name="kind"]').value === "death"`)
	s.goTo(chromedp.Click(`form button`))
	s.until(`document.querySelectorAll("tbody tr").length > 0 && [...document.querySelectorAll("tbody tr")].every((r) => r.cells[2].innerText.startsWith("death"))`)
	workers[1].Stop(t)
	s.clean()
}

// While the page is open, a shard stalls and recovers. The page shows both. The worker reports them
// with its heartbeats.
func TestAStallIsWatchedLive(t *testing.T) {
	store := memstore.New()
	of := lease.Key{Stream: "orders", Shard: key(0).Shard}
	report := lease.Report{Session: "s1", Name: "worker-1"}
	var mu sync.Mutex // guards report
	beat := func() {
		mu.Lock()
		defer mu.Unlock()
		report.First = report.Times == (lease.Times{})
		report.Times = lease.DefaultTimes
		if _, err := store.Heartbeat(t.Context(), "billing", report); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	}
	says := func(troubles ...lease.Trouble) {
		mu.Lock()
		defer mu.Unlock()
		report.Troubles = troubles
	}
	beat()
	for _, a := range []lease.Action{
		{Kind: lease.Create, Lease: lease.Lease{Key: of, Epoch: 1, Range: shard.HashRange{End: shard.MaxHashKey}, Position: shard.Oldest}},
		{Kind: lease.Assign, Key: of, Epoch: 1, Session: "s1"},
	} {
		if _, err := store.Apply(t.Context(), "billing", []lease.Action{a}); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		every := time.NewTicker(200 * time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				beat()
			case <-stop:
				return
			}
		}
	})
	defer beating.Wait()
	defer close(stop)

	s := open(t, store, dashboard.Options{})
	s.goTo(chromedp.Navigate(s.url + "app?app=billing"))
	s.until(`document.querySelector(".shards rect.unknown") !== null`)
	s.do(chromedp.Evaluate(`window.stays = true; document.querySelector(".shards a").focus()`, nil))
	says(lease.Trouble{Key: of, State: "in the handler", For: 3 * time.Minute, Why: "it hangs"})
	s.until(`window.stays === true && document.querySelector(".shards rect.stalled") !== null && document.querySelector(".sentence .state").textContent === "stalled"`)
	s.until(`document.activeElement.dataset.k.startsWith("` + of.Shard + `") && document.body.innerText.includes("shard 0: stalled: in the handler, since ")`)
	s.picture("stall")
	says()
	s.until(`window.stays === true && document.querySelector(".shards rect.stalled") === null && document.body.innerText.includes("shard 0: not stalled any more, ")`)
	s.clean()
}
