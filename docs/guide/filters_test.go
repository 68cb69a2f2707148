package guide

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/filter"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/weirtest"
)

var largeOrders = filter.MustCompile(`{"data": {
	"kind":   ["order"],
	"amount": [{"numeric": [">=", 100]}]
}}`)

var auditing = weir.Options{
	Streams: []string{"orders"}, App: "auditing",
	Filter: weir.Filter{By: largeOrders, NotJSON: weir.DropNotJSON},
}

// auditors is a custom filter: the set of partition keys that it lets through.
type auditors map[string]bool

// Match is called for each record. Calls may be concurrent.
func (a auditors) Match(_ []byte, partitionKey string, _ time.Time) (matches, isJSON bool) {
	return a[partitionKey], true
}

var _ weir.Matcher = auditors{}

// One of four records is large enough, and the checkpoint passes all four.
func TestLargeOrdersAreAudited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := shop(t, 1)
		for _, data := range []string{`{"kind":"order","amount":20}`, `{"kind":"order","amount":250}`, `{"kind":"refund","amount":250}`, `kind=order`} {
			srv.Put("orders", "customer-7", []byte(data))
		}
		var mu sync.Mutex
		var audited []string
		worker := weirtest.Start(t, srv.Client(), memstore.New(), auditing, weir.RecordFunc(func(_ context.Context, r weir.Record) error {
			mu.Lock()
			defer mu.Unlock()
			audited = append(audited, string(r.Data))
			return nil
		}))
		worker.Until(weirtest.AtTip(srv, "orders", worker))
		worker.Stop()
		if !slices.Equal(audited, []string{`{"kind":"order","amount":250}`}) {
			t.Errorf("audited %q", audited)
		}
	})
}
