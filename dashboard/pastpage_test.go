package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/dashboard"
	"github.com/weir-go/weir/internal/history"
	"github.com/weir-go/weir/lease"
	"github.com/weir-go/weir/shard"
	"github.com/weir-go/weir/store/memstore"
)

// report writes the history of a session's shards for the last minutes. tell returns the sample of
// a shard for the minute that is ago minutes in the past.
func report(t *testing.T, store lease.Historian, app, session string, shards int, minutes int64, tell func(shard int, ago int64) history.Sample) {
	t.Helper()
	w := history.NewWriter(1000, "")
	for ago := minutes; ago >= 0; ago-- {
		var samples []history.Sample
		minute := time.Now().Unix()/60 - ago
		for i := range shards {
			s := tell(i, ago)
			s.Key, s.Minute = lease.Key{Stream: "orders", Shard: fmt.Sprintf("shardId-%012d", i)}, minute
			samples = append(samples, s)
		}
		since, data := w.Add(minute, samples)
		if err := store.PutHistory(t.Context(), app, lease.HistoryChunk{Session: session, Since: since, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestItShowsWhatWasBeforeItWasStarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		fill(t, store, "billing", 2)
		report(t, store, "billing", "dead", 1, 50, func(int, int64) history.Sample { return history.Sample{Lag: time.Second, Load: 30} })
		report(t, store, "billing", "s1", 2, 40, func(_ int, ago int64) history.Sample {
			s := history.Sample{Lag: time.Duration(40-ago) * time.Minute, Busy: 99}
			if ago == 25 {
				s.Throttled = 34
			}
			if ago == 40 {
				s.Marks = history.Began
			}
			return s
		})
		h := dashboard.Handler(store, dashboard.Options{})
		shown(t, h, "/", "rising", `aria-label="lag over the last 30 minutes: rising"`)
		page := shown(t, h, "/app?app=billing&span=1h&by=lag", `class="l3"`, `class="unknown"`, "The shade is the lag:")
		if strings.Contains(page, "keeps no history") {
			t.Error("it says that nothing is known")
		}
		shown(t, h, "/app?app=billing&span=1h&by=handler", `class="l5"`, "handler was running", "by=handler&amp;span=15m",
			`<th scope="col">Handler running at most</th>`, "; handler running at most 99 % (")
		at := time.Now().Add(-25 * time.Minute).UTC().Format("15:04")
		shown(t, h, "/app?app=billing&span=1h&by=throttles", `<path class="l0"`, `<path class="l3"`, "Kinesis throttled it:", "none", "by=throttles&amp;span=15m",
			`<th scope="col">Throttled at most</th>`, `<td data-l="Throttled at most">34 % (`+at+")", "; throttled at most 34 % ("+at+`)"`)
		if page := shown(t, h, "/app?app=billing&span=15m&by=throttles", `<td data-l="Throttled at most">0 %`); strings.Contains(page, `<path class="l3"`) {
			t.Error("of a span it shows what was before")
		}
		if strings.Contains(page, "at most</th>") {
			t.Error("with colours of what is known of now the table has a column of what was reported")
		}
		shown(t, h, "/shard?app=billing&stream=orders&shard=shardId-000000000001", "How it stood", `aria-label="Its lag, up to 40 min. The table after it says the same."`, "99 %", "s1", `<td data-l="Throttled">34 %</td>`, `<td data-l="Throttled">0 %</td>`)
		shown(t, h, "/app?app=billing&span=1h&by=bytes", "1 MiB")
		if page := shown(t, h, "/app?app=billing&span=1h"); strings.Contains(page, `class="l3"`) {
			t.Error("where colours are states they show the lag")
		}
	})
}

// The first answer of a new page already says since when a state lasts, and whether the lag grows.
func TestThePageKnowsThePastAtItsFirstLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		fill(t, store, "billing", 1)
		report(t, store, "billing", "s1", 1, 30, func(_ int, ago int64) history.Sample { return history.Sample{Lag: time.Duration(31-ago) * time.Minute} })
		lags := func(context.Context, []lease.Lease) (map[lease.Key]dashboard.Lag, error) {
			return map[lease.Key]dashboard.Lag{{Stream: "orders", Shard: "shardId-000000000000"}: {Behind: 32 * time.Minute}}, nil
		}
		shown(t, dashboard.Handler(store, dashboard.Options{Lags: lags}), "/", "falling behind", "its lag grew by", "behind for at least", "rising")
		time.Sleep(time.Minute + 30*time.Second)
		if err := store.Leave(t.Context(), "billing", lease.Report{Session: "s1"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		for range 2 { // also a page that is started again
			shown(t, dashboard.Handler(store, dashboard.Options{}), "/app?app=billing", "no worker lives for at least 10 min")
			time.Sleep(time.Second)
		}
	})
}

