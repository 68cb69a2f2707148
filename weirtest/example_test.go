package weirtest_test

import (
	"context"
	"testing"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/kinesistest"
	"github.com/weir-go/weir/store/memstore"
	"github.com/weir-go/weir/weirtest"
)

// A test of a handler.
func ExampleStart() {
	test := func(t *testing.T, handler weir.Handler, effects func() int) {
		srv := kinesistest.NewServer(t)
		srv.CreateStream("orders", 2)
		srv.Put("orders", "customer-7", []byte("one espresso"))

		worker := weirtest.Start(t, srv.Client(), memstore.New(), weir.Options{Streams: []string{"orders"}, App: "billing"}, handler)
		worker.Until(
			weirtest.Handled(1, worker),
			weirtest.AtTip(srv, "orders", worker),
			weirtest.When("one effect", func() bool { return effects() == 1 }),
		)
		worker.Stop()
	}
	_ = test
}

// A test of an application that creates its own consumer.
func ExampleGo() {
	test := func(t *testing.T, serve func(context.Context) error, ready func() bool) {
		app := weirtest.Go(t, serve)
		app.Until(weirtest.When("the application is ready", ready))
		app.Stop()
	}
	_ = test
}
