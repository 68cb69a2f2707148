package dashboard_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/store/memstore"
)

func TestEventsAreShownNewestFirstAndFiltered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, eventsAreShown)
}

func eventsAreShown(t *testing.T) {
	store := &failing{Store: memstore.New()}
	fill(t, store, "billing", 3)
	h := dashboard.Handler(store, dashboard.Options{})
	shown(t, h, "/app?app=billing", `<a href="events?app=billing">What happened</a>`)
	shown(t, h, "/events?app=billing", "Nothing was seen to happen yet", "2000-01-01 00:00:00 UTC")
	apply := func(actions ...lease.Action) {
		t.Helper()
		if done, err := store.Apply(t.Context(), "billing", actions); err != nil || slices.Contains(done, false) {
			t.Fatal(done, err)
		}
	}
	if _, err := store.Heartbeat(t.Context(), "billing", lease.Report{Session: "s2", Name: "<worker> 2", First: true}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	shown(t, h, "/events?app=billing", "&lt;worker&gt; 2 started")
	apply(lease.Action{Kind: lease.Assign, Key: lease.Key{Stream: "orders", Shard: "shardId-000000000001"}, Epoch: 2, Session: "s2"}, lease.Action{Kind: lease.Pause, On: true})
	beatOnce(t, store, "billing", false, lease.Trouble{
		Key: lease.Key{Stream: "orders", Shard: "shardId-000000000002"}, For: time.Minute, Why: "no <b>room</b>", Failing: lease.Failing{Attempts: 3},
	})
	time.Sleep(time.Minute) // no page is open for a minute
	body := shown(t, h, "/events?app=billing", "the application was paused", "from worker-1 to &lt;worker&gt; 2", "the handler fails: no &lt;b&gt;room&lt;/b&gt;",
		"after 00:00:02, before <time", `href="events?app=billing&amp;kind=handover"`, `href="events?app=billing&amp;worker=%3Cworker%3E&#43;2"`, "5 events", `href="shard?app=billing&amp;shard=shardId-000000000001&amp;stream=orders"`)
	if strings.Index(body, "the handler fails") > strings.Index(body, "started") {
		t.Error("the newest is not first")
	}
	shown(t, h, "/app?app=billing", "What happened</a>: shard 2: the handler fails: no &lt;b&gt;room&lt;/b&gt;, at 00:01:02 UTC")
	for query, want := range map[string][2]string{
		"kind=handover":            {"from worker-1 to", "started"},
		"worker=%3Cworker%3E+2":    {"started", "paused</td>"},
		"stream=orders&shard=1":    {"from worker-1 to", "the handler fails"},
		"shard=3&kind=death":       {"Nothing of that was seen", "started"},
		"kind=handover&page=99999": {"from worker-1 to", "started"},
	} {
		if body := shown(t, h, "/events?app=billing&"+query, want[0], "Show all"); strings.Contains(body, want[1]) {
			t.Errorf("%s says %s:\n%s", query, want[1], body)
		}
	}
	if w := answer(t, h, http.MethodGet, "/events?app=billing&kind=%3Cb%3E"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "no such kind") {
		t.Errorf("a kind that there is not: %d", w.Code)
	}
	store.fails.Store(true)
	time.Sleep(5 * time.Second)
	unavailable(t, h, "/events?app=billing", "the store does not answer: no answer from &lt;db&gt;", "This page shows the state at")
	store.fails.Store(false)
	shown(t, h, "/events?app=billing", "the store answers again", "over")
}

// Even if very many events happen at once, each page stays small. The page shows its page number.
func TestManyEventsAreShownInPages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		fill(t, store, "billing", 1)
		h := dashboard.Handler(store, dashboard.Options{})
		for i := range 22 {
			shown(t, h, "/events?app=billing&kind=death")
			for j := range 10 {
				stream := fmt.Sprintf("s%d", i/2*10+j)
				if _, err := store.Apply(t.Context(), "billing", []lease.Action{{Kind: lease.Pause, Stream: stream, On: i%2 == 0}}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(2 * time.Second)
		}
		body := shown(t, h, "/events?app=billing", "page 1 of 3", "s109 was resumed", `href="events?app=billing&amp;page=2"`)
		if n := strings.Count(body, "<tr>"); n != 101 {
			t.Errorf("%d rows", n)
		}
		shown(t, h, "/events?app=billing&page=3", "s0 was paused", "newer")
	})
}
