// Package weirtest runs consumers in tests. A test can wait until a number of records is handled,
// until the workers reach the tip of a stream, or for any other condition. It can also kill
// workers.
//
//	func TestBilling(t *testing.T) {
//		srv := kinesistest.NewServer(t)
//		srv.CreateStream("orders", 2)
//		srv.Put("orders", "customer-7", []byte("one espresso"))
//
//		options := weir.Options{Streams: []string{"orders"}, App: "billing"}
//		worker := weirtest.Start(t, srv.Client(), memstore.New(), options, &till)
//		worker.Until(weirtest.Handled(1, worker))
//		worker.Stop()
//		...
//	}
//
// The package works in real time, and in the virtual time of a [testing/synctest] bubble. In a
// bubble, the server needs kinesistest.Config.InMemory, and a failover takes no real time.
// docs/testing.md has four complete tests.
//
// The package is separate from kinesistest, because kinesistest imports nothing of weir. If the
// server shared code with the client, it would share the client's misunderstandings.
package weirtest
