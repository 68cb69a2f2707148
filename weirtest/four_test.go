package weirtest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/weirtest"
)

// Every order in the stream is charged.
func TestOrdersAreCharged(t *testing.T) {
	srv := kinesistest.NewServer(t)
	srv.CreateStream("orders", 2)
	n := srv.PutFile("orders", "testdata/orders.ndjson", func(line []byte) string {
		var o order
		_ = json.Unmarshal(line, &o)
		return o.Customer
	})

	var till till
	worker := weirtest.Start(t, srv.Client(), memstore.New(), weir.Options{Streams: []string{"orders"}, App: "billing"}, &till)
	worker.Until(weirtest.Handled(n, worker))
	worker.Stop()

	if got := till.orders(""); len(got) != n {
		t.Errorf("%d of %d orders were charged: %q", len(got), n, got)
	}
}

// An invalid order is set aside, and blocks neither earlier nor later records.
func TestARecordThatIsNoOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // virtual time: the backoff takes none
		srv := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		srv.CreateStream("orders", 1)
		srv.Put("orders", "customer-7", []byte(`{"order": "o-1", "customer": "customer-7"}`))
		srv.Put("orders", "customer-7", []byte("???"))
		srv.Put("orders", "customer-7", []byte(`{"order": "o-2", "customer": "customer-7"}`))

		var till till
		worker := weirtest.Start(t, srv.Client(), memstore.New(), weir.Options{Streams: []string{"orders"}, App: "billing"}, &till)
		worker.Until(weirtest.AtTip(srv, "orders", worker))
		worker.Stop()

		if got := till.orders("customer-7"); !slices.Equal(got, []string{"o-1", "o-2"}) {
			t.Errorf("charged %q", got)
		}
		if !slices.Equal(till.aside, []string{"???"}) {
			t.Errorf("put aside %q", till.aside)
		}
	})
}

// The orders of a customer are charged in order, also when the stream is split meanwhile.
func TestASplitKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		srv.CreateStream("orders", 1)
		var till till
		worker := weirtest.Start(t, srv.Client(), memstore.New(), weir.Options{Streams: []string{"orders"}, App: "billing"}, &till)

		var want []string
		for i := range 40 {
			if i == 20 {
				srv.Split("orders", srv.OpenShards("orders")[0])
			}
			id := fmt.Sprintf("o-%02d", i)
			srv.Put("orders", "customer-7", fmt.Appendf(nil, `{"order": %q, "customer": "customer-7"}`, id))
			want = append(want, id)
			time.Sleep(100 * time.Millisecond)
		}
		worker.Until(weirtest.AtTip(srv, "orders", worker))
		worker.Stop()

		if got := till.orders("customer-7"); !slices.Equal(got, want) {
			t.Errorf("charged %q", got)
		}
	})
}

// When a worker dies, another one charges the remaining orders.
func TestAWorkerDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // virtual time: the failover takes no real time
		srv := kinesistest.NewServer(t, kinesistest.Config{InMemory: true})
		srv.CreateStream("orders", 4)
		store := memstore.New() // shared by both workers, like a database
		options := weir.Options{Streams: []string{"orders"}, App: "billing"}
		var till till
		first := weirtest.Start(t, srv.Client(), store, options, &till)
		second := weirtest.Start(t, srv.Client(), store, options, &till)
		first.Until(weirtest.AtTip(srv, "orders", first, second), weirtest.When("both have shards", func() bool {
			return len(first.Consumer.Shards()) == 2 && len(second.Consumer.Shards()) == 2
		}))

		var want []string
		for i := range 40 {
			if i == 20 {
				first.Kill()
			}
			id := fmt.Sprintf("o-%02d", i)
			srv.Put("orders", id, fmt.Appendf(nil, `{"order": %q}`, id))
			want = append(want, id)
			time.Sleep(100 * time.Millisecond)
		}
		second.Until(weirtest.AtTip(srv, "orders", second))
		second.Stop()

		got := till.orders("")
		slices.Sort(got)
		if once := slices.Compact(slices.Clone(got)); !slices.Equal(once, want) {
			t.Errorf("charged %q", once)
		}
		t.Logf("%d of %d orders were charged twice, because the first worker died before it had saved that they were done", len(got)-len(want), len(want))
	})
}