func TestHandOversKillsAndStallsAreMarked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		fill(t, store, "billing", 1)
		one := func(session string, ago int64, marks history.Marks) {
			since, data := history.NewWriter(1000, "").Add(time.Now().Unix()/60-ago, []history.Sample{{Key: lease.Key{Stream: "orders", Shard: "shardId-000000000000"}, Marks: marks}})
			if err := store.PutHistory(t.Context(), "billing", lease.HistoryChunk{Session: session, Since: since, Data: data}); err != nil {
				t.Fatal(err)
			}
		}
		one("first", 50, history.Began)
		one("second", 40, history.Began)
		one("second", 30, history.Ended|history.Stalled)
		one("third", 20, history.Began)
		h := dashboard.Handler(store, dashboard.Options{})
		shown(t, h, "/app?app=billing&span=1h", `class="happened taken"`, `class="happened handed"`, `class="happened stuck"`,
			"Marked in pink: 1 take-over from a worker that died (thick), 1 hand-over (thin), 1 stall (dashed).")
	})
}

func TestAFinishedShardIsDrawnWhereItsOwnerSaidWhenItEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		fill(t, store, "billing", 2)
		if _, err := store.Heartbeat(t.Context(), "billing", lease.Report{Session: "s1", Progress: []lease.Progress{
			{Key: lease.Key{Stream: "orders", Shard: "shardId-000000000000"}, Epoch: 2, Position: shard.End},
		}}); err != nil {
			t.Fatal(err)
		}
		before := shown(t, dashboard.Handler(store, dashboard.Options{}), "/app?app=billing&span=1h", "1 finished shard is not drawn")
		report(t, store, "billing", "s1", 1, 10, func(_ int, ago int64) (s history.Sample) {
			if ago == 5 {
				s.Marks = history.Ended | history.Finished
			}
			return s
		})
		after := shown(t, dashboard.Handler(store, dashboard.Options{}), "/app?app=billing&span=1h")
		if strings.Contains(after, "is not drawn") || strings.Count(after, "<rect") <= strings.Count(before, "<rect") {
			t.Error("the finished shard is still not drawn")
		}
	})
}

func TestItSaysThatAStoreKeepsNoHistory(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	fill(t, store, "billing", 1)
	page := shown(t, dashboard.Handler(bare{store}, dashboard.Options{}), "/app?app=billing", "This store keeps no history", "<svg")
	if strings.Contains(page, "by=handler") || strings.Contains(page, "by=throttles") {
		t.Error("it offers colours of which it knows nothing")
	}
}

func TestAThousandShardsWithAPastAreALightPage(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	fill(t, store, "big", 1000)
	report(t, store, "big", "s1", 1000, 170, func(shard int, ago int64) history.Sample {
		return history.Sample{Lag: time.Duration((int64(shard)*31+ago*7)%97) * time.Minute, Load: lease.Load(30 + (ago+int64(shard))%12), Busy: int(ago+int64(shard)) % 100, Throttled: int(ago*3+int64(shard)) % 100}
	})
	h := dashboard.Handler(store, dashboard.Options{})
	for _, metric := range []string{"lag", "bytes", "handler", "throttles"} {
		w := answer(t, h, http.MethodGet, "/app?app=big&span=6h&by="+metric, "Accept-Encoding", "gzip")
		size := w.Body.Len()
		page := shown(t, h, "/app?app=big&span=6h&by="+metric, `<path class="l`)
		elements := strings.Count(page, "<") - strings.Count(page, "</")
		t.Logf("%s: %d bytes compressed, %d elements", metric, size, elements)
		if size > 200_000 || elements > 3000 {
			t.Errorf("%s: %d bytes compressed, %d elements", metric, size, elements)
		}
	}
}
