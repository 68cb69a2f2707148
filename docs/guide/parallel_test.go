package guide

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/weirtest"
)

var sideBySide = weir.Options{
	Streams: []string{"orders"}, App: "billing",
	Concurrency: weir.Concurrency{Keys: 64},
}

// While the bank does not answer for one order, the other orders are charged.
func TestOrdersAreChargedSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := shop(t, 1)
		for _, id := range []string{"o-1", "o-2", "o-3"} { // each of another customer
			srv.Put("orders", "customer of "+id, []byte(`{"ID":"`+id+`"}`))
		}
		var answers atomic.Bool
		bank := &bank{fails: func(_ context.Context, id string) error {
			if id == "o-1" && !answers.Load() {
				return errors.New("the bank does not answer")
			}
			return nil
		}}
		worker := weirtest.Start(t, srv.Client(), memstore.New(), sideBySide, weir.RecordFunc(bank.charge))
		worker.Until(weirtest.When("the others are charged", func() bool { return len(bank.charged()) == 2 }))
		answers.Store(true)
		worker.Until(weirtest.AtTip(srv, "orders", worker))
		worker.Stop()
		if got := bank.charged(); len(got) != 3 || got[2] != "o-1" || !slices.Contains(got, "o-3") {
			t.Errorf("charged %q", got)
		}
	})
}
